#pragma once

#include "engine/attention/operands.h"

namespace fermata::attention {

// The arithmetic of kernels.h written plainly, one number after the other with std::fma: the oracle of the tests. Slow.
void attend_plainly(const Block& block);

// exp as the kernels compute it, x <= 0.
float exp_plainly(float x);

}  // namespace fermata::attention
