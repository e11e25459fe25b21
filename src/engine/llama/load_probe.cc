// For tests: tries to load a model file and says how it went. Whatever the file holds, it must end with 0.
#include <cstdio>

#include "engine/llama/engine.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  fermata::LlamaOptions options;
  options.model_path = argv[1];
  options.n_cells = 256;
  options.n_sequences = 2;
  options.n_threads = 1;
  options.self_test = fermata::SelfTest::kNever;
  const auto loaded = fermata::LlamaEngine::load(options, {});
  std::printf("%s\n", loaded ? "loaded" : loaded.error().message.c_str());
  if (!loaded) std::printf("%s\n", loaded.error().detail.c_str());
  return 0;
}
