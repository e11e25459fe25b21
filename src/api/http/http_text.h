#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace fermata::api {

// Small pure pieces of HTTP's text. ASCII only, no locale.

std::string to_lower(std::string_view text);
bool equals_ignoring_case(std::string_view a, std::string_view b);
std::string_view trimmed(std::string_view text);  // without blanks and tabs at either end

// "%41" -> "A"; with plus_is_blank "+" -> " ". Nothing: a broken escape, a NUL, or no UTF-8.
std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_blank = false);
bool is_utf8(std::string_view bytes);

// Whether a comma-separated header value names the token, whatever the case.
bool lists_token(std::string_view value, std::string_view token);

// What a client wrote, fit for an error message or a log: printable ASCII, other bytes as '?', cut.
std::string ascii_excerpt(std::string_view bytes, std::size_t n_max = 80);

}  // namespace fermata::api
