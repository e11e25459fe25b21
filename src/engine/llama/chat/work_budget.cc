#include "engine/llama/chat/work_budget.h"

#include <malloc.h>

#include <cstdlib>
#include <new>

#include "base/check.h"

namespace fermata {

static thread_local WorkBudget* t_budget = nullptr;

namespace {

constexpr std::uint64_t kGraceAllocations = 10'000;  // for words about what went wrong
constexpr std::uint64_t kGraceBytes = 4 << 20;

}  // namespace

WorkBudget::WorkBudget(const Bounds& bounds) : bounds_(bounds) {
  FERMATA_CHECK(t_budget == nullptr);
  t_budget = this;
}

WorkBudget::~WorkBudget() { t_budget = nullptr; }

bool WorkBudget::take(std::size_t n_bytes) {
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
