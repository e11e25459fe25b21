#include "cli/foreign_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

namespace fermata::cli {
namespace {

// docs/coming-from-llama-server.md has this table; a test compares them.
constexpr ForeignFlag kForeignFlags[] = {
    {"-np, --parallel", "", "leave it out: as many generations run at once as fit into the pool (-c)"},
    {"-ngl, --gpu-layers, --n-gpu-layers, -dev, --device, -sm, --split-mode, -ts, --tensor-split, -mg, --main-gpu, "
     "-ot, --override-tensor, -kvo, --kv-offload, -nkvo, --no-kv-offload, -cmoe, --cpu-moe, -ncmoe, --n-cpu-moe, "
     "-fit, --fit",
     "", "leave it out: everything is computed on the CPU"},
    {"-b, --batch-size, -ub, --ubatch-size", "", "leave it out: the scheduler chooses how much a step computes"},
    {"-tb, --threads-batch, --threads-http", "",
     "leave it out: -t counts for prompts and answers; connections need none"},
    {"-C, --cpu-mask, -Cr, --cpu-range, --cpu-strict, --prio, --poll, --numa", "",
     "leave it out, or start fermata with taskset, nice or numactl"},
    {"-fa, --flash-attn", "",
     "leave it out: there is one attention of fermata's own; --attention ggml takes the other"},
    {"-ctk, --cache-type-k, -ctv, --cache-type-v", "", "say --kv TYPE for both, or --kv K/V, as --kv f16/q8_0"},
    {"-kvu, --kv-unified, -no-kvu, --no-kv-unified, -cb, --cont-batching, -nocb, --no-cont-batching", "",
     "leave it out: there is one pool, and batching is always continuous"},
    {"--cache-prompt, --no-cache-prompt, --cache-reuse, -cram, --cache-ram, -sps, --slot-prompt-similarity", "",
     "leave it out: what a prompt begins with is found in the pool if it is there"},
    {"--context-shift, --no-context-shift, --keep, --swa-full", "",
     "leave it out: nothing is dropped from a context; a full one ends the answer with \"length\""},
    {"--jinja, --no-jinja", "", "leave it out: the model's own template is used; --chat-template-file names another"},
    {"--chat-template", "", "write the template to a file and say --chat-template-file FILE"},
    {"--chat-template-kwargs", "", "leave it out: the template is given the dialogue and nothing else"},
    {"--reasoning-format, -rea, --reasoning, --reasoning-effort, --reasoning-budget, --skip-chat-parsing", "serve",
     "leave it out: a thought goes out as reasoning_content, apart from the answer; there is no dial for it"},
    {"--reasoning-format, -rea, --reasoning, --reasoning-effort, --reasoning-budget, --skip-chat-parsing", "run",
     "leave it out: the text is printed as the model writes it, thought included"},
    {"--prefill-assistant, --no-prefill-assistant", "",
     "leave it out: a dialogue that ends with the assistant's message has that one continued"},
    {"--api-key", "serve", "make a key with 'fermata new-key NAME --append FILE' and say --api-key-file FILE"},
    {"--ssl-key-file, --ssl-cert-file", "serve", "put a proxy in front that speaks TLS (docs/security.md)"},
    {"--cors-origins, --cors-methods, --cors-headers, --cors-credentials", "serve",
     "say --allow-origin https://NAME for each web page that may call"},
    {"-a", "serve", "say --model-name NAME, and --alias NAME for others"},
    {"-to, --timeout", "serve", "leave it out: a request says how long it may run in fermata.timeout_ms"},
    {"--sse-ping-interval", "serve", "say --keep-alive SECONDS"},
    {"--metrics", "serve", "leave it out: GET /metrics is always there (scope admin where there are keys)"},
    {"--slots, --no-slots", "serve", "leave it out: GET /v1/generations lists what runs, waits and is paused"},
    {"--props", "serve", "leave it out: GET /v1/capabilities says what is promised; nothing is changed while it runs"},
    {"--slot-save-path", "serve", "leave it out: a paused generation stays in memory; none is written to a file"},
    {"--path, --api-prefix, --media-path, --ui, --no-ui, --webui, --no-webui, --reuse-port", "serve",
     "leave it out: the API is served, at its own paths, and no pages"},
    {"-n, --predict, --n-predict", "serve", "leave it out: each request says its max_tokens (or n_predict)"},
    {"-s, --seed, --samplers, --sampling-seq, --sampler-seq, --ignore-eos, --temp, --temperature, --top-k, --top-p, "
     "--min-p, --top-nsigma, --top-n-sigma, --xtc-probability, --xtc-threshold, --typical, --typical-p, "
     "--repeat-last-n, "
     "--repeat-penalty, --presence-penalty, --frequency-penalty, --dry-multiplier, --dry-base, --dry-allowed-length, "
     "--dry-penalty-last-n, --dynatemp-range, --dynatemp-exp, --mirostat, --mirostat-lr, --mirostat-ent, -l, "
     "--logit-bias, --grammar, --grammar-file, -j, --json-schema, -jf, --json-schema-file",
     "serve", "leave it out: each request says its own (docs/api.md); the defaults are llama.cpp's"},
    {"--embedding, --embeddings, --pooling, --rerank, --reranking", "", "embeddings and ranking are not served"},
    {"-mm, --mmproj, -mmu, --mmproj-url, --image, --audio", "", "images and sound are not served"},
    {"--tools, --mcp-servers-config, -ag, --agent", "", "tools are not served"},
    {"--lora, --lora-scaled, --control-vector, --control-vector-scaled", "", "adapters are not served"},
    {"-md, --model-draft, --spec-draft-model, --spec-type, --draft, --draft-n, --draft-max, --draft-min, --mtp", "",
     "leave it out: there is no speculative decoding"},
    {"-hf, -hfr, --hf-repo, -hff, --hf-file, -hft, --hf-token, -mu, --model-url, -dr, --docker-repo", "",
     "nothing is downloaded: bring the GGUF file and say -m FILE"},
    {"--models-dir, --models-preset, --models-max", "serve", "one server has one model: say -m FILE"},
    {"--rope-scaling, --rope-scale, --rope-freq-base, --rope-freq-scale, --yarn-orig-ctx, --yarn-ext-factor, "
     "--override-kv",
     "", "leave it out: the model's file says it"},
    {"--mlock, --no-mmap, --mmap, -lm, --load-mode, --warmup, --no-warmup, --check-tensors, --repack, -nr, "
     "--no-repack, "
     "--perf, --no-perf",
     "", "leave it out: nothing can be chosen there"},
    {"--log-disable", "serve", "say --log-level off"},
    {"--log-file", "", "send standard error to a file: 2> FILE"},
    {"--log-jsonl", "serve", "say --log-format json"},
    {"-v, --verbose, --log-verbose, -lv, --verbosity, --log-verbosity", "serve", "say --log-level debug"},
    {"--log-colors, --log-prefix, --log-timestamps, --no-log-prefix, --no-log-timestamps", "", "leave it out"},
    {"-p, --prompt", "run", "the prompt stands without a flag: fermata run \"Why is the sky blue?\""},
    {"-f, --file, -bf, --binary-file", "run", "say fermata run - < FILE"},
    {"-sys, --system-prompt", "run", "say --system TEXT"},
    {"-r, --reverse-prompt", "run", "say --stop TEXT"},
    {"-sys, --system-prompt", "chat", "say --system TEXT"},
    {"-r, --reverse-prompt", "chat", "say --field 'stop=[\"TEXT\"]'"},
    {"-p, --prompt, -f, --file, -st, --single-turn, -no-cnv, --no-conversation", "chat",
     "questions are typed, or come on standard input; 'fermata run' answers one prompt"},
    {"-cnv, --conversation, -i, --interactive, -if, --interactive-first, -mli, --multiline-input", "chat",
     "leave it out: it is a dialogue"},
    {"-l", "run", "say --logit-bias TOKEN=BIAS"},
    {"-jf", "run", "say --json-schema-file FILE"},
    {"-cnv, --conversation, -no-cnv, --no-conversation, -st, --single-turn, -i, --interactive, -if, "
     "--interactive-first",
     "run", "leave it out: one prompt, one answer; 'fermata serve' has dialogues, and --raw goes without the template"},
    {"--display-prompt, --no-display-prompt, -e, --escape, --no-escape, -sp, --special, -co, --color", "run",
     "leave it out: the answer is printed as it is, and nothing else"},
};

// What llama.cpp takes for "choose yourself".
struct ForeignValue {
  std::string_view flag;
  std::string_view value;
  std::string_view instead;
};
constexpr ForeignValue kForeignValues[] = {
    {"--ctx:", "not '0'", "leave it out, or say how many tokens all generations share: it does not follow the model"},
    {"--threads:", "not '-1'", "leave it out: it chooses"},
};

template <class Visit>
void for_each_name(std::string_view names, Visit&& visit) {
  for (std::size_t begin = 0; begin < names.size();) {
    const std::size_t end = std::min(names.find(", ", begin), names.size());
    visit(names.substr(begin, end - begin));
    begin = end + 2;
  }
}

// The flag of this name, if there is one.
const CLI::Option* known(const CLI::App& app, std::string_view flag) {
  for (const CLI::Option* option : app.get_options())
    if (option->check_name(std::string(flag))) return option;
  return nullptr;
}

std::string refusal(const std::string& command, const std::string& flag, std::string_view instead) {
  return "'" + command + "' has no flag '" + flag + "', which is llama.cpp's: " + std::string(instead);
}

}  // namespace

std::span<const ForeignFlag> foreign_flags() { return kForeignFlags; }

std::string_view instead_of(std::string_view command, std::string_view flag) {
  for (const ForeignFlag& foreign : kForeignFlags) {
    if (!foreign.command.empty() && command != "fermata " + std::string(foreign.command)) continue;
    bool is_it = false;
    for_each_name(foreign.names, [&](std::string_view name) { is_it = is_it || name == flag; });
    if (is_it) return foreign.instead;
  }
  return {};
}

std::vector<std::string> foreign_flags_among(const std::vector<std::string>& words, const CLI::App& at,
                                             const std::string& name) {
  std::vector<std::string> said;
  bool is_value = false;  // of the flag before it
  for (const std::string& word : words) {
    if (word == "--") break;
    const std::string flag = word.substr(0, word.find('='));
    const CLI::Option* option = word.starts_with('-') ? known(at, flag) : nullptr;
    const std::string_view instead = option || is_value ? "" : instead_of(name, flag);
    if (!instead.empty()) {
      std::string refused = refusal(name, flag, instead);
      if (std::find(said.begin(), said.end(), refused) == said.end()) said.push_back(std::move(refused));
    }
    is_value = option && option->get_type_size() != 0 && flag.size() == word.size();
  }
  return said;
}

std::string instead_of_value(std::string_view said) {
  for (const ForeignValue& foreign : kForeignValues)
    if (said.starts_with(foreign.flag) && said.ends_with(foreign.value)) return "; " + std::string(foreign.instead);
  return {};
}

}  // namespace fermata::cli
