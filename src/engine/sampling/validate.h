#pragma once

#include <cstdint>

#include "base/result.h"
#include "engine/sampling/params.h"

namespace fermata {

// Refuses parameters that cannot work, are not numbers, or pass a limit, naming field, value and allowed range. Does
// not read the grammar (the factory does).
Result<void> validate(const SamplingParams& params, std::int32_t n_vocab);

}  // namespace fermata
