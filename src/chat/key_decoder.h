#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace fermata::chat {

struct Key {
  enum class Kind {
    kText,     // one character
    kPaste,    // what was pasted, in one piece; ends of line are "\n"
    kControl,  // with a letter: "c" for Ctrl-C
    kAlt,      // with a character: "b" for Alt-B, "\r" for Alt-Enter
    kEscape,
    kEnter,
    kTab,
    kBackspace,
    kDelete,
    kLeft,
    kRight,
    kUp,
    kDown,
    kHome,
    kEnd,
    kWordLeft,
    kWordRight,
  };
  Kind kind = Kind::kText;
  std::string text = {};
  bool operator==(const Key&) const = default;
};

// Keys out of the bytes that a terminal sends, which come in any pieces. A lone ESC is decided by the next byte or by
// time; what has begun as an escape sequence is never taken for ESC. Sequences of keys that nobody uses are read over.
// Pure: the time is told.
class KeyDecoder {
 public:
  void add(std::string_view bytes, Instant now, std::vector<Key>& keys);

  // When expire() has something to decide if no byte comes before.
  std::optional<Instant> deadline() const;
  void expire(Instant now, std::vector<Key>& keys);

 private:
  bool take_one(std::vector<Key>& keys);
  bool take_escape(std::vector<Key>& keys);
  bool take_sequence(std::vector<Key>& keys);
  bool take_pasted(std::vector<Key>& keys);
  bool take_character(std::vector<Key>& keys);
  void end_paste(std::string_view text, std::vector<Key>& keys);
  Duration patience() const;

  std::string bytes_;  // not decided yet
  Instant last_;
  bool is_pasting_ = false;
  std::size_t n_searched_ = 0;  // of a paste: its end does not begin before
};

}  // namespace fermata::chat
