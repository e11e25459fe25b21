#pragma once

#include <span>
#include <string_view>

namespace fermata {

// The word that is nearest in spelling (Levenshtein's distance), if one is near; else empty. For what somebody
// misspelt.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

}  // namespace fermata
