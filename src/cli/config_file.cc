#include "cli/config_file.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace fermata::cli {
namespace {

constexpr std::string_view kValueWanted = "a value is a \"text\", a number, true, false, or an [array] of these";

bool is_key_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

bool ends_word(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',' || c == ']' || c == '#'; }

void append_utf8(std::string& out, std::uint32_t c) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0 | c >> 6);
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 63));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 63));
    put(0x80 | (c >> 6 & 63));
  }
  put(0x80 | (c & 63));
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& path) : text_(text), path_(path) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  }

  Result<std::vector<ConfigItem>> parse() {
    while (skip_to_something()) {
      const Result<void> read = peek() == '[' ? read_section() : read_item();
      if (!read) return read.error();
    }
    return std::move(items_);
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\n'; }
  bool is_over() const { return at_ >= text_.size(); }
  FilePlace here() const { return place_; }

  char take() {
    const char c = peek();
    ++at_;
    if (c == '\n') {
      ++place_.line;
      place_.column = 1;
    } else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) {  // no byte within a character
      ++place_.column;
    }
    return c;
  }

  Error wrong(FilePlace place, std::string message) const { return wrong_at(path_, place, std::move(message)); }

  void skip_blanks() {
    while (!is_over() && (peek() == ' ' || peek() == '\t' || peek() == '\r')) take();
  }
  void skip_comment() {
    if (peek() == '#')
      while (!is_over() && peek() != '\n') take();
  }
  // Over blanks, comments and ends of lines. False: that was all.
  bool skip_to_something() {
    while (!is_over()) {
      skip_blanks();
      skip_comment();
      if (is_over()) return false;
      if (peek() != '\n') return true;
      take();
    }
    return false;
  }
  Result<void> end_line(const char* after) {
    skip_blanks();
    skip_comment();
    if (is_over() || peek() == '\n') return {};
    return wrong(here(), std::string("nothing but a comment may follow ") + after);
  }

  Result<void> read_section() {
    const FilePlace begin = here();
    take();
    if (peek() == '[') return wrong(begin, "there are no lists of sections here");
    Result<std::vector<std::string>> name = read_key();
    if (!name) return name.error();
    if (peek() != ']') return wrong(here(), "the name of a section ends with ]");
    take();
    section_ = *std::move(name);
    return end_line("the name of a section");
  }

  Result<void> read_item() {
    ConfigItem item;
    item.key_at = here();
    Result<std::vector<std::string>> key = read_key();
    if (!key) return key.error();
    item.key = section_;
    item.key.insert(item.key.end(), key->begin(), key->end());
    if (peek() != '=') return wrong(here(), "behind a key stands = and its value");
    take();
    skip_blanks();
    item.value_at = here();
    if (const Result<void> read = read_value_or_array(item); !read) return read;
    for (const ConfigItem& other : items_)
      if (other.key == item.key)
        return wrong(item.key_at, "'" + item.key.back() + "' stands in line " + std::to_string(other.key_at.line) +
                                      " already; several values go into an [array]");
    items_.push_back(std::move(item));
    return end_line("a value");
  }

  // Dotted; what follows it is next.
  Result<std::vector<std::string>> read_key() {
    std::vector<std::string> parts;
    while (true) {
      skip_blanks();
      const FilePlace begin = here();
      std::string part;
      if (peek() == '"' || peek() == '\'') {
        Result<std::string> quoted = read_string();
        if (!quoted) return quoted.error();
        part = *std::move(quoted);
      } else {
        while (!is_over() && is_key_letter(peek())) part += take();
      }
      if (part.empty()) return wrong(begin, "here a key is expected: letters, digits, - and _");
      parts.push_back(std::move(part));
      skip_blanks();
      if (peek() != '.') return parts;
      take();
    }
  }

  Result<void> read_value_or_array(ConfigItem& item) {
    if (peek() != '[') return read_value(item);
    const FilePlace begin = here();
    take();
    item.is_array = true;
    while (true) {
      if (!skip_to_something()) return wrong(begin, "this array has no end");
      if (peek() == ']') break;
      if (const Result<void> read = read_value(item); !read) return read;
      if (!skip_to_something()) return wrong(begin, "this array has no end");
      if (peek() == ']') break;
      if (peek() != ',') return wrong(here(), "values of an array have commas between them");
      take();
    }
    take();
    return {};
  }

  Result<void> read_value(ConfigItem& item) {
    if (peek() == '"' || peek() == '\'') {
      Result<std::string> text = read_string();
      if (!text) return text.error();
      item.values.push_back(*std::move(text));
      return {};
    }
    const FilePlace begin = here();
    std::string word;
    while (!is_over() && !ends_word(peek())) word += take();
    if (word.empty()) return wrong(begin, "here a value is expected: " + std::string(kValueWanted));
    item.is_truth = word == "true" || word == "false";
    const bool is_number = (word[0] >= '0' && word[0] <= '9') || word[0] == '+' || word[0] == '-';
    if (!item.is_truth && !is_number)
      return wrong(begin, "'" + word + "' wants quotes if it is a text: " + std::string(kValueWanted));
    if (is_number) std::erase(word, '_');
    if (word[0] == '+') word.erase(0, 1);
    item.values.push_back(std::move(word));
    return {};
  }

  // "a text" with escapes, or 'a text' without.
  Result<std::string> read_string() {
    const FilePlace begin = here();
    const char quote = take();
    std::string text;
    while (!is_over() && peek() != '\n') {
      const FilePlace place = here();
      const char c = take();
      if (c == quote) {
        if (text.empty() && peek() == quote) return wrong(begin, "texts of several lines are not read here");
        return text;
      }
      if (c != '\\' || quote == '\'') {
        text += c;
        continue;
      }
      if (!read_escape(text))
        return wrong(place, "there is no such escape; a single \\ is written \\\\, or 'text' is used");
    }
    return wrong(begin, "this text has no closing quote");
  }

  bool read_escape(std::string& text) {
    static constexpr std::string_view kLetters = "btnfr\"\\";
    static constexpr std::string_view kMeanings = "\b\t\n\f\r\"\\";
    const char letter = take();
    if (const auto i = kLetters.find(letter); i != std::string_view::npos) {
      text += kMeanings[i];
      return true;
    }
    if (letter != 'u' && letter != 'U') return false;
    const std::string_view digits = text_.substr(std::min(at_, text_.size()), letter == 'u' ? 4 : 8);
    std::uint32_t character = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), character, 16);
    const bool is_character = character <= 0x10FFFF && (character < 0xD800 || character > 0xDFFF);
    if (error != std::errc() || end != digits.data() + digits.size() || digits.size() < 4 || !is_character)
      return false;
    for (std::size_t i = 0; i < digits.size(); ++i) take();
    append_utf8(text, character);
    return true;
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
  FilePlace place_;
  std::vector<std::string> section_;
  std::vector<ConfigItem> items_;
};

}  // namespace

Error wrong_at(const std::string& path, FilePlace place, std::string message) {
  return Error{Code::kInvalidArgument,
               path + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": " + std::move(message),
               {},
               false};
}

Result<std::vector<ConfigItem>> parse_config(std::string_view text, const std::string& path) {
  return Parser(text, path).parse();
}

}  // namespace fermata::cli
