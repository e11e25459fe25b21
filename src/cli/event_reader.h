#pragma once

#include <functional>
#include <string>
#include <vector>

#include "generation/event.h"
#include "runtime/core.h"

namespace fermata::cli {

// What a generation said, gathered.
struct Answer {
  std::string text;
  std::vector<JournalRow> rows;
  FinishEvent end;
  bool finished = false;
  bool silent = false;
};

// Takes events until the generation ends, `until` says so (asked after each event), or the engine no longer answers
// (then answer.silent). `on_text` sees each piece as it comes.
void read_events(Core& core, const Started& started, Answer& answer,
                 const std::function<void(const TextEvent&)>& on_text,
                 const std::function<bool(const Answer&)>& until = {});

}  // namespace fermata::cli
