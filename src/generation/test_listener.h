#pragma once

// For tests: a reader of a generation's events that checks what must hold for every one of them.

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "generation/generation.h"

namespace fermata::test {

struct Listener {
  std::uint64_t n_events = 0;
  std::string text;
  std::vector<std::string> deltas;
  std::vector<JournalRow> rows;  // of positions n_prompt, n_prompt + 1, …
  std::size_t n_bytes_cut = 0;
  std::vector<State> states;
  std::vector<PauseRecord> pauses;
  std::vector<RewindEvent> rewinds;
  std::optional<FinishEvent> end;

  void take(Generation& generation) {
    for (Event& event : generation.take_events()) {
      ASSERT_EQ(event.number, n_events++);
      ASSERT_FALSE(end.has_value()) << "an event after the end";
      if (auto* told = std::get_if<TextEvent>(&event.content)) take_text(generation, *told);
      if (auto* told = std::get_if<StateEvent>(&event.content)) {
        states.push_back(told->state);
        if (told->state == State::kPaused) pauses.push_back(told->pause);
      }
      if (auto* told = std::get_if<RewindEvent>(&event.content)) take_back(generation, *told);
      if (auto* told = std::get_if<FinishEvent>(&event.content)) end = *told;
    }
    ASSERT_EQ(end.has_value(), generation.state() == State::kFinished);
  }

 private:
  void take_back(const Generation& generation, const RewindEvent& told) {
    const Position n_prompt = generation.journal().n_prompt();
    ASSERT_LE(n_prompt, told.n_rows);
    ASSERT_LE(static_cast<std::size_t>(told.n_rows - n_prompt), rows.size());
    ASSERT_LE(told.n_text_bytes, text.size());
    text.resize(told.n_text_bytes);
    ASSERT_TRUE(is_utf8(text)) << "cut inside a character";
    rows.resize(static_cast<std::size_t>(told.n_rows - n_prompt));
    rewinds.push_back(told);
  }
  void take_text(const Generation& generation, TextEvent& told) {
    ASSERT_TRUE(is_utf8(told.text));
    ASSERT_TRUE(!told.text.empty() || !told.rows.empty());
    ASSERT_EQ(told.first_position, generation.journal().n_prompt() + static_cast<Position>(rows.size()));
    ASSERT_EQ(n_bytes_cut, 0u) << "a row after the one that was cut";
    text += told.text;
    deltas.push_back(told.text);
    rows.insert(rows.end(), told.rows.begin(), told.rows.end());
    n_bytes_cut = told.n_bytes_cut;
  }
};

}  // namespace fermata::test
