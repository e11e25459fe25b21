#pragma once

#include <cstddef>
#include <string_view>

#include "base/limits.h"
#include "base/result.h"

namespace fermata {

// llama-common reads and runs a template by recursion, so a model file could end the process by nesting. These bounds
// keep it within a thread's stack; the 70 templates that llama.cpp has for its own tests keep all of them.
inline constexpr std::size_t kTemplateBytesMax = limits::kChatTemplateBytesMax;
inline constexpr std::size_t kTagCodeBytesMax = 4096;   // of one {{ … }} or {% … %}, its strings not counted
inline constexpr std::size_t kTagBracketsMax = 64;      // open at one place
inline constexpr std::size_t kTemplateBlocksMax = 200;  // if, elif, for, … within each other

// kModel, naming the bound. What is malformed in other ways is for the parser to say.
Result<void> check_template_nesting(std::string_view source);

}  // namespace fermata
