#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fermata {

// Weight types that a model can be turned into.
enum class WeightType { kQ4_0, kQ4_1, kQ8_0, kF16, kQ6_K, kQ4_K_M };
inline constexpr std::array kWeightTypes = {WeightType::kQ4_0, WeightType::kQ4_1, WeightType::kQ8_0,
                                            WeightType::kF16,  WeightType::kQ6_K, WeightType::kQ4_K_M};
std::string_view to_string(WeightType type);

// The type that the default model is made ready in: docs/decisions/004-default-model.md has the measurements.
inline constexpr WeightType kDefaultWeights = WeightType::kQ8_0;

struct PrepareOptions {
  std::string source;
  std::string target;
  WeightType type = kDefaultWeights;
  std::int32_t n_threads = 0;  // 0 chooses
  bool rewrite = false;        // an existing model at the target is replaced
  // Told where the half-written file stands, for who ends the process meanwhile.
  std::function<void(const std::string& path)> on_scratch = {};
};

enum class Prepared {
  kWritten,
  kWasThere,  // the target is this model with these weights already
};

// Writes the source anew with weights of another type. The source is kept. The target appears complete or not at all
// (ScratchFile). What stands at the target is left alone, and refused if it is anything but what would be written;
// what is left of a cut model is replaced.
Result<Prepared> prepare_model(const PrepareOptions& options);

}  // namespace fermata
