// The part of libgomp's interface that ggml's objects call, on the team of the process. ggml is compiled with OpenMP;
// linked with this file its parallel regions and barriers are ours, and libgomp is not linked at all. What it must do
// is in "Implementing OpenMP constructs" of GCC's libgomp manual; the names are fixed by the compiler.
//
// A region asked for while the team works for somebody else runs on its caller alone, as OpenMP allows.

#include "engine/attention/openmp_abi.h"

#include <atomic>
#include <mutex>

#include "base/worker_team.h"

namespace fermata::attention {
namespace {

// Work-sharing constructs of one region, in the order in which every member meets them. All those that ggml uses end
// in a barrier, so there is at most one at a time.
struct Region {
  std::atomic<unsigned> n_singles{0};

  std::mutex mutex;  // of the loop in progress
  unsigned n_loops = 0;
  long next = 0;
  long end = 0;
  long step = 0;
  long chunk = 0;
};

struct Inside {
  Region* region = nullptr;
  unsigned n_singles = 0;  // met by this member
  unsigned n_loops = 0;
};
thread_local Inside t_inside;

std::atomic<std::uint64_t> g_regions{0};
std::mutex g_atomic_mutex;

bool take_chunk(Region& region, long* begin, long* end) {
  std::lock_guard lock(region.mutex);
  const bool up = region.step > 0;
  if (up ? region.next >= region.end : region.next <= region.end) return false;
  *begin = region.next;
  *end = region.next + region.chunk * region.step;
  if (up ? *end > region.end : *end < region.end) *end = region.end;
  region.next = *end;
  return true;
}

}  // namespace

std::uint64_t openmp_regions() { return g_regions.load(std::memory_order_relaxed); }

}  // namespace fermata::attention

using fermata::WorkerTeam;
using fermata::attention::t_inside;

extern "C" {

void GOMP_parallel(void (*body)(void*), void* data, unsigned n_threads, unsigned /*flags*/) {
  WorkerTeam& team = WorkerTeam::process();
  fermata::attention::g_regions.fetch_add(1, std::memory_order_relaxed);
  fermata::attention::Region region;
  const int n_wanted = n_threads == 0 ? team.n_threads() : static_cast<int>(n_threads);
  team.run(n_wanted, [&](int, int) {
    const auto before = t_inside;
    t_inside = {.region = &region};
    body(data);
    t_inside = before;
  });
}

void GOMP_barrier() { WorkerTeam::barrier(); }

// True for the first member that comes to this `single`.
bool GOMP_single_start() {
  if (t_inside.region == nullptr) return true;
  unsigned met = t_inside.n_singles++;
  return t_inside.region->n_singles.compare_exchange_strong(met, met + 1, std::memory_order_acq_rel);
}

bool GOMP_loop_nonmonotonic_dynamic_next(long* begin, long* end) {
  return fermata::attention::take_chunk(*t_inside.region, begin, end);
}

bool GOMP_loop_nonmonotonic_dynamic_start(long first, long last, long step, long chunk, long* begin, long* end) {
  auto& region = *t_inside.region;
  const unsigned met = t_inside.n_loops++;
  {
    std::lock_guard lock(region.mutex);
    if (region.n_loops == met) {
      ++region.n_loops;
      region.next = first;
      region.end = last;
      region.step = step;
      region.chunk = chunk;
    }
  }
  return fermata::attention::take_chunk(region, begin, end);
}

void GOMP_loop_end() { WorkerTeam::barrier(); }

void GOMP_atomic_start() { fermata::attention::g_atomic_mutex.lock(); }
void GOMP_atomic_end() { fermata::attention::g_atomic_mutex.unlock(); }

int omp_get_thread_num() { return WorkerTeam::member(); }
int omp_get_num_threads() { return WorkerTeam::n_members(); }
int omp_get_max_threads() { return WorkerTeam::process().n_threads(); }
int omp_in_parallel() { return WorkerTeam::n_members() > 1 ? 1 : 0; }

}  // extern "C"
