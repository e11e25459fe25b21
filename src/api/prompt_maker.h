#pragma once

#include <string_view>
#include <vector>

#include "api/openai/call.h"
#include "base/result.h"
#include "engine/chat_template.h"
#include "engine/special_texts.h"
#include "runtime/core.h"

namespace fermata::api {

// How models that think before they answer mark it.
inline constexpr std::string_view kThoughtBegin = "<think>";
inline constexpr std::string_view kThoughtEnd = "</think>";

// About how much work it is to make the prompt and the grammar of a call, in bytes of plain text: a template looks at
// each message several times, however short it is, and a grammar is more than read.
std::size_t n_work(const Call& call);

struct Prompt {
  std::vector<TokenId> tokens;
  bool opens_thought = false;  // the template begins the model's thought for it
};

// Makes generations of calls: template, tokens, grammar. It does not change once it is made, and any thread may use it;
// what takes long is done here, on the threads of the work lanes.
class PromptMaker {
 public:
  // `chat` may be null: then only raw prompts are taken. Both outlive this.
  PromptMaker(Core& core, const ChatTemplate* chat);

  // Of a call that has its seed and its prefix group. The errors are the client's to read.
  Result<Generation> prepare(const Call& call, Prompt& prompt) const;
  // The vocabulary has a token that begins a thought.
  bool model_thinks() const { return model_thinks_; }

 private:
  Result<Prompt> prompt_of(const Call& call) const;
  Result<void> check_bytes(std::size_t n_bytes, std::string_view field) const;

  Core& core_;
  const ChatTemplate* chat_;
  SpecialTexts specials_;              // of the vocabulary
  std::size_t n_token_bytes_max_ = 1;  // likewise
  bool model_thinks_ = false;
};

}  // namespace fermata::api
