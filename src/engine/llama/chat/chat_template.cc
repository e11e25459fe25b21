#include "engine/llama/chat/chat_template.h"

#include <chat.h>
#include <llama.h>
#include <log.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/limits.h"
#include "engine/llama/chat/template_check.h"
#include "engine/llama/chat/work_budget.h"

namespace fermata {
namespace {

constexpr const char* kNeverEnds = "it takes more work than a template may; does it end?";

WorkBudget::Bounds bounds_of_loading() {
  return {limits::kTemplateAllocations, limits::kTemplateBytesLive, limits::kTemplateBytesCopied};
}

// Long dialogues take more.
WorkBudget::Bounds bounds_of(const std::vector<ChatMessage>& messages) {
  std::size_t n_bytes = 0;
  for (const ChatMessage& message : messages) n_bytes += message.content.size();
  const std::size_t n = messages.size();
  return {
      std::min(limits::kTemplateAllocations + n * limits::kTemplateAllocationsPerMessage,
               limits::kTemplateAllocationsMax),
      limits::kTemplateBytesLive + n_bytes * limits::kTemplateCopies,
      std::min(limits::kTemplateBytesCopied + n * limits::kTemplateBytesPerMessage, limits::kTemplateBytesCopiedMax)};
}

Error refusal(std::string why) {
  return Error{Code::kInvalidArgument, "the chat template refuses these messages", std::move(why), false};
}

class LlamaChatTemplate final : public ChatTemplate {
 public:
  LlamaChatTemplate(common_chat_templates_ptr templates, bool is_users)
      : templates_(std::move(templates)), is_users_(is_users) {}

  Result<std::string> apply(const std::vector<ChatMessage>& messages) const override {
    WorkBudget budget(bounds_of(messages));
    try {
      std::string prompt = render(messages);
      if (!budget.exceeded()) return prompt;
    } catch (const std::exception& e) {
      if (!budget.exceeded()) return refusal(e.what());
    }
    return refusal(kNeverEnds);
  }

  std::string_view origin() const override { return is_users_ ? "file" : "model"; }

 private:
  std::string render(const std::vector<ChatMessage>& messages) const {
    common_chat_templates_inputs inputs;
    for (const ChatMessage& message : messages) {
      common_chat_msg converted;
      converted.role = message.role;
      converted.content = message.content;
      inputs.messages.push_back(std::move(converted));
    }
    return common_chat_templates_apply(templates_.get(), inputs).prompt;
  }

  common_chat_templates_ptr templates_;
  bool is_users_;
};

// llama-common tells its own log why, and throws what has lost its words.
std::string why_broken(const char* source) {
  const WorkBudget budget(bounds_of_loading());
  try {
    const common_chat_template read_again(source, "", "");
  } catch (const std::exception& e) {
    if (!budget.exceeded()) return e.what();
  }
  return budget.exceeded() ? kNeverEnds : "";
}

// `given` empty: the model's own, which is `source`.
Result<std::unique_ptr<ChatTemplate>> load(const llama_model* model, const char* source, const std::string& given) {
  constexpr int kSayNothing = -1;  // below every level: what matters comes back as an Error
  common_log_set_verbosity_thold(kSayNothing);
  common_chat_templates_ptr templates;
  {
    const WorkBudget budget(bounds_of_loading());
    try {
      templates = common_chat_templates_init(model, given);
    } catch (const std::exception&) {
      templates.reset();
    }
    if (budget.exceeded()) templates.reset();
  }
  if (!templates) return Error{Code::kModel, "the model's chat template is broken", why_broken(source), false};
  return std::unique_ptr<ChatTemplate>(std::make_unique<LlamaChatTemplate>(std::move(templates), !given.empty()));
}

Error users(const Error& error) {
  return {Code::kInvalidArgument, "this chat template cannot be used", error.detail, false};
}

}  // namespace

Result<std::unique_ptr<ChatTemplate>> make_llama_chat_template(const llama_model* model) {
  const char* source = llama_model_chat_template(model, nullptr);
  if (source == nullptr) source = llama_model_chat_template(model, "tool_use");
  // llama-common would take a template of its own instead.
  if (source == nullptr) return Error{Code::kUnsupported, "the model has no chat template", {}, false};
  for (const char* name : {static_cast<const char*>(nullptr), "tool_use"}) {  // llama-common reads both
    const char* one = llama_model_chat_template(model, name);
    if (auto fits = check_template_nesting(one ? one : ""); !fits) return fits.error();
  }
  return load(model, source, "");
}

Result<std::unique_ptr<ChatTemplate>> make_llama_chat_template(const llama_model* model, const std::string& source) {
  // llama-common would take the model's own, or its own.
  if (source.find_first_not_of(" \t\r\n") == std::string::npos || source == "chatml")
    return users({Code::kInvalidArgument, "", "it has no template in it", false});
  if (source.find('\0') != std::string::npos) return users({Code::kInvalidArgument, "", "it is no text", false});
  if (auto fits = check_template_nesting(source); !fits) return users(fits.error());
  auto made = load(model, source.c_str(), source);
  if (!made) return users(made.error());
  if (auto plain = (*made)->apply({{"user", "Hello"}}); !plain) return users(plain.error());
  return made;
}

}  // namespace fermata
