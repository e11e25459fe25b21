#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fermata {

// Weight types that a model can be turned into.
enum class WeightType { kQ4_0, kQ4_1, kQ8_0, kF16, kQ6_K, kQ4_K_M };
std::string_view to_string(WeightType type);

// The type that the default model is made ready in: docs/decisions/004-default-model.md has the measurements.
inline constexpr WeightType kDefaultWeights = WeightType::kQ8_0;

// Writes `source` anew as `target` with weights of another type, once: an existing whole target is left alone. The
// source is kept. The target appears complete or not at all (written beside it, flushed, renamed).
// Returns whether something was written.
Result<bool> prepare_model(const std::string& source, const std::string& target, WeightType type,
                           std::int32_t n_threads);

}  // namespace fermata
