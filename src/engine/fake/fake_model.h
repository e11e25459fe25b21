#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "engine/fake/fake_vocabulary.h"

namespace fermata {

// What a cell of the fake pool holds in place of keys and values. The digest is of the token, its position and the
// digest of the position before, as it was when the cell was written: a token computed upon a wrong cell stays wrong,
// as real keys and values do.
struct FakeCell {
  TokenId token{};
  Position position = 0;
  std::uint64_t digest = 0;
  bool operator==(const FakeCell&) const = default;
};

// The fake forward pass: fills the logits [n_vocab] of a row from the cells of its sequence, in the order in which they
// were read ([position of the row + 1], in position order unless a bug is planted). Must be a pure function. Models are
// plain functions, so that a test may write its own, or compose these.
using FakeModel = std::function<void(std::span<const FakeCell> cells, std::span<float> logits)>;

struct HashModelOptions {
  std::uint64_t seed = 1;             // other seed, other model
  double end_probability = 1.0 / 64;  // of rows whose best token is the end of generation
  float logit_range = 4;              // logits of plain tokens are spread over +- this
};
// Pseudo-random logits that depend on every cell and on their order: any error of the books changes them, and soon the
// tokens.
FakeModel hash_model(std::shared_ptr<const FakeVocabulary> vocabulary, HashModelOptions options = {});

struct FakeScript {
  std::vector<TokenId> prompt;      // applies to sequences that begin with this
  std::vector<TokenId> completion;  // then come these, then the end of generation, for ever
};
// Forced texts. Of the scripts whose prompt fits the longest counts; where none fits, `otherwise`. A script looks only
// at how many tokens stand after its prompt, so an edited or forced token does not stop it.
FakeModel script_model(std::shared_ptr<const FakeVocabulary> vocabulary, std::vector<FakeScript> scripts,
                       FakeModel otherwise);

// Says the user's text again (the tokens after the last user or begin marker and before the last answer marker), then
// ends. Without an answer marker it ends at once.
FakeModel echo_model(std::shared_ptr<const FakeVocabulary> vocabulary);

// Counts after the last answer marker (or from the beginning): "1 2 3 4 ...", n_numbers of them, then ends. 0: never.
FakeModel counter_model(std::shared_ptr<const FakeVocabulary> vocabulary, std::int32_t n_numbers = 0);

}  // namespace fermata
