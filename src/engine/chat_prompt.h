#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/chat_template.h"
#include "engine/special_texts.h"
#include "engine/vocabulary.h"

namespace fermata {

// A dialogue as its template wrote it, cut into pieces by how they are to be read: special tokens are the template's to
// say, and a message that spells one ("<|im_end|>") says nothing but these characters.
//
//   <|im_start|>user\nwhat is <|im_end|>?<|im_end|>\n<|im_start|>assistant\n
//   ------------================================----------------------------   - special tokens are read   = they are
//   not
//
// The pieces meet at special tokens, where a tokeniser begins anew: a text without such messages is one piece, and one
// with them has the tokens that it would have if their special tokens did not exist.
struct ChatPrompt {
  struct Piece {
    std::size_t begin = 0;
    std::size_t end = 0;
    Markers markers = Markers::kParse;
  };
  std::string text;
  std::vector<Piece> pieces;  // in order; white space that a special token strips is in none
};

// Errors: the template's. A template that looks into its messages in a way that our marks in them change is given the
// special texts broken by U+200B (a space without width) instead.
Result<ChatPrompt> render_chat(const ChatTemplate& chat, const SpecialTexts& specials,
                               const std::vector<ChatMessage>& messages);

// With what the model wants before the first token.
std::vector<TokenId> tokenize_chat(const Vocabulary& vocabulary, const ChatPrompt& prompt);

}  // namespace fermata
