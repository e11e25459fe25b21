#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fermata {

struct ChatMessage {
  std::string role;  // system, user, assistant
  std::string content;
};

// Turns a dialogue into the prompt text the model was trained on. Thread-safe.
class ChatTemplate {
 public:
  virtual ~ChatTemplate() = default;
  // The prompt ends where the assistant's answer begins, and has no BOS before it. What is to be tokenised how: see
  // chat_prompt.h. kInvalidArgument with the template's own words if it refuses these messages, or if that would take
  // more work than it may.
  virtual Result<std::string> apply(const std::vector<ChatMessage>& messages) const = 0;
  // Where it is from: "model", or "file" for one that the user gave instead.
  virtual std::string_view origin() const { return "model"; }
};

}  // namespace fermata
