#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/vocabulary.h"

namespace fermata {

// The texts that Markers::kParse reads as special tokens, to be found where users wrote them. Immutable, thread-safe.
class SpecialTexts {
 public:
  explicit SpecialTexts(std::vector<SpecialText> texts);
  SpecialTexts(const SpecialTexts&) = delete;
  SpecialTexts& operator=(const SpecialTexts&) = delete;

  // Those that the text begins with, shortest first.
  std::vector<const SpecialText*> at_beginning(std::string_view text) const;
  bool any_in(std::string_view text) const;
  // What stands before or behind the text could make a special text with its beginning, its end, or all of it.
  bool may_join(std::string_view text) const;

 private:
  std::vector<SpecialText> texts_;          // sorted by text; none empty, none twice
  std::vector<std::string_view> suffixes_;  // of each, shorter than it; sorted
  std::array<bool, 256> leads_{};           // bytes that one of them begins with
  std::size_t n_bytes_max_ = 0;
};

}  // namespace fermata
