#include "scheduler/prefix_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace fermata {
namespace {

using Tokens = std::vector<TokenId>;

Tokens tokens(std::initializer_list<int> ids) {
  Tokens result;
  for (const int id : ids) result.push_back(TokenId{id});
  return result;
}

Position n_common(const Tokens& a, const Tokens& b) {
  return static_cast<Position>(std::mismatch(a.begin(), a.begin() + std::min(a.size(), b.size()), b.begin()).first -
                               a.begin());
}

TEST(PrefixTree, FindsTheLongestPrefixAnyEntryHas) {
  PrefixTree tree;
  tree.insert(SeqId{0}, tokens({1, 2, 3, 4}));
  tree.insert(SeqId{1}, tokens({1, 2, 9}));
  EXPECT_FALSE(tree.longest_match({}));
  EXPECT_FALSE(tree.longest_match(tokens({2, 3})));
  EXPECT_EQ(tree.longest_match(tokens({1, 2, 3, 7}))->n_tokens, 3);
  EXPECT_EQ(tree.longest_match(tokens({1, 2, 3, 7}))->seq, SeqId{0});
  EXPECT_EQ(tree.longest_match(tokens({1, 2, 9, 9}))->seq, SeqId{1});
  EXPECT_EQ(tree.longest_match(tokens({1}))->n_tokens, 1);
  EXPECT_EQ(tree.longest_match(tokens({1, 2, 3, 4, 5, 6}))->n_tokens, 4);
}

TEST(PrefixTree, EntriesMayShareAPathAndLeaveOneByOne) {
  PrefixTree tree;
  tree.insert(SeqId{0}, tokens({1, 2, 3}));
  tree.insert(SeqId{1}, tokens({1, 2, 3}));
  tree.truncate(SeqId{0}, 0);
  EXPECT_EQ(tree.longest_match(tokens({1, 2, 3}))->seq, SeqId{1});
  tree.truncate(SeqId{1}, 0);
  EXPECT_FALSE(tree.longest_match(tokens({1, 2, 3})));
  EXPECT_EQ(tree.n_entries(), 0u);
  tree.audit();
}

TEST(PrefixTree, TruncatedEntryIsNotFoundBehindItsEnd) {
  PrefixTree tree;
  tree.insert(SeqId{0}, tokens({1, 2, 3, 4, 5}));
  tree.truncate(SeqId{0}, 2);
  EXPECT_EQ(tree.length(SeqId{0}), 2);
  EXPECT_EQ(tree.longest_match(tokens({1, 2, 3, 4, 5}))->n_tokens, 2);
  tree.truncate(SeqId{0}, 4);  // it is not so long
  EXPECT_EQ(tree.length(SeqId{0}), 2);
  tree.audit();
}

// The same as the tree, with a list of token lists.
struct NaiveTree {
  std::map<SeqId, Tokens> entries;
  Position longest(const Tokens& wanted) const {
    Position best = 0;
    for (const auto& [seq, has] : entries) best = std::max(best, n_common(has, wanted));
    return best;
  }
};

class RandomTree {
 public:
  explicit RandomTree(std::uint64_t seed) : random_(seed), n_kinds_(1 + draw(4)), n_seqs_(1 + draw(40)) {}

  void run(int n_moves) {
    for (int i = 0; i < n_moves; ++i) {
      move(SeqId{draw(n_seqs_)});
      tree_.audit();
      ASSERT_EQ(tree_.n_entries(), naive_.entries.size());
      for (int k = 0; k < 4; ++k) ASSERT_NO_FATAL_FAILURE(compare(any_tokens(random_tokens(draw(6)))));
    }
  }

 private:
  int draw(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  Tokens random_tokens(int n) {
    Tokens result;
    for (int i = 0; i < n; ++i) result.push_back(TokenId{draw(n_kinds_ + 1)});
    return result;
  }
  // Often the beginning of an entry, then something of its own.
  Tokens any_tokens(const Tokens& tail) {
    Tokens result;
    if (!naive_.entries.empty() && draw(4) != 0) {
      const Tokens& other = std::next(naive_.entries.begin(), draw(static_cast<int>(naive_.entries.size())))->second;
      result.assign(other.begin(), other.begin() + draw(static_cast<int>(other.size()) + 1));
    }
    result.insert(result.end(), tail.begin(), tail.end());
    return result;
  }

  void move(SeqId seq) {
    const auto entry = naive_.entries.find(seq);
    if (entry == naive_.entries.end()) {
      const Tokens all = any_tokens(random_tokens(1 + draw(8)));
      tree_.insert(seq, all);
      naive_.entries.emplace(seq, all);
    } else if (draw(2) == 0) {
      const Tokens tail = random_tokens(draw(5));
      entry->second.insert(entry->second.end(), tail.begin(), tail.end());
      tree_.extend(seq, entry->second);
    } else {
      const int n = draw(3) == 0 ? 0 : draw(static_cast<int>(entry->second.size()) + 2);
      tree_.truncate(seq, n);
      if (n < static_cast<int>(entry->second.size())) entry->second.resize(static_cast<std::size_t>(n));
      if (n == 0) naive_.entries.erase(entry);
    }
    ASSERT_EQ(tree_.contains(seq), naive_.entries.contains(seq));
    ASSERT_EQ(tree_.length(seq), naive_.entries.contains(seq) ? std::ssize(naive_.entries[seq]) : 0);
  }

  void compare(const Tokens& wanted) {
    const auto match = tree_.longest_match(wanted);
    const Position longest = naive_.longest(wanted);
    ASSERT_EQ(match.has_value(), longest > 0);
    if (!match) return;
    ASSERT_EQ(match->n_tokens, longest);
    ASSERT_EQ(n_common(naive_.entries.at(match->seq), wanted), longest) << "the entry named has it";
  }

  std::mt19937_64 random_;
  int n_kinds_;
  int n_seqs_;
  PrefixTree tree_;
  NaiveTree naive_;
};

TEST(PrefixTree, AgreesWithAListInRandomPrograms) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    RandomTree tree(seed);
    ASSERT_NO_FATAL_FAILURE(tree.run(60)) << "seed " << seed;
  }
}

TEST(PrefixTree, HoldsThousandsOfEntriesWithACommonBeginning) {
  PrefixTree tree;
  Tokens system(2000, TokenId{7});
  std::mt19937 random(1);
  constexpr int kEntries = 5000;
  for (int i = 0; i < kEntries; ++i) {
    Tokens all = system;
    for (int k = 0; k < 20; ++k) all.push_back(TokenId{static_cast<int>(random() % 50)});
    tree.insert(SeqId{i}, all);
    ASSERT_EQ(tree.longest_match(all)->n_tokens, 2020);
  }
  tree.audit();
  for (int i = 0; i < kEntries; ++i) tree.truncate(SeqId{i}, i % 2 == 0 ? 0 : 2010);
  tree.audit();
  EXPECT_EQ(tree.n_entries(), std::size_t{kEntries / 2});
}

}  // namespace
}  // namespace fermata
