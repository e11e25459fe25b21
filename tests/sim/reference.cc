#include "reference.h"

#include <memory>
#include <string_view>

#include "base/check.h"
#include "engine/fake/fake_engine.h"
#include "engine/sampling/plain_sampler.h"

namespace fermata::sim {
namespace {

std::string_view shown(const FakeVocabulary& vocabulary, TokenId token) {
  return vocabulary.is_control(token) ? std::string_view() : vocabulary.bytes(token);
}

}  // namespace

Reference run_reference(const Request& request, const FakeModel& model) {
  const auto n_prompt = static_cast<Position>(request.prompt.size());
  FakeOptions options;
  options.model = model;
  options.n_seqs = 1;
  options.n_cells = n_prompt + request.n_tokens_max + 1;
  FakeEngine engine(options);
  const FakeVocabulary& vocabulary = engine.vocabulary();
  const PlainSamplerFactory samplers(vocabulary.n_tokens(), vocabulary.end());
  const std::unique_ptr<Sampler> sampler = *samplers.make(request.sampling);

  Reference reference;
  const auto feed = [&](TokenId token, Position at) {
    const Row row{token, at, SeqId{0}, at + 1 >= n_prompt};
    FERMATA_CHECK(engine.step({&row, 1}, nullptr).has_value());
  };
  for (Position at = 0; at < n_prompt; ++at) {
    const TokenId token = request.prompt[static_cast<std::size_t>(at)];
    feed(token, at);
    FERMATA_CHECK(sampler->accept(token, TokenRole::kPrompt, {}).has_value());
    reference.prompt_tail += shown(vocabulary, token);
  }
  if (reference.prompt_tail.size() > 4) reference.prompt_tail.erase(0, reference.prompt_tail.size() - 4);

  for (Position at = n_prompt; at < n_prompt + request.n_tokens_max; ++at) {
    const Result<Choice> choice = sampler->sample(engine.logits(0), at);
    const Result<void> accepted =
        choice ? sampler->accept(choice->token, TokenRole::kGenerated, choice->carry) : Result<void>(choice.error());
    if (!accepted) {
      reference.end = EndReason::kError;
      reference.error = accepted.error().code;
      break;
    }
    reference.tokens.push_back({choice->token, choice->logprob, choice->entropy, choice->margin});
    reference.raw += shown(vocabulary, choice->token);
    reference.bytes_end.push_back(reference.raw.size());
    if (choice->token == vocabulary.end()) {
      reference.end = EndReason::kStop;
      reference.ends_with_eog = true;
      break;
    }
    feed(choice->token, at);
  }
  cut_at_stops(reference, request.stop);
  return reference;
}

void cut_at_stops(Reference& reference, const std::vector<std::string>& stops) {
  reference.stops = stops;
  if (stops.empty()) return;
  for (std::size_t k = 1; k <= reference.tokens.size(); ++k) {
    const reference::Expected expected = reference.text_after(k, false);
    if (!expected.stopped) continue;
    reference.tokens.resize(k);
    reference.bytes_end.resize(k);
    reference.raw.resize(reference.bytes_end.back());
    reference.end = EndReason::kStop;
    reference.stop_string = expected.stop_string;
    reference.ends_with_eog = false;
    return;
  }
}

reference::Expected Reference::text_after(std::size_t k, bool finished) const {
  const std::size_t n_bytes = k == 0 ? 0 : bytes_end[k - 1];
  if (k == 0) return {};
  return reference::expect(prompt_tail, std::string_view(raw).substr(0, n_bytes), stops, finished);
}

std::size_t Reference::rows_out(std::size_t k, std::size_t n_bytes_out, bool finished) const {
  std::size_t n = 0;
  for (; n < k; ++n) {
    const bool is_whole = bytes_end[n] <= n_bytes_out;
    const bool is_cut = finished && (n == 0 ? 0 : bytes_end[n - 1]) < n_bytes_out;
    const bool is_eog = ends_with_eog && n + 1 == tokens.size();
    if (!(is_whole || is_cut) || is_eog) break;
  }
  return n;
}

}  // namespace fermata::sim
