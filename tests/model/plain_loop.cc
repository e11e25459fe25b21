#include "plain_loop.h"

#include <llama.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>

namespace fermata::oracle {
namespace {

constexpr std::size_t kChunk = 512;

ggml_type type_of(const std::string& name) {
  if (name == "q8_0") return GGML_TYPE_Q8_0;
  if (name == "bf16") return GGML_TYPE_BF16;
  return GGML_TYPE_F16;
}

bool holds_a_stop(const std::string& text, const std::vector<std::string>& stops) {
  return std::any_of(stops.begin(), stops.end(),
                     [&](const std::string& stop) { return text.find(stop) != std::string::npos; });
}

std::string piece(const llama_vocab* vocab, TokenId token) {
  char bytes[512];
  const int n = llama_token_to_piece(vocab, raw(token), bytes, sizeof bytes, 0, false);
  return n > 0 ? std::string(bytes, static_cast<std::size_t>(n)) : std::string();
}

}  // namespace

std::uint64_t hash_row(const float* row, std::size_t n) {
  std::uint64_t hash = 0x9e3779b97f4a7c15u;
  for (std::size_t i = 0; i < n; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, row + i, sizeof bits);
    hash = (hash ^ bits) * 0x100000001b3u;
    hash ^= hash >> 29;
  }
  return hash;
}

PlainLoop::PlainLoop(llama_model* model, const std::string& kv_type, std::int32_t n_cells, std::int32_t n_threads)
    : model_(model), n_vocab_(llama_vocab_n_tokens(llama_model_get_vocab(model))) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(n_cells);
  params.n_batch = params.n_ubatch = kChunk;
  params.n_seq_max = 1;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  params.type_k = params.type_v = type_of(kv_type);
  params.n_threads = params.n_threads_batch = n_threads;
  params.no_perf = true;
  context_ = llama_init_from_model(model, params);
  if (!context_) throw std::runtime_error("libllama made no context for the reference");
}

PlainLoop::~PlainLoop() { llama_free(context_); }

const float* PlainLoop::compute(const std::vector<TokenId>& tokens, std::size_t from) {
  while (from < tokens.size()) {
    const std::size_t n = std::min(kChunk, tokens.size() - from);
    std::vector<llama_token> ids;
    for (std::size_t i = 0; i < n; ++i) ids.push_back(raw(tokens[from + i]));
    // llama_batch_get_one: positions go on from what the sequence holds; only the last row has logits.
    if (llama_decode(context_, llama_batch_get_one(ids.data(), static_cast<std::int32_t>(n))) != 0)
      throw std::runtime_error("the reference could not decode");
    from += n;
  }
  return llama_get_logits_ith(context_, -1);
}

Expected PlainLoop::run(const Request& request, const std::vector<JournalRow>& given, const SamplerFactory& samplers) {
  llama_memory_clear(llama_get_memory(context_), true);
  auto sampler = samplers.make(request.sampling);
  if (!sampler) throw std::runtime_error(sampler.error().message);
  for (const TokenId token : request.prompt) (void)(*sampler)->accept(token, TokenRole::kPrompt, {});

  const llama_vocab* vocab = llama_model_get_vocab(model_);
  Expected expected;
  std::string text;
  std::vector<TokenId> tokens = request.prompt;
  std::size_t n_computed = 0;
  for (const JournalRow& row : given) {
    if (!(*sampler)->accept(row.token, row.role, row.carry)) throw std::runtime_error("what was given is not allowed");
    expected.row_hashes.push_back(0);
    expected.tokens.push_back(row.token);
    tokens.push_back(row.token);
    if (row.role == TokenRole::kPrompt) continue;
    ++expected.n_generated;
    text += piece(vocab, row.token);
  }
  while (expected.n_generated < request.n_tokens_max) {
    const float* logits = compute(tokens, n_computed);
    n_computed = tokens.size();
    const std::size_t n_vocab = static_cast<std::size_t>(n_vocab_);
    const Result<Choice> choice =
        (*sampler)->sample(std::span<const float>(logits, n_vocab), static_cast<Position>(tokens.size()));
    if (!choice) break;
    expected.row_hashes.push_back(hash_row(logits, n_vocab));
    expected.tokens.push_back(choice->token);
    ++expected.n_generated;
    tokens.push_back(choice->token);
    if (llama_vocab_is_eog(vocab, raw(choice->token))) break;
    if (!(*sampler)->accept(choice->token, TokenRole::kGenerated, choice->carry)) break;
    text += piece(vocab, choice->token);
    if (holds_a_stop(text, request.stop)) break;
  }
  return expected;
}

}  // namespace fermata::oracle
