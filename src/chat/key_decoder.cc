#include "chat/key_decoder.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/limits.h"
#include "base/utf8.h"

namespace fermata::chat {
namespace {

using Kind = Key::Kind;

constexpr char kEsc = '\x1b';
constexpr std::string_view kPasteBegins = "\x1b[200~";
constexpr std::string_view kKeypadEnter = "\x1bOM";
constexpr std::string_view kPasteEnds = "\x1b[201~";

// Of "\x1b[1;5C": parameters "1;5", final 'C'.
std::optional<Kind> key_of(std::string_view parameters, char final) {
  const auto modifier = parameters.find(';');
  const std::string_view with = modifier == std::string_view::npos ? "" : parameters.substr(modifier + 1);
  const bool is_by_word = with == "3" || with == "5" || (with.empty() && parameters == "5");  // Alt, Ctrl; rxvt
  switch (final) {
    case 'A': return Kind::kUp;
    case 'B': return Kind::kDown;
    case 'C': return is_by_word ? Kind::kWordRight : Kind::kRight;
    case 'D': return is_by_word ? Kind::kWordLeft : Kind::kLeft;
    case 'H': return Kind::kHome;
    case 'F': return Kind::kEnd;
    case '~': break;
    default: return std::nullopt;
  }
  const std::string_view number = parameters.substr(0, modifier);
  if (number == "1" || number == "7") return Kind::kHome;
  if (number == "4" || number == "8") return Kind::kEnd;
  if (number == "3") return Kind::kDelete;
  return std::nullopt;
}

Key control_key(char byte) {
  switch (byte) {
    case '\r':
    case '\n': return {Kind::kEnter};  // what was typed before the terminal was ours comes as "\n"
    case '\t': return {Kind::kTab};
    case '\b':
    case '\x7f': return {Kind::kBackspace};
    default: return {Kind::kControl, std::string(1, static_cast<char>((byte & 0x1f) | 0x60))};
  }
}

bool is_control(char byte) { return is_ascii_control({&byte, 1}); }
bool is_within(char byte, int least, int most) { return byte >= least && byte <= most; }

}  // namespace

void KeyDecoder::add(std::string_view bytes, Instant now, std::vector<Key>& keys) {
  bytes_ += bytes;
  last_ = now;
  while (!bytes_.empty() && take_one(keys)) {
  }
}

Duration KeyDecoder::patience() const {
  if (is_pasting_) return milliseconds(limits::kPasteMs);
  return milliseconds(bytes_.size() == 1 ? limits::kEscapeMs : limits::kKeySequenceMs);
}

// A character that is not whole waits for as long as it takes: nothing else can come of it.
std::optional<Instant> KeyDecoder::deadline() const {
  if (!is_pasting_ && !bytes_.starts_with(kEsc)) return std::nullopt;
  return last_ + patience();
}

void KeyDecoder::expire(Instant now, std::vector<Key>& keys) {
  const std::optional<Instant> until = deadline();
  if (!until || now < *until) return;
  if (is_pasting_)
    end_paste(bytes_, keys);
  else if (bytes_.size() == 1)
    keys.push_back({Kind::kEscape});
  bytes_.clear();
}

// False: it takes more bytes to say what this is.
bool KeyDecoder::take_one(std::vector<Key>& keys) {
  if (is_pasting_) return take_pasted(keys);
  if (bytes_.front() == kEsc) return take_escape(keys);
  if (!is_control(bytes_.front())) return take_character(keys);
  keys.push_back(control_key(bytes_.front()));
  bytes_.erase(0, 1);
  return true;
}

bool KeyDecoder::take_character(std::vector<Key>& keys) {
  const Utf8Unit unit = utf8_unit(bytes_);
  if (unit.kind == Utf8Unit::Kind::kUnfinished) return false;
  std::string text = bytes_.substr(0, unit.n_bytes);
  bytes_.erase(0, unit.n_bytes);
  if (unit.kind == Utf8Unit::Kind::kIllFormed) text = kReplacementCharacter;
  if (!is_c1_control(text)) keys.push_back({Kind::kText, std::move(text)});
  return true;
}

bool KeyDecoder::take_escape(std::vector<Key>& keys) {
  if (bytes_.size() == 1) return false;
  const char next = bytes_[1];
  if (next == kEsc) {  // the first one is a key by itself
    keys.push_back({Kind::kEscape});
    bytes_.erase(0, 1);
    return true;
  }
  if (next == '[' || next == 'O') return take_sequence(keys);
  const Utf8Unit unit = utf8_unit(std::string_view(bytes_).substr(1));
  if (unit.kind == Utf8Unit::Kind::kUnfinished) return false;
  keys.push_back({Kind::kAlt, bytes_.substr(1, unit.n_bytes)});
  bytes_.erase(0, 1 + unit.n_bytes);
  return true;
}

// ESC [ parameters intermediates final, or ESC O with the same.
bool KeyDecoder::take_sequence(std::vector<Key>& keys) {
  std::size_t at = 2;
  while (at < bytes_.size() && is_within(bytes_[at], 0x20, 0x3f)) ++at;
  if (at - 2 > limits::kKeySequenceBytesMax) {
    bytes_.erase(0, at);
    return true;
  }
  if (at == bytes_.size()) return false;
  const char final = bytes_[at];
  if (!is_within(final, 0x40, 0x7e)) {  // no sequence after all: what comes is a key of its own
    bytes_.erase(0, at);
    return true;
  }
  const bool is_linux_function_key = final == '[' && at == 2 && bytes_[1] == '[';  // ESC [ [ A
  if (is_linux_function_key && bytes_.size() == 3) return false;
  const std::string sequence = bytes_.substr(0, at + (is_linux_function_key ? 2 : 1));
  bytes_.erase(0, sequence.size());
  if (is_linux_function_key) return true;
  if (sequence == kPasteBegins) {
    is_pasting_ = true;
    n_searched_ = 0;
  } else if (sequence == kKeypadEnter) {
    keys.push_back({Kind::kEnter});
  } else if (const auto kind = key_of(std::string_view(sequence).substr(2, at - 2), final)) {
    keys.push_back({*kind});
  }
  return true;
}

bool KeyDecoder::take_pasted(std::vector<Key>& keys) {
  const auto end = bytes_.find(kPasteEnds, n_searched_);
  if (end == std::string::npos) {
    n_searched_ = bytes_.size() - std::min(bytes_.size(), kPasteEnds.size() - 1);
    constexpr std::size_t kKept = limits::kInputBytesMax + 1;  // so much that it is refused; the rest of it is lost
    if (bytes_.size() > kKept) {
      bytes_.erase(kKept, n_searched_ - std::min(n_searched_, kKept));
      n_searched_ = std::min(n_searched_, kKept);
    }
    return false;
  }
  end_paste(std::string_view(bytes_).substr(0, end), keys);
  bytes_.erase(0, end + kPasteEnds.size());
  return true;
}

void KeyDecoder::end_paste(std::string_view text, std::vector<Key>& keys) {
  is_pasting_ = false;
  std::string pasted;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Unit unit = utf8_unit(text.substr(at));
    const std::string_view character = text.substr(at, unit.n_bytes);
    at += unit.n_bytes;
    if (character == "\r") {
      pasted += '\n';
      if (text.substr(at).starts_with('\n')) ++at;
    } else if (unit.kind == Utf8Unit::Kind::kCharacter) {
      pasted += character;
    } else {
      pasted += kReplacementCharacter;
    }
  }
  if (!pasted.empty()) keys.push_back({Kind::kPaste, std::move(pasted)});
}

}  // namespace fermata::chat
