#pragma once

#include <string>
#include <vector>

namespace fermata::cli {

// Rows of cells as aligned columns, two blanks between, the first row being the heads. The last column is as long as it
// is.
std::string table(const std::vector<std::vector<std::string>>& rows);

// 59 -> "59s", 61 -> "1m", 7200 -> "2h", 172800 -> "2d"
std::string age(double n_seconds);

}  // namespace fermata::cli
