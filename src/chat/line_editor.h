#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "chat/key_decoder.h"

namespace fermata::chat {

// A text that is being written, of one line or several, with a cursor. Pure.
class LineEditor {
 public:
  // `history`: what Up and Down go through, oldest first; it outlives this. May be null.
  explicit LineEditor(const std::vector<std::string>* history = nullptr) : history_(history) {}

  enum class Did {
    kNothing,  // not a key of the editor, or it had no effect
    kEdited,   // text or cursor are others
    kSent,     // Enter: the text is whole
    kTooLong,  // with that it were longer than limits::kInputBytesMax; it stays as it was
  };
  Did take(const Key& key);

  const std::string& text() const { return text_; }
  std::size_t cursor() const { return cursor_; }  // in bytes

  // Another text, the cursor at its end; what Up left is forgotten.
  void set(std::string text);

 private:
  Did after(bool has_changed) { return has_changed ? Did::kEdited : Did::kNothing; }
  Did enter();
  Did take_control(char letter);
  Did take_alt(std::string_view character);
  bool insert(std::string_view text);
  bool erase(std::size_t from, std::size_t to, bool keep);
  bool move_to(std::size_t place);
  bool go_up();
  bool go_down();
  bool show_from_history(std::size_t place);

  std::size_t letter_left() const;
  std::size_t letter_right() const;
  std::size_t word_left() const;
  std::size_t word_right() const;
  std::size_t line_begin(std::size_t place) const;
  std::size_t line_end(std::size_t place) const;
  bool move_beside(std::size_t begin);  // into the line that begins there, in the column of now

  std::string text_;
  std::size_t cursor_ = 0;
  std::string killed_;  // what Ctrl-Y brings back
  const std::vector<std::string>* history_;
  std::size_t n_back_ = 0;  // 0: the draft; else the n-th last of the history
  std::string draft_;
};

}  // namespace fermata::chat
