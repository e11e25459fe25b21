#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/limits.h"
#include "base/result.h"
#include "engine/engine.h"

namespace fermata {

// The pages of one generation that are outside the pool: the end of what it has computed. They go out from the end
// and come in from the front, so it is a stack.
//
//   computed   |======================================================|
//   in pool    |======================|     pages   | top |  …  |  …  |
//              0                    begin()
class PageStack {
 public:
  bool empty() const { return pages_.empty(); }
  Position begin() const { return pages_.back().begin; }  // not of an empty one
  Position end() const { return pages_.front().end; }     // the same
  Position n_tokens() const { return empty() ? 0 : end() - begin(); }
  std::size_t bytes() const { return bytes_; }

  const Page& top() const { return pages_.back(); }
  void push(Page page);  // ends where the top begins
  void pop();
  void clear();
  // Of tokens that are others now: pages that do not end at or before n_tokens go.
  void drop_behind(Position n_tokens);

 private:
  std::vector<Page> pages_;  // the last positions first
  std::size_t bytes_ = 0;
};

// Moves pages between the pool and memory, one at a call: a page is what a turn of the loop can spare (64 tokens of a
// model of 135M parameters are 1.5 MiB). Owner: the engine thread.
class Pager {
 public:
  // n_page_tokens: 1 .. kPageTokens.
  Pager(Engine& engine, std::int32_t n_page_tokens);

  // Copies the last page of the n_in_pool tokens of seq to the stack. The caller trims the sequence to stack.begin().
  Result<void> out(SeqId seq, Position n_in_pool, PageStack& stack);
  // Appends the top of the stack to seq, which has all before it. On an error nothing changed.
  Result<void> in(SeqId seq, PageStack& stack);

  std::uint64_t n_out() const { return n_out_; }
  std::uint64_t n_in() const { return n_in_; }

 private:
  Engine& engine_;
  std::int32_t n_page_tokens_;
  std::uint64_t n_out_ = 0;
  std::uint64_t n_in_ = 0;
};

}  // namespace fermata
