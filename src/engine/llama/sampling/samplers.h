#pragma once

#include <memory>

#include "engine/sampling/sampler.h"

struct llama_model;

namespace fermata {

// The samplers of a loaded model: ChainSamplerFactory over its vocabulary, with json_schema by llama-common. The model
// must outlive the factory and what it makes, and must have a tokenizer.
std::unique_ptr<SamplerFactory> make_llama_samplers(const llama_model* model);

}  // namespace fermata
