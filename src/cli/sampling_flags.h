#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "engine/sampling/params.h"

namespace fermata::cli {

// Command-line flags for every field of SamplingParams, under llama.cpp's names. What they were set to lands in
// `params` when the command line is parsed; `params` and this must outlive that.
class SamplingFlags {
 public:
  void add_to(CLI::App& app, SamplingParams& params);

 private:
  std::vector<std::string> logit_bias_;  // "id=bias"
  std::string grammar_file_;
  std::string schema_file_;
};

}  // namespace fermata::cli
