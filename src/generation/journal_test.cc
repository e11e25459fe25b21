#include "generation/journal.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace fermata {
namespace {

JournalRow row_of(int token, Origin origin) {
  JournalRow row;
  row.token = TokenId{token};
  row.origin = origin;
  row.role = origin == Origin::kPrompt ? TokenRole::kPrompt : TokenRole::kGenerated;
  return row;
}

Journal example() {
  Journal journal;
  journal.append(row_of(1, Origin::kPrompt), "prompt");
  journal.append(row_of(2, Origin::kPrompt), "prompt");
  journal.append(row_of(3, Origin::kSampled), "Hel");
  journal.append(row_of(4, Origin::kForced), "");
  journal.append(row_of(5, Origin::kInjected), "lo ");
  return journal;
}

TEST(JournalTest, PromptRowsAddNoBytes) {
  const Journal journal = example();
  EXPECT_EQ(journal.size(), 5);
  EXPECT_EQ(journal.n_prompt(), 2);
  EXPECT_EQ(journal.n_generated(), 3);
  EXPECT_EQ(journal.text(), "Hello ");
  EXPECT_EQ(journal.bytes_end(1), 0u);
  EXPECT_EQ(journal.tokens()[4], TokenId{5});
  EXPECT_EQ(journal[3].origin, Origin::kForced);
}

TEST(JournalTest, BytesAndTokensTurnIntoEachOther) {
  const Journal journal = example();
  const std::vector<Position> expected{2, 2, 2, 4, 4, 4, 5};  // of each byte, then of the end
  for (std::size_t byte = 0; byte < expected.size(); ++byte) EXPECT_EQ(journal.token_at_byte(byte), expected[byte]);
  EXPECT_EQ(journal.bytes_begin(0), 0u);
  EXPECT_EQ(journal.bytes_begin(3), 3u);
  EXPECT_EQ(journal.bytes_end(3), 3u);
  EXPECT_EQ(journal.bytes_begin(5), 6u);
  EXPECT_EQ(Journal().token_at_byte(0), 0);
}

TEST(JournalTest, RandomAppendsAndTruncationsEqualAFreshJournal) {
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (int run = 0; run < 200; ++run) {
    Journal journal;
    std::vector<std::pair<JournalRow, std::string>> rows;
    const std::size_t n_prompt = below(4);
    for (int move = 0; move < 60; ++move) {
      if (below(8) == 0) {
        const std::size_t n_kept = below(rows.size() + 1);
        rows.resize(n_kept);
        journal.truncate(static_cast<Position>(n_kept));
      } else {
        const Origin origin = rows.size() < n_prompt ? Origin::kPrompt : Origin::kSampled;
        rows.emplace_back(row_of(static_cast<int>(below(100)), origin), std::string(below(5), 'a'));
        journal.append(rows.back().first, rows.back().second);
      }
      Journal fresh;
      for (const auto& [row, bytes] : rows) fresh.append(row, bytes);
      ASSERT_EQ(journal.size(), fresh.size());
      ASSERT_EQ(journal.n_prompt(), fresh.n_prompt());
      ASSERT_EQ(journal.text(), fresh.text());
      for (Position i = 0; i < fresh.size(); ++i) {
        ASSERT_EQ(journal.bytes_end(i), fresh.bytes_end(i));
        ASSERT_EQ(journal.tokens()[static_cast<std::size_t>(i)], fresh[i].token);
      }
    }
    for (std::size_t byte = 0; byte < journal.text().size(); ++byte) {
      const Position at = journal.token_at_byte(byte);
      ASSERT_LE(journal.bytes_begin(at), byte);
      ASSERT_LT(byte, journal.bytes_end(at));
    }
  }
}

TEST(JournalTest, OriginsHaveTheNamesOfTheWire) {
  EXPECT_EQ(to_string(Origin::kPrompt), "prompt");
  EXPECT_EQ(to_string(Origin::kSampled), "sampled");
  EXPECT_EQ(to_string(Origin::kForced), "forced");
  EXPECT_EQ(to_string(Origin::kEdited), "edited");
  EXPECT_EQ(to_string(Origin::kInjected), "injected");
}

}  // namespace
}  // namespace fermata
