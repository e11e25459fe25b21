// Our attention against ggml's, in one process on one model: two contexts, asked by turns. Also how the team waits.
// usage: attention_bench MODEL [--threads N] [--kv f16|q8_0|bf16] [--spin-us MIN:MAX] [--rounds N] [--only NAME]
//                              [--ours-only] [--cpu-time]
// --cpu-time counts the process's processor time instead of the wall's: with --threads 1, a measure that a busy machine
// hardly changes.
// Prints a line of JSON for each cell: tok/s of both (median over rounds) and the median of the rounds' ratios.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "attention/watched_context.h"
#include "base/worker_team.h"

namespace fermata::attention {
namespace {

struct Options {
  std::string model;
  int n_threads = 2;
  ggml_type kv = GGML_TYPE_F16;
  int n_rounds = 5;
  std::string only;
  bool ours_only = false;
  bool cpu_time = false;
  WorkerTeam::WaitPolicy wait{};
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto value = [&] { return std::string(i + 1 < argc ? argv[++i] : ""); };
    if (flag == "--threads") {
      options.n_threads = std::stoi(value());
    } else if (flag == "--kv") {
      const std::string type = value();
      options.kv = type == "q8_0" ? GGML_TYPE_Q8_0 : type == "bf16" ? GGML_TYPE_BF16 : GGML_TYPE_F16;
    } else if (flag == "--rounds") {
      options.n_rounds = std::stoi(value());
    } else if (flag == "--only") {
      options.only = value();
    } else if (flag == "--ours-only") {
      options.ours_only = true;
    } else if (flag == "--cpu-time") {
      options.cpu_time = true;
    } else if (flag == "--spin-us") {
      const std::string bounds = value();
      options.wait.spin_min_ns = static_cast<std::int64_t>(std::stod(bounds) * 1e3);
      options.wait.spin_max_ns = static_cast<std::int64_t>(std::stod(bounds.substr(bounds.find(':') + 1)) * 1e3);
    } else {
      options.model = flag;
    }
  }
  return options;
}

double seconds(bool cpu_time) {
  timespec now{};
  clock_gettime(cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

llama_token token_at(int seq, int position) { return 300 + (position * 7919 + seq * 104729) % 40000; }

// What a context is brought to before a cell is measured, and what is measured: tok/s.
struct Cell {
  const char* name;
  int n_streams;   // decoding, after depth tokens each; 0: a prefill is measured
  int depth;       // tokens there before
  int n_measured;  // steps of decode, or tokens of prefill
  int chunk;       // rows of a prefill ubatch
};
constexpr Cell kCells[] = {
    {"decode 1 at 50", 1, 50, 40, 512},     {"decode 4 at 50", 4, 50, 25, 512},
    {"decode 8 at 50", 8, 50, 20, 512},     {"decode 1 at 900", 1, 900, 40, 512},
    {"decode 4 at 900", 4, 900, 20, 512},   {"decode 8 at 900", 8, 900, 12, 512},
    {"decode 1 at 4096", 1, 4096, 20, 512}, {"prefill 30", 0, 0, 30, 512},
    {"prefill 500", 0, 0, 500, 512},        {"prefill 3000", 0, 0, 3000, 512},
    {"prefill 3000 by 64", 0, 0, 3000, 64}, {"prefill 256 at 4096", 0, 4096, 256, 128},
};

void prefill(WatchedContext& context, int seq, int begin, int end, int chunk) {
  std::vector<BatchRow> rows;
  for (int at = begin; at < end; at += chunk) {
    rows.clear();
    for (int i = at; i < std::min(end, at + chunk); ++i) rows.push_back({token_at(seq, i), i, seq});
    if (context.decode(rows, false) != 0) std::exit(1);
  }
}

// The state that the cell starts from; kept between rounds, so that it is computed once.
void prepare(WatchedContext& context, const Cell& cell) {
  context.clear();
  for (int seq = 0; seq < std::max(1, cell.n_streams); ++seq) prefill(context, seq, 0, cell.depth, 512);
}

double measure(WatchedContext& context, const Cell& cell, bool cpu_time) {
  const double begin = seconds(cpu_time);
  if (cell.n_streams == 0) {
    prefill(context, 0, cell.depth, cell.depth + cell.n_measured, cell.chunk);
  } else {
    std::vector<BatchRow> rows(cell.n_streams);
    for (int step = 0; step < cell.n_measured; ++step) {
      for (int seq = 0; seq < cell.n_streams; ++seq) {
        rows[seq] = {token_at(seq, cell.depth + step), cell.depth + step, seq};
      }
      if (context.decode(rows) != 0) std::exit(1);
    }
  }
  const double tokens = cell.n_measured * std::max(1, cell.n_streams);
  const double rate = tokens / (seconds(cpu_time) - begin);
  llama_memory_t memory = llama_get_memory(context.raw());
  for (int seq = 0; seq < std::max(1, cell.n_streams); ++seq) llama_memory_seq_rm(memory, seq, cell.depth, -1);
  return rate;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void bench(const Options& options, const Cell& cell, WatchedContext& ours, WatchedContext* theirs) {
  prepare(ours, cell);
  if (theirs != nullptr) prepare(*theirs, cell);
  std::vector<double> our_rates;
  std::vector<double> their_rates;
  std::vector<double> ratios;
  for (int round = 0; round < options.n_rounds; ++round) {
    our_rates.push_back(measure(ours, cell, options.cpu_time));
    if (theirs == nullptr) continue;
    their_rates.push_back(measure(*theirs, cell, options.cpu_time));
    ratios.push_back(our_rates.back() / their_rates.back());
  }
  std::printf("{\"cell\": \"%s\", \"kv\": \"%s\", \"threads\": %d, \"ours\": %.1f", cell.name,
              ggml_type_name(options.kv), options.n_threads, median(our_rates));
  if (theirs != nullptr) std::printf(", \"ggml\": %.1f, \"ratio\": %.2f", median(their_rates), median(ratios));
  std::printf("}\n");
  std::fflush(stdout);
}

int run(const Options& options) {
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  WorkerTeam::configure({.n_threads = options.n_threads, .wait = options.wait});
  llama_backend_init();
  llama_model* model = llama_model_load_from_file(options.model.c_str(), llama_model_default_params());
  if (model == nullptr) return 1;
  const ContextOptions context{
      .n_cells = 8192, .n_threads = options.n_threads, .key_type = options.kv, .value_type = options.kv};
  // A context made before the backend is registered has ggml's attention.
  std::unique_ptr<WatchedContext> theirs;
  if (!options.ours_only) theirs = std::make_unique<WatchedContext>(model, context);
  register_backend();
  WatchedContext ours(model, context);
  for (const Cell& cell : kCells) {
    if (options.only.empty() || std::string(cell.name).find(options.only) != std::string::npos) {
      bench(options, cell, ours, theirs.get());
    }
  }
  return 0;
}

}  // namespace
}  // namespace fermata::attention

int main(int argc, char** argv) { return fermata::attention::run(fermata::attention::parse(argc, argv)); }
