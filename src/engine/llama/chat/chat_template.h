#pragma once

#include <memory>

#include "base/result.h"
#include "engine/chat_template.h"

struct llama_model;

namespace fermata {

// The model's own template (a Jinja program in its metadata), run by llama-common. The model must outlive it. kModel if
// it has none that works.
Result<std::unique_ptr<ChatTemplate>> make_llama_chat_template(const llama_model* model);

}  // namespace fermata
