#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/sampling/candidates.h"

// The samplers of llama.cpp's chain that have neither chance nor state. Laws and order of float operations are those
// of its src/llama-sampler.cpp wherever the list is short; its results differ only where it leaves the order of equal
// logits to a library's sort, and where sums over a whole row are rounded differently.
namespace fermata {

void keep_top_k(Candidates& candidates, std::int32_t k);  // k <= 0: all
// Those within n standard deviations (of all possible tokens) of the best; n <= 0: all.
void keep_top_n_sigma(Candidates& candidates, float n);
void keep_typical(Candidates& candidates, float p, std::size_t min_keep);  // p >= 1: all
void keep_top_p(Candidates& candidates, float p, std::size_t min_keep);    // p >= 1: all
void keep_min_p(Candidates& candidates, float p, std::size_t min_keep);    // p <= 0: all

// Colder than this is always the most likely token: logits divided by it would leave the floats.
inline constexpr float kColdest = 1e-5f;
void apply_temperature(Candidates& candidates, float temperature);  // >= kColdest
// A temperature in [t - range, t + range] that follows the entropy; range <= 0: t itself.
void apply_dynamic_temperature(Candidates& candidates, float temperature, float range, float exponent);

}  // namespace fermata
