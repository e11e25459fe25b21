#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fermata::api {

// Public ids: a prefix and 128 bits of the system's random generator in hex, e.g. "gen_9f…".
inline constexpr std::string_view kGenerationPrefix = "gen_";
inline constexpr std::string_view kPausePrefix = "pau_";
// Answers have those of OpenAI before the same bits.
inline constexpr std::string_view kChatPrefix = "chatcmpl-";
inline constexpr std::string_view kTextPrefix = "cmpl-";
// Before a client id, where a path names a generation.
inline constexpr std::string_view kClientPrefix = "client:";
std::string new_id(std::string_view prefix);

// A sampling seed, drawn.
std::uint64_t new_seed();

// BLAKE2b-128 of a text, in hex: to tell whether a body came again.
std::string digest(std::string_view text);

}  // namespace fermata::api
