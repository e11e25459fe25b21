#include "chat/line_editor.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/text_width.h"

namespace fermata::chat {
namespace {

using Kind = Key::Kind;

// What stands between words: blanks and ASCII's punctuation.
bool is_in_word(char byte) {
  const auto c = static_cast<unsigned char>(byte);
  return c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

}  // namespace

LineEditor::Did LineEditor::take(const Key& key) {
  switch (key.kind) {
    case Kind::kText:
    case Kind::kPaste: return insert(key.text) || key.text.empty() ? Did::kEdited : Did::kTooLong;
    case Kind::kTab: return after(insert("\t"));
    case Kind::kEnter: return enter();
    case Kind::kBackspace: return after(erase(letter_left(), cursor_, false));
    case Kind::kDelete: return after(erase(cursor_, letter_right(), false));
    case Kind::kLeft: return after(move_to(letter_left()));
    case Kind::kRight: return after(move_to(letter_right()));
    case Kind::kWordLeft: return after(move_to(word_left()));
    case Kind::kWordRight: return after(move_to(word_right()));
    case Kind::kHome: return after(move_to(line_begin(cursor_)));
    case Kind::kEnd: return after(move_to(line_end(cursor_)));
    case Kind::kUp: return after(go_up());
    case Kind::kDown: return after(go_down());
    case Kind::kControl: return take_control(key.text.front());
    case Kind::kAlt: return take_alt(key.text);
    case Kind::kEscape: return Did::kNothing;
  }
  return Did::kNothing;
}

LineEditor::Did LineEditor::take_control(char letter) {
  switch (letter) {
    case 'a': return after(move_to(line_begin(cursor_)));
    case 'b': return after(move_to(letter_left()));
    case 'd': return after(erase(cursor_, letter_right(), false));
    case 'e': return after(move_to(line_end(cursor_)));
    case 'f': return after(move_to(letter_right()));
    case 'k': {  // at the end of a line: the end of line itself
      const std::size_t end = line_end(cursor_);
      return after(erase(cursor_, end == cursor_ ? letter_right() : end, true));
    }
    case 'n': return after(go_down());
    case 'p': return after(go_up());
    case 'u': return after(erase(line_begin(cursor_), cursor_, true));
    case 'w': {
      std::size_t from = cursor_;  // as shells have it: up to a blank
      while (from > 0 && (text_[from - 1] == ' ' || text_[from - 1] == '\n')) --from;
      while (from > 0 && text_[from - 1] != ' ' && text_[from - 1] != '\n') --from;
      return after(erase(from, cursor_, true));
    }
    case 'y': return after(insert(killed_));
    default: return Did::kNothing;
  }
}

LineEditor::Did LineEditor::take_alt(std::string_view character) {
  if (character == "\r" || character == "\n") return after(insert("\n"));
  if (character == "b") return after(move_to(word_left()));
  if (character == "f") return after(move_to(word_right()));
  if (character == "d") return after(erase(cursor_, word_right(), true));
  if (character == "\x7f" || character == "\b") return after(erase(word_left(), cursor_, true));
  return Did::kNothing;
}

LineEditor::Did LineEditor::enter() {
  if (cursor_ != text_.size() || !text_.ends_with('\\')) return Did::kSent;
  text_.back() = '\n';
  return Did::kEdited;
}

void LineEditor::set(std::string text) {
  text_ = std::move(text);
  cursor_ = text_.size();
  n_back_ = 0;
  draft_.clear();
}

bool LineEditor::insert(std::string_view text) {
  if (text.empty() || text_.size() + text.size() > limits::kInputBytesMax) return false;
  text_.insert(cursor_, text);
  cursor_ += text.size();
  return true;
}

bool LineEditor::erase(std::size_t from, std::size_t to, bool keep) {
  if (from >= to) return false;
  if (keep) killed_ = text_.substr(from, to - from);
  text_.erase(from, to - from);
  cursor_ = from;
  return true;
}

bool LineEditor::move_to(std::size_t place) { return std::exchange(cursor_, place) != place; }

std::size_t LineEditor::letter_left() const {
  std::size_t last = 0;
  for (std::size_t at = line_begin(cursor_ == 0 ? 0 : cursor_ - 1); at < cursor_;
       at += letter_bytes(std::string_view(text_).substr(at)))
    last = at;
  return cursor_ == 0 ? 0 : last;
}

std::size_t LineEditor::letter_right() const {
  if (cursor_ == text_.size()) return cursor_;
  return cursor_ + letter_bytes(std::string_view(text_).substr(cursor_));
}

std::size_t LineEditor::word_left() const {
  std::size_t at = cursor_;
  while (at > 0 && !is_in_word(text_[at - 1])) --at;
  while (at > 0 && is_in_word(text_[at - 1])) --at;
  return at;
}

std::size_t LineEditor::word_right() const {
  std::size_t at = cursor_;
  while (at < text_.size() && !is_in_word(text_[at])) ++at;
  while (at < text_.size() && is_in_word(text_[at])) ++at;
  return at;
}

std::size_t LineEditor::line_begin(std::size_t place) const {
  while (place > 0 && text_[place - 1] != '\n') --place;
  return place;
}

std::size_t LineEditor::line_end(std::size_t place) const { return std::min(text_.find('\n', place), text_.size()); }

bool LineEditor::move_beside(std::size_t begin) {
  const std::string_view text = text_;
  const std::size_t here = line_begin(cursor_);
  const std::size_t n_columns = columns_of(text.substr(here, cursor_ - here));
  const std::string_view line = text.substr(begin, line_end(begin) - begin);
  std::size_t at = 0;
  for (std::size_t n = 0; at < line.size();) {
    const std::size_t n_bytes = letter_bytes(line.substr(at));
    n += columns_of(line.substr(at, n_bytes));
    if (n > n_columns) break;
    at += n_bytes;
  }
  return move_to(begin + at);
}

bool LineEditor::go_up() {
  const std::size_t here = line_begin(cursor_);
  if (here > 0) return move_beside(line_begin(here - 1));
  return history_ && n_back_ < history_->size() && show_from_history(n_back_ + 1);
}

bool LineEditor::go_down() {
  const std::size_t end = line_end(cursor_);
  if (end < text_.size()) return move_beside(end + 1);
  return n_back_ > 0 && show_from_history(n_back_ - 1);
}

bool LineEditor::show_from_history(std::size_t n_back) {
  if (n_back_ == 0) draft_ = text_;
  n_back_ = n_back;
  text_ = n_back == 0 ? std::exchange(draft_, {}) : (*history_)[history_->size() - n_back];
  cursor_ = text_.size();
  return true;
}

}  // namespace fermata::chat
