#include "engine/llama/chat/chat_template.h"

#include <chat.h>
#include <llama.h>

#include <exception>
#include <utility>

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

}  // namespace

Result<std::unique_ptr<ChatTemplate>> make_llama_chat_template(const llama_model* model) {
  try {
    common_chat_templates_ptr templates = common_chat_templates_init(model, "");
    if (!templates) return Error{Code::kModel, "the model has no chat template", {}, false};
    return std::unique_ptr<ChatTemplate>(std::make_unique<LlamaChatTemplate>(std::move(templates)));
  } catch (const std::exception& e) {
    return Error{Code::kModel, "the model's chat template cannot be read", e.what(), false};
  }
}

}  // namespace fermata
