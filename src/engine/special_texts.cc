#include "engine/special_texts.h"

#include <algorithm>
#include <utility>

namespace fermata {
namespace {

unsigned char byte_of(char c) { return static_cast<unsigned char>(c); }

}  // namespace

SpecialTexts::SpecialTexts(std::vector<SpecialText> texts) : texts_(std::move(texts)) {
  std::erase_if(texts_, [](const SpecialText& one) { return one.text.empty(); });
  std::ranges::sort(texts_, {}, &SpecialText::text);
  const auto same = [](const SpecialText& a, const SpecialText& b) { return a.text == b.text; };
  texts_.erase(std::unique(texts_.begin(), texts_.end(), same), texts_.end());
  for (const SpecialText& one : texts_) {
    leads_[byte_of(one.text[0])] = true;
    n_bytes_max_ = std::max(n_bytes_max_, one.text.size());
    for (std::size_t i = 1; i < one.text.size(); ++i) suffixes_.push_back(std::string_view(one.text).substr(i));
  }
  std::ranges::sort(suffixes_);
}

std::vector<const SpecialText*> SpecialTexts::at_beginning(std::string_view text) const {
  std::vector<const SpecialText*> found;
  if (text.empty() || !leads_[byte_of(text[0])]) return found;
  auto begin = texts_.begin();
  auto end = texts_.end();
  // Those that share their first n bytes with the text; if one has no more, it stands first.
  for (std::size_t n = 1; n <= text.size() && begin != end; ++n) {
    const auto nth = [n](const SpecialText& one) { return one.text.size() < n ? -1 : int{byte_of(one.text[n - 1])}; };
    const int byte = byte_of(text[n - 1]);
    begin = std::partition_point(begin, end, [&](const SpecialText& one) { return nth(one) < byte; });
    end = std::partition_point(begin, end, [&](const SpecialText& one) { return nth(one) == byte; });
    if (begin != end && begin->text.size() == n) found.push_back(&*begin);
  }
  return found;
}

bool SpecialTexts::any_in(std::string_view text) const {
  for (; !text.empty(); text.remove_prefix(1))
    if (leads_[byte_of(text[0])] && !at_beginning(text).empty()) return true;
  return false;
}

bool SpecialTexts::may_join(std::string_view text) const {
  if (text.empty()) return false;
  const auto within = std::ranges::lower_bound(suffixes_, text);
  if (within != suffixes_.end() && within->starts_with(text)) return true;
  const std::size_t n_max = std::min(text.size(), n_bytes_max_);
  for (std::size_t n = 1; n <= n_max; ++n) {
    const std::string_view tail = text.substr(text.size() - n);
    const auto longer = std::ranges::upper_bound(texts_, tail, {}, &SpecialText::text);
    if (longer != texts_.end() && longer->text.starts_with(tail)) return true;
    if (std::ranges::binary_search(suffixes_, text.substr(0, n))) return true;
  }
  return false;
}

}  // namespace fermata
