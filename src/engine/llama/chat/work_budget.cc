#include "engine/llama/chat/work_budget.h"

#include <malloc.h>
#include <pthread.h>

#include <cstdlib>
#include <new>

#include "base/check.h"

namespace fermata {

static thread_local WorkBudget* t_budget = nullptr;

namespace {

constexpr std::uint64_t kGraceAllocations = 10'000;  // for words about what went wrong
constexpr std::uint64_t kGraceBytes = 4 << 20;

// Of this thread's stack, which grows downwards. Without knowing (no such machine is known) nothing is bounded.
std::uintptr_t lowest_stack_address() {
  pthread_attr_t attributes;
  void* lowest = nullptr;
  std::size_t n_bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  const bool known = pthread_attr_getstack(&attributes, &lowest, &n_bytes) == 0;
  pthread_attr_destroy(&attributes);
  return known ? reinterpret_cast<std::uintptr_t>(lowest) : 0;
}

// noinline: the frame of whoever asks.
[[gnu::noinline]] std::uintptr_t here() { return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)); }

}  // namespace

WorkBudget::WorkBudget(const Bounds& bounds)
    : bounds_(bounds), stack_end_(lowest_stack_address()), stack_min_(stack_end_ + (here() - stack_end_) / 2) {
  FERMATA_CHECK(t_budget == nullptr);
  t_budget = this;
}

WorkBudget::~WorkBudget() { t_budget = nullptr; }

bool WorkBudget::take(std::size_t n_bytes) {
  if (here() < stack_min_) {
    exceeded_ = true;
    stack_min_ = stack_end_ + (stack_min_ - stack_end_) / 2;  // its way out may stand a little deeper
    return false;
  }
  const bool fits = taken_.n_allocations < bounds_.n_allocations && n_bytes <= bounds_.n_bytes_live &&
                    taken_.n_bytes_live <= bounds_.n_bytes_live - n_bytes && n_bytes <= bounds_.n_bytes_copied &&
                    taken_.n_bytes_copied <= bounds_.n_bytes_copied - n_bytes;
  if (!fits) {
    exceeded_ = true;
    bounds_ = {taken_.n_allocations + kGraceAllocations, taken_.n_bytes_live + kGraceBytes,
               taken_.n_bytes_copied + kGraceBytes};
    return false;
  }
  ++taken_.n_allocations;
  taken_.n_bytes_live += n_bytes;
  taken_.n_bytes_copied += n_bytes;
  return true;
}

// What was taken before the budget began may go meanwhile.
void WorkBudget::give_back(std::size_t n_bytes) {
  taken_.n_bytes_live -= n_bytes < taken_.n_bytes_live ? n_bytes : taken_.n_bytes_live;
}

}  // namespace fermata

// The program's own: malloc and free, as in the standard library, and a look at the budget of the thread. The forms for
// arrays and those that do not throw come here; those with an alignment stay the library's.
void* operator new(std::size_t n_bytes) {
  void* const memory = std::malloc(n_bytes == 0 ? 1 : n_bytes);
  if (memory == nullptr) throw std::bad_alloc();
  if (fermata::t_budget && !fermata::t_budget->take(malloc_usable_size(memory))) {
    std::free(memory);  // it was not touched yet
    throw std::bad_alloc();
  }
  return memory;
}

void operator delete(void* memory) noexcept {
  if (fermata::t_budget && memory) fermata::t_budget->give_back(malloc_usable_size(memory));
  std::free(memory);
}

void operator delete(void* memory, std::size_t /*n_bytes*/) noexcept { operator delete(memory); }
