#include "engine/llama/chat/chat_template.h"

#include <chat.h>
#include <llama.h>
#include <log.h>

#include <exception>
#include <utility>

#include "engine/llama/chat/template_check.h"

namespace fermata {
namespace {

class LlamaChatTemplate final : public ChatTemplate {
 public:
  explicit LlamaChatTemplate(common_chat_templates_ptr templates) : templates_(std::move(templates)) {}

  Result<std::string> apply(const std::vector<ChatMessage>& messages) const override {
    common_chat_templates_inputs inputs;
    for (const ChatMessage& message : messages) {
      common_chat_msg converted;
      converted.role = message.role;
      converted.content = message.content;
      inputs.messages.push_back(std::move(converted));
    }
    try {
      return common_chat_templates_apply(templates_.get(), inputs).prompt;
    } catch (const std::exception& e) {
      return Error{Code::kInvalidArgument, "the model's chat template refuses these messages", e.what(), false};
    }
  }

 private:
  common_chat_templates_ptr templates_;
};

// llama-common tells its own log why, and throws what has lost its words.
std::string why_broken(const char* source) {
  try {
    const common_chat_template read_again(source, "", "");
  } catch (const std::exception& e) {
    return e.what();
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<ChatTemplate>> make_llama_chat_template(const llama_model* model) {
  constexpr int kSayNothing = -1;  // below every level: what matters comes back as an Error
  common_log_set_verbosity_thold(kSayNothing);
  const char* source = llama_model_chat_template(model, nullptr);
  if (source == nullptr) source = llama_model_chat_template(model, "tool_use");
  // llama-common would take a template of its own instead.
  if (source == nullptr) return Error{Code::kUnsupported, "the model has no chat template", {}, false};
  for (const char* name : {static_cast<const char*>(nullptr), "tool_use"}) {  // llama-common reads both
    const char* one = llama_model_chat_template(model, name);
    if (auto fits = check_template_nesting(one ? one : ""); !fits) return fits.error();
  }
  try {
    common_chat_templates_ptr templates = common_chat_templates_init(model, "");
    if (!templates) return Error{Code::kModel, "the model's chat template is broken", why_broken(source), false};
    return std::unique_ptr<ChatTemplate>(std::make_unique<LlamaChatTemplate>(std::move(templates)));
  } catch (const std::exception&) {
    return Error{Code::kModel, "the model's chat template is broken", why_broken(source), false};
  }
}

}  // namespace fermata
