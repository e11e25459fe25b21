#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "engine/chat_template.h"

struct llama_model;

namespace fermata {

// The model's own template (a Jinja program in its metadata), run by llama-common. The model must outlive it.
// kUnsupported if it has none, kModel with the reason if it has one that cannot be read. llama-common's own log is
// silenced for the process: call it before there are other threads that use it.
Result<std::unique_ptr<ChatTemplate>> make_llama_chat_template(const llama_model* model);

// A template of the user's instead of the model's. kInvalidArgument with the reason if it cannot be read, or refuses
// the plainest of dialogues.
Result<std::unique_ptr<ChatTemplate>> make_llama_chat_template(const llama_model* model, const std::string& source);

}  // namespace fermata
