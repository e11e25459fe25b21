#include "cli/config_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
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
  return Reader(path).read(text);
}

}  // namespace fermata::cli
