#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "generation/stop_set.h"

namespace fermata {

// Turns the bytes of tokens into text that may be sent: holds back what may yet become a stop string, and the bytes of
// a character that is not complete. Folded from the tokens; a copy is a clone.
//
//   raw      |The answer is 42.\nUs|er:
//   released  ^^^^^^^^^^^^^^^^^^         "\nUs" may become "\nUser:" and waits
//
// What is released is valid UTF-8: a byte sequence that can never become a character is released as U+FFFD (one per
// maximal ill-formed part); the raw bytes stay in the journal. Exactly the longest suffix that begins a stop string is
// held, and an unfinished character; nothing more. The stop string that is complete first ends it, even inside a longer
// one that is open; of those complete at the same byte the longest.
class TextStream {
 public:
  explicit TextStream(std::shared_ptr<const StopSet> stops);

  // Before the first push: bytes of the prompt's last tokens (4 are enough). A character that begins there and ends in
  // the completion is released whole, once; if the completion does not go on with it, nothing of it is. Stop strings
  // are looked for in the completion alone.
  void start_after(std::string_view prompt_tail);

  struct Step {
    std::string released;         // to be sent now; valid UTF-8
    bool stopped = false;         // a stop string is complete; it and all after it will never be released
    std::size_t n_bytes_out = 0;  // raw bytes of the completion accounted for so far: released, not held
  };
  // After `stopped` or finish() nothing may be pushed.
  Step push(std::string_view bytes);
  // True end (end-of-generation, length, cancel): what was held for a stop string is released once; an unfinished
  // character is not.
  Step finish();

  std::size_t n_bytes_in() const { return n_bytes_in_; }
  std::size_t n_bytes_out() const { return n_bytes_out_; }
  std::size_t n_bytes_held() const { return n_bytes_in_ - n_bytes_out_; }
  bool stopped() const { return matched_ != nullptr; }
  // The one that matched; empty if none did.
  std::string_view stop_string() const { return matched_ ? std::string_view(*matched_) : std::string_view(); }

 private:
  // Decodes held_ up to `n_bytes`, which may be less than there is: what follows only tells how a unit ends.
  std::string release(std::size_t n_bytes);

  std::shared_ptr<const StopSet> stops_;
  std::string held_;               // n_prompt_held_ bytes of the prompt, then the completion from n_bytes_out_ on
  std::size_t n_prompt_held_ = 0;  // 0..3
  std::size_t n_bytes_in_ = 0;
  std::size_t n_bytes_out_ = 0;
  StopSet::State matcher_ = StopSet::kStart;
  const std::string* matched_ = nullptr;  // lives in stops_
  bool finished_ = false;
};

}  // namespace fermata
