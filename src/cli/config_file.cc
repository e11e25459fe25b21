#include "cli/config_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>
#include <utility>

namespace fermata::cli {
namespace {

FilePlace place_of(const toml::source_position& position) { return {position.line, position.column}; }

// As a flag takes it.
std::string number_text(double number) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

// Walks over what is no key, so that dots in texts and comments are none of a key.
class KeyParts {
 public:
  explicit KeyParts(std::string_view text) : text_(text) {}

  // Where a key has more parts than any of ours. The parser takes time with the square of their number.
  std::optional<FilePlace> too_many() {
    for (std::size_t n_dots = 0; at_ < text_.size();) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        skip_text(c);
        continue;
      }
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
        continue;
      }
      if (std::string_view("\n=,[{").find(c) != std::string_view::npos) n_dots = 0;
      if (c == '.' && ++n_dots > kDotsMax) return place();
      ++at_;
    }
    return std::nullopt;
  }

 private:
  static constexpr std::size_t kDotsMax = 8;

  // Of three quotes, up to the next three; of one, at most to the end of its line.
  void skip_text(char quote) {
    const std::string three(3, quote);
    const bool is_long = text_.substr(at_).starts_with(three);
    at_ += is_long ? 3 : 1;
    while (at_ < text_.size()) {
      if (is_long ? text_.substr(at_).starts_with(three) : text_[at_] == quote) {
        at_ += is_long ? 3 : 1;
        return;
      }
      if (!is_long && text_[at_] == '\n') return;  // the parser says what is wrong
      at_ += text_[at_] == '\\' && quote == '"' ? 2 : 1;
    }
  }

  FilePlace place() const {
    const std::string_view before = text_.substr(0, at_);
    const auto n_lines = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
    const std::size_t begin = before.rfind('\n') + 1;  // of its line; 0 of the first
    return {n_lines + 1, at_ - begin + 1};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  Result<std::vector<ConfigItem>> read(std::string_view text) {
    try {
      const toml::table all = toml::parse(text, path_);
      if (const Result<void> taken = take_table(all, {}); !taken) return taken.error();
    } catch (const toml::parse_error& error) {
      return wrong_at(path_, place_of(error.source().begin), std::string(error.description()));
    }
    std::sort(items_.begin(), items_.end(), [](const ConfigItem& a, const ConfigItem& b) {
      return std::tie(a.key_at.line, a.key_at.column) < std::tie(b.key_at.line, b.key_at.column);
    });
    return std::move(items_);
  }

 private:
  Result<void> take_table(const toml::table& table, const std::vector<std::string>& section) {
    for (const auto& [key, node] : table) {
      std::vector<std::string> name = section;
      name.emplace_back(key.str());
      const toml::table* inner = node.as_table();
      const Result<void> taken = inner ? take_table(*inner, name) : take_item(key, node, std::move(name));
      if (!taken) return taken;
    }
    return {};
  }

  Result<void> take_item(const toml::key& key, const toml::node& node, std::vector<std::string> name) {
    ConfigItem item;
    item.key = std::move(name);
    item.key_at = place_of(key.source().begin);
    item.value_at = place_of(node.source().begin);
    item.is_truth = node.is_boolean();
    if (const toml::array* array = node.as_array()) {
      item.is_array = true;
      for (const toml::node& value : *array)
        if (const Result<void> taken = take_value(value, item); !taken) return taken;
    } else if (const Result<void> taken = take_value(node, item); !taken) {
      return taken;
    }
    items_.push_back(std::move(item));
    return {};
  }

  Result<void> take_value(const toml::node& node, ConfigItem& item) const {
    if (const auto* text = node.as_string()) {
      item.values.push_back(text->get());
    } else if (const auto* whole = node.as_integer()) {
      item.values.push_back(std::to_string(whole->get()));
    } else if (const auto* number = node.as_floating_point()) {
      item.values.push_back(number_text(number->get()));
    } else if (const auto* truth = node.as_boolean()) {
      item.values.emplace_back(truth->get() ? "true" : "false");
    } else {
      return wrong_at(path_, place_of(node.source().begin),
                      "'" + item.key.back() + "' takes a \"text\", a number, true or false, or an array of these");
    }
    return {};
  }

  const std::string& path_;
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
  if (const std::optional<FilePlace> place = KeyParts(text).too_many())
    return wrong_at(path, *place, "a key has too many parts; those of flags have one, or two with their section");
  return Reader(path).read(text);
}

}  // namespace fermata::cli
