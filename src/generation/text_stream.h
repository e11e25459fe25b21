#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fermata {

// A set of stop strings, ready to be matched byte by byte (Aho-Corasick). Immutable; shared by all folds of a request.
class StopSet;
std::shared_ptr<const StopSet> make_stop_set(const std::vector<std::string>& stops);

// Turns the bytes of tokens into text that may be sent: holds back what may yet become a stop string, and the bytes of
// a character that is not complete. Folded from the tokens; a copy is a clone.
//
//   raw      |The answer is 42.\nUs|er:
//   released  ^^^^^^^^^^^^^^^^^^         "\nUs" may become "\nUser:" and waits
//
// What is released is valid UTF-8: a byte sequence that can never become a character is released as U+FFFD (one per
// maximal ill-formed part); the raw bytes stay in the journal.
class TextStream {
 public:
  explicit TextStream(std::shared_ptr<const StopSet> stops);

  // Bytes of the prompt's last tokens: a character that begins there and ends in the completion is released whole,
  // once.
  void start_after(std::string_view prompt_tail);

  struct Step {
    std::string released;         // to be sent now; valid UTF-8
    bool stopped = false;         // a stop string is complete; it and all after it will never be released
    std::size_t n_bytes_out = 0;  // raw bytes of the completion accounted for so far: released, not held
  };
  // After `stopped` nothing may be pushed.
  Step push(std::string_view bytes);
  // True end (end-of-generation, length, cancel): what was held for a stop string is released once; an unfinished
  // character is not.
  Step finish();

  std::size_t n_bytes_in() const { return n_bytes_in_; }
  std::size_t n_bytes_out() const { return n_bytes_out_; }
  std::size_t n_bytes_held() const { return n_bytes_in_ - n_bytes_out_; }

 private:
  std::shared_ptr<const StopSet> stops_;
  std::string held_;
  std::size_t n_bytes_in_ = 0;
  std::size_t n_bytes_out_ = 0;
  std::uint32_t matcher_state_ = 0;
};

}  // namespace fermata
