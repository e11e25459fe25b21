#pragma once

#include <cstddef>
#include <cstdint>

namespace fermata {

// While it lives, what its thread asks of the heap is counted, and `operator new` throws std::bad_alloc beyond a bound.
// llama-common's Jinja cannot be interrupted and bounds nothing: a template may loop over a range without end, or
// double a string until memory is gone. It takes something from the heap for every value that it makes, so that this
// ends both, after the same work on every machine, where a clock would end what a busy machine was slow with. A macro
// that calls itself takes from the heap at each depth as well: half of the stack that the thread has left is its bound.
//
// Whoever catches the exception and goes on gets a little more before the next one: its way out may need some. So look
// at exceeded() afterwards, whatever came back. Budgets do not nest. Outside of one nothing is counted.
class WorkBudget {
 public:
  struct Bounds {
    std::uint64_t n_allocations = 0;   // in all
    std::uint64_t n_bytes_live = 0;    // at once
    std::uint64_t n_bytes_copied = 0;  // in all
  };

  explicit WorkBudget(const Bounds& bounds);
  ~WorkBudget();
  WorkBudget(const WorkBudget&) = delete;
  WorkBudget& operator=(const WorkBudget&) = delete;

  bool exceeded() const { return exceeded_; }
  // What was taken so far.
  const Bounds& taken() const { return taken_; }

  // --- for operator new and delete
  // False: it must not be had.
  bool take(std::size_t n_bytes);
  void give_back(std::size_t n_bytes);

 private:
  Bounds bounds_;
  Bounds taken_;
  std::uintptr_t stack_end_;  // the lowest address of the thread's stack
  std::uintptr_t stack_min_;  // nobody takes anything who stands deeper
  bool exceeded_ = false;
};

}  // namespace fermata
