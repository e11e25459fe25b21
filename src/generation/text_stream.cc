#include "generation/text_stream.h"

#include <utility>

#include "base/check.h"
#include "base/utf8.h"

namespace fermata {

TextStream::TextStream(std::shared_ptr<const StopSet> stops) : stops_(std::move(stops)) {
  FERMATA_CHECK(stops_ != nullptr);
}

void TextStream::start_after(std::string_view prompt_tail) {
  FERMATA_CHECK_EQ(n_bytes_in_, 0u);
  n_prompt_held_ = utf8_unfinished_suffix(prompt_tail);
  held_ = prompt_tail.substr(prompt_tail.size() - n_prompt_held_);
}

TextStream::Step TextStream::push(std::string_view bytes) {
  FERMATA_CHECK(!stopped() && !finished_);
  held_.append(bytes);
  n_bytes_in_ += bytes.size();
  std::size_t n_to_come = bytes.size();  // bytes that the matcher has not seen
  std::size_t n_stop = stops_->depth(matcher_);
  for (const char byte : bytes) {
    matcher_ = stops_->next(matcher_, byte);
    --n_to_come;
    n_stop = stops_->depth(matcher_);
    matched_ = stops_->match(matcher_);
    if (matched_ == nullptr) continue;
    n_stop = matched_->size();
    break;
  }
  std::string released = release(held_.size() - n_to_come - n_stop);
  return {std::move(released), stopped(), n_bytes_out_};
}

TextStream::Step TextStream::finish() {
  std::string released;
  if (!stopped()) released = release(held_.size());
  finished_ = true;
  return {std::move(released), stopped(), n_bytes_out_};
}

std::string TextStream::release(std::size_t n_bytes) {
  std::string released;
  std::size_t n_done = 0;
  while (n_done < n_bytes) {
    const Utf8Unit unit = utf8_unit(std::string_view(held_).substr(n_done));
    if (unit.kind == Utf8Unit::Kind::kUnfinished || n_done + unit.n_bytes > n_bytes) break;
    if (unit.kind == Utf8Unit::Kind::kCharacter) {
      released.append(held_, n_done, unit.n_bytes);
    } else if (unit.n_bytes > n_prompt_held_) {
      released.append(kReplacementCharacter);  // else the completion wrote no byte of it
    }
    n_done += unit.n_bytes;
    n_bytes_out_ += unit.n_bytes - n_prompt_held_;
    n_prompt_held_ = 0;  // they all belong to the first unit
  }
  held_.erase(0, n_done);
  return released;
}

}  // namespace fermata
