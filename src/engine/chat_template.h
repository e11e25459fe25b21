#pragma once

#include <string>
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
  // The prompt ends where the assistant's answer begins. To be tokenised with Markers::kParse. kInvalidArgument with
  // the template's own words if it refuses these messages.
  virtual Result<std::string> apply(const std::vector<ChatMessage>& messages) const = 0;
};

}  // namespace fermata
