#pragma once

// For tests: a reader that keeps everything it was told.

#include <string>
#include <variant>
#include <vector>

#include "generation/event.h"

namespace fermata::test {

// Everything a reader was told.
struct Heard {
  std::string text;
  std::vector<JournalRow> rows;
  std::vector<StateEvent> states;
  std::vector<FinishEvent> ends;  // one, when it has ended

  void take(const Event& event) {
    if (const auto* said = std::get_if<TextEvent>(&event.content)) {
      text += said->text;
      rows.insert(rows.end(), said->rows.begin(), said->rows.end());
    }
    if (const auto* rewind = std::get_if<RewindEvent>(&event.content)) {
      text.resize(rewind->n_text_bytes);
      rows.resize(static_cast<std::size_t>(rewind->n_rows - rewind->n_prompt));
    }
    if (const auto* state = std::get_if<StateEvent>(&event.content)) states.push_back(*state);
    if (const auto* end = std::get_if<FinishEvent>(&event.content)) ends.push_back(*end);
  }
  std::vector<TokenId> tokens() const {
    std::vector<TokenId> ids;
    for (const JournalRow& row : rows) ids.push_back(row.token);
    return ids;
  }
};

}  // namespace fermata::test
