#include "generation/fold.h"

#include <utility>

#include "base/check.h"

namespace fermata {
namespace {
constexpr std::size_t kPromptTailMax = 4;  // a character has no more bytes
}

std::string_view text_bytes(const Vocabulary& vocabulary, TokenId token) {
  if (vocabulary.is_control(token) || vocabulary.ends_generation(token)) return {};
  return vocabulary.bytes(token);
}

Fold::Fold(const Vocabulary& vocabulary, std::unique_ptr<Sampler> sampler, TextStream text)
    : vocabulary_(&vocabulary), sampler_(std::move(sampler)), text_(std::move(text)) {}

Fold::Fold(const ValidRequest& request, const Vocabulary& vocabulary)
    : Fold(vocabulary, request.sampler().clone(), TextStream(std::make_shared<const StopSet>(request->stop))) {}

Fold Fold::clone() const {
  Fold copy(*vocabulary_, sampler_->clone(), text_);
  copy.prompt_tail_ = prompt_tail_;
  copy.in_completion_ = in_completion_;
  return copy;
}

Result<TextStream::Step> Fold::push(const JournalRow& row) {
  FERMATA_CHECK(!text_.stopped());
  const auto accepted = sampler_->accept(row.token, row.role, row.carry);
  if (!accepted) return accepted.error();
  if (row.role == TokenRole::kPrompt) {
    if (!in_completion_) push_prompt(row.token);
    return TextStream::Step{{}, false, text_.n_bytes_out()};
  }
  if (!in_completion_) text_.start_after(prompt_tail_);
  in_completion_ = true;
  return text_.push(text_bytes(*vocabulary_, row.token));
}

Result<void> Fold::replay(std::span<const JournalRow> rows) {
  for (const JournalRow& row : rows)
    if (const auto step = push(row); !step) return step.error();
  return {};
}

void Fold::push_prompt(TokenId token) {
  prompt_tail_.append(text_bytes(*vocabulary_, token));
  if (prompt_tail_.size() > kPromptTailMax) prompt_tail_.erase(0, prompt_tail_.size() - kPromptTailMax);
}

}  // namespace fermata
