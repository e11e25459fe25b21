// Microseconds per token of the sampler alone, on rows shaped like a model's: `sampler_bench MODEL.gguf`.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "engine/llama/sampling/samplers.h"
#include "engine/sampling/measures.h"
#include "llama.h"

namespace fermata {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::vector<float>> make_rows(std::size_t n_vocab, std::size_t n_rows) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 2.5f);
  std::vector<std::vector<float>> rows(n_rows, std::vector<float>(n_vocab));
  for (auto& row : rows) {
    for (float& logit : row) logit = normal(random);
    for (int i = 0; i < 5; ++i) row[random() % n_vocab] = 14 + normal(random);  // what the text leads to
  }
  return rows;
}

double median_us(std::size_t n, const std::function<void(std::size_t)>& work) {
  std::vector<double> times;
  for (std::size_t i = 0; i < n; ++i) {
    const auto begin = Clock::now();
    work(i);
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(n / 2), times.end());
  return times[n / 2];
}

void report(const SamplerFactory& factory, const char* name, const SamplingParams& params,
            const std::vector<std::vector<float>>& rows) {
  auto made = factory.make(params);
  FERMATA_CHECK(made.has_value());
  Sampler& sampler = **made;
  std::vector<double> times;
  std::vector<Choice> choices;
  for (Position position = 0; position < 600; ++position) {
    const auto begin = Clock::now();
    auto choice = sampler.sample(rows[static_cast<std::size_t>(position) % rows.size()], position);
    if (!choice || !sampler.accept(choice->token, TokenRole::kGenerated, choice->carry)) break;
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    choices.push_back(*choice);
  }
  std::sort(times.begin(), times.end());
  const std::size_t n = times.size();
  double sum = 0;
  for (const double time : times) sum += time;
  const auto folded = std::move(*factory.make(params));
  const auto begin = Clock::now();
  for (const Choice& choice : choices) (void)folded->accept(choice.token, TokenRole::kGenerated, choice.carry);
  const double accept_us =
      std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / static_cast<double>(n);
  const double clone_us = median_us(50, [&](std::size_t) { (void)sampler.clone(); });
  std::printf("%-34s %8.1f us a token (mean %.1f, p99 %.1f, most %.1f; %zu tokens), accept %.2f, clone %.1f\n", name,
              times[n / 2], sum / static_cast<double>(n), times[n * 99 / 100], times[n - 1], n, accept_us, clone_us);
}

// For comparison: the same defaults by libllama's chain, as its server runs it.
void report_libllama(const std::vector<std::vector<float>>& rows) {
  llama_sampler* chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
  llama_sampler_chain_add(chain, llama_sampler_init_top_k(40));
  llama_sampler_chain_add(chain, llama_sampler_init_top_p(0.95f, 1));
  llama_sampler_chain_add(chain, llama_sampler_init_min_p(0.05f, 1));
  llama_sampler_chain_add(chain, llama_sampler_init_temp(0.8f));
  llama_sampler_chain_add(chain, llama_sampler_init_dist(1));
  std::vector<llama_token_data> data(rows[0].size());
  const double us = median_us(400, [&](std::size_t i) {
    const auto& row = rows[i % rows.size()];
    for (std::size_t id = 0; id < row.size(); ++id) data[id] = {static_cast<llama_token>(id), row[id], 0};
    llama_token_data_array array{data.data(), data.size(), -1, false};
    llama_sampler_apply(chain, &array);
  });
  llama_sampler_free(chain);
  std::printf("%-34s %8.1f us a token, without measures\n", "libllama's default chain", us);
}

}  // namespace
}  // namespace fermata

int main(int argc, char** argv) {
  using namespace fermata;
  if (argc != 2) return std::fprintf(stderr, "usage: sampler_bench MODEL.gguf\n"), 2;
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_model_params model_params = llama_model_default_params();
  model_params.vocab_only = true;
  llama_model* model = llama_model_load_from_file(argv[1], model_params);
  if (model == nullptr) return std::fprintf(stderr, "cannot load %s\n", argv[1]), 1;
  const auto factory = make_llama_samplers(model);
  const auto rows = make_rows(static_cast<std::size_t>(llama_vocab_n_tokens(llama_model_get_vocab(model))), 64);
  RowScan scan;
  double sink = 0;
  std::printf("%s, %zu tokens\n", row_scan_target(), rows[0].size());
  std::printf("%-34s %8.1f us\n", "scan", median_us(400, [&](std::size_t i) { scan_row(rows[i % 64], scan); }));
  std::printf("%-34s %8.1f us\n", "scan + measures", median_us(400, [&](std::size_t i) {
                scan_row(rows[i % 64], scan);
                sink += static_cast<double>(measure_row(rows[i % 64], scan).entropy);
              }));
  std::printf("%-34s %8.1f us\n", "log_softmax_top(20)", median_us(400, [&](std::size_t i) {
                sink += static_cast<double>(log_softmax_top(rows[i % 64], 20)[0].logprob);
              }));
  SamplingParams greedy{.temperature = 0};
  report(*factory, "greedy", greedy, rows);
  report(*factory, "default", {}, rows);
  report_libllama(rows);
  report(*factory, "default + penalties", {.repeat_penalty = 1.1f, .frequency_penalty = 0.2f}, rows);
  report(*factory, "default + DRY", {.dry_multiplier = 0.8f}, rows);
  report(*factory, "top_k 0", {.top_k = 0}, rows);
  report(*factory, "temperature only", {.top_k = 0, .top_p = 1, .min_p = 0}, rows);
  report(*factory, "typical 0.5, top_k 0", {.top_k = 0, .typical_p = 0.5f}, rows);
  report(*factory, "top-n-sigma 1", {.top_k = 0, .top_n_sigma = 1}, rows);
  report(*factory, "mirostat 1", {.mirostat = 1}, rows);
  report(*factory, "mirostat 2", {.mirostat = 2}, rows);
  report(*factory, "adaptive-p", {.adaptive_target = 0.3f}, rows);
  SamplingParams letters{};
  letters.grammar = "root ::= [a-z ]+";
  report(*factory, "grammar [a-z ]+", letters, rows);
  SamplingParams json{};
  json.json_schema =
      R"({"type":"object","properties":{"name":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}}},"required":["name","tags"]})";
  report(*factory, "json_schema", json, rows);
  SamplingParams counted{};
  counted.grammar = "root ::= [a-z ]{500,10000}";
  report(*factory, "grammar [a-z ]{500,10000}", counted, rows);
  std::printf("(%g)\n", sink);
  llama_model_free(model);
  return 0;
}
