#include "engine/fake/fake_model.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "engine/fake/fake_hash.h"

namespace fermata {

namespace {

constexpr float kNever = -30;  // e^-30: no sampler meets it in practice, yet it is a finite logit
constexpr float kForced = 30;

void force(std::span<float> logits, TokenId token) {
  std::fill(logits.begin(), logits.end(), kNever);
  logits[static_cast<std::size_t>(raw(token))] = kForced;
}

// Where the completion begins: behind the last answer marker.
std::optional<std::size_t> completion_begin(const FakeVocabulary& vocabulary, std::span<const FakeCell> cells) {
  for (std::size_t i = cells.size(); i > 0; --i)
    if (cells[i - 1].token == vocabulary.answer()) return i;
  return std::nullopt;
}

bool fits(const FakeScript& script, std::span<const FakeCell> cells) {
  return script.prompt.size() <= cells.size() &&
         std::equal(script.prompt.begin(), script.prompt.end(), cells.begin(),
                    [](TokenId token, const FakeCell& cell) { return token == cell.token; });
}

// The n-th byte of "1 2 3 4 ...", n_numbers long; nothing behind its end.
std::optional<char> counting_byte(std::size_t n, std::int32_t n_numbers) {
  std::size_t first = 1;  // of the numbers with as many digits
  for (std::size_t n_digits = 1;; ++n_digits, first *= 10) {
    const std::size_t n_bytes = 9 * first * (n_digits + 1);
    if (n >= n_bytes) {
      n -= n_bytes;
      continue;
    }
    const std::string number = std::to_string(first + n / (n_digits + 1)) + " ";
    const bool is_last = n_numbers > 0 && first + n / (n_digits + 1) == static_cast<std::size_t>(n_numbers);
    const bool is_behind = n_numbers > 0 && first + n / (n_digits + 1) > static_cast<std::size_t>(n_numbers);
    const char byte = number[n % (n_digits + 1)];
    if (is_behind || (is_last && byte == ' ')) return std::nullopt;
    return byte;
  }
}

}  // namespace

FakeModel hash_model(std::shared_ptr<const FakeVocabulary> vocabulary, HashModelOptions options) {
  return [vocabulary = std::move(vocabulary), options](std::span<const FakeCell> cells, std::span<float> logits) {
    std::uint64_t state = mix(options.seed, cells.size());
    for (const FakeCell& cell : cells) state = mix(state, cell.digest);
    const float scale = options.logit_range * 0x1p-31f;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const auto centred = static_cast<std::int32_t>(mix(state, i) >> 32);  // +- 2^31
      logits[i] =
          vocabulary->is_control(TokenId{static_cast<std::int32_t>(i)}) ? kNever : static_cast<float>(centred) * scale;
    }
    if (unit(mix(state, 0x656e64)) < options.end_probability)
      logits[static_cast<std::size_t>(raw(vocabulary->end()))] = 2 * options.logit_range;
  };
}

FakeModel script_model(std::shared_ptr<const FakeVocabulary> vocabulary, std::vector<FakeScript> scripts,
                       FakeModel otherwise) {
  std::stable_sort(scripts.begin(), scripts.end(),
                   [](const FakeScript& a, const FakeScript& b) { return a.prompt.size() > b.prompt.size(); });
  return [vocabulary = std::move(vocabulary), scripts = std::move(scripts), otherwise = std::move(otherwise)](
             std::span<const FakeCell> cells, std::span<float> logits) {
    for (const FakeScript& script : scripts) {
      if (!fits(script, cells)) continue;
      const std::size_t n_done = cells.size() - script.prompt.size();
      return force(logits, n_done < script.completion.size() ? script.completion[n_done] : vocabulary->end());
    }
    otherwise(cells, logits);
  };
}

FakeModel echo_model(std::shared_ptr<const FakeVocabulary> vocabulary) {
  return [vocabulary = std::move(vocabulary)](std::span<const FakeCell> cells, std::span<float> logits) {
    const auto begin = completion_begin(*vocabulary, cells);
    if (!begin) return force(logits, vocabulary->end());
    const std::size_t text_end = *begin - 1;
    std::size_t text_begin = text_end;
    while (text_begin > 0 && !vocabulary->is_control(cells[text_begin - 1].token)) --text_begin;
    const std::size_t next = text_begin + (cells.size() - *begin);
    force(logits, next < text_end ? cells[next].token : vocabulary->end());
  };
}

FakeModel counter_model(std::shared_ptr<const FakeVocabulary> vocabulary, std::int32_t n_numbers) {
  return [vocabulary = std::move(vocabulary), n_numbers](std::span<const FakeCell> cells, std::span<float> logits) {
    const std::size_t begin = completion_begin(*vocabulary, cells).value_or(0);
    const auto byte = counting_byte(cells.size() - begin, n_numbers);
    force(logits, byte ? vocabulary->byte(static_cast<unsigned char>(*byte)) : vocabulary->end());
  };
}

}  // namespace fermata
