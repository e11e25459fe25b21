#include "runtime/pager.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace fermata {

void PageStack::push(Page page) {
  FERMATA_CHECK_LT(page.begin, page.end);
  if (!empty()) FERMATA_CHECK_EQ(page.end, begin());
  bytes_ += page.bytes.size();
  pages_.push_back(std::move(page));
}

void PageStack::pop() {
  bytes_ -= pages_.back().bytes.size();
  pages_.pop_back();
}

void PageStack::drop_behind(Position n_tokens) {
  const auto kept = std::find_if(pages_.begin(), pages_.end(), [&](const Page& page) { return page.end <= n_tokens; });
  for (auto page = pages_.begin(); page != kept; ++page) bytes_ -= page->bytes.size();
  pages_.erase(pages_.begin(), kept);
}

void PageStack::clear() {
  pages_ = {};
  bytes_ = 0;
}

Pager::Pager(Engine& engine, std::int32_t n_page_tokens) : engine_(engine), n_page_tokens_(n_page_tokens) {
  FERMATA_CHECK_LE(1, n_page_tokens);
  FERMATA_CHECK_LE(n_page_tokens, limits::kPageTokens);
}

Result<void> Pager::out(SeqId seq, Position n_in_pool, PageStack& stack) {
  FERMATA_CHECK_LE(1, n_in_pool);
  const Position begin = (n_in_pool - 1) / n_page_tokens_ * n_page_tokens_;
  Result<Page> page = engine_.export_page(seq, begin, n_in_pool);
  if (!page) return page.error();
  stack.push(*std::move(page));
  ++n_out_;
  return {};
}

Result<void> Pager::in(SeqId seq, PageStack& stack) {
  FERMATA_CHECK_EQ(engine_.ledger().length(seq), stack.begin());
  const Result<void> taken = engine_.import_page(seq, stack.top());
  if (!taken) return taken;
  stack.pop();
  ++n_in_;
  return {};
}

}  // namespace fermata
