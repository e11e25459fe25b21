#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fermata::cli {

// Where something stands in a file; both count from 1, columns in characters.
struct FilePlace {
  std::size_t line = 1;
  std::size_t column = 1;
};

// "FILE:3:8: MESSAGE"
Error wrong_at(const std::string& path, FilePlace place, std::string message);

struct ConfigItem {
  std::vector<std::string> key;  // its section, its dotted parts
  FilePlace key_at;
  std::vector<std::string> values;  // as a flag takes them
  FilePlace value_at;
  bool is_array = false;
  bool is_truth = false;  // true or false, without quotes
};

// All items of a TOML file in its order, those of a section with its name before their own. Values are what flags take:
// texts, numbers, true and false, and arrays of these. What is wrong is told with its place.
Result<std::vector<ConfigItem>> parse_config(std::string_view text, const std::string& path);

}  // namespace fermata::cli
