#include "base/worker_team.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <mutex>
#include <type_traits>

#include "base/check.h"

namespace fermata {
namespace {

constexpr int kPausesPerLook = 16;  // between two looks at the clock, while spinning

std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) &&
                  std::atomic<std::uint32_t>::is_always_lock_free,
              "a futex is a plain 32 bit word");

void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, nullptr, nullptr, 0);
}

int cores_of_process() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::clamp(CPU_COUNT(&set), 1, WorkerTeam::kThreadsMax);
}

// The region that this thread is in. `shared` is null in a region of one.
struct Place {
  bool inside = false;
  int ith = 0;
  int n = 1;
  void* shared = nullptr;
};
thread_local Place t_place;

}  // namespace

// How long to spin, learnt by all members together from how waits ended. A sleep that was over soon would have been
// spared by a longer spin: the bound doubles. A long one means that whoever was waited for was not running, so that
// cores are wanted by others: the bound halves, and with it what a spin can take away from them.
class SpinBound {
 public:
  explicit SpinBound(const WorkerTeam::WaitPolicy& policy) : policy_(policy), ns_(policy.spin_max_ns) {}

  std::int64_t ns() const { return ns_.load(std::memory_order_relaxed); }

  bool is_short() const { return ns() < policy_.spin_max_ns; }

  void slept(std::int64_t waited_ns) {
    const bool soon = waited_ns < kSoonSpins * policy_.spin_max_ns;
    const std::int64_t bound = soon ? ns() * 2 : ns() / 2;
    ns_.store(std::clamp(bound, policy_.spin_min_ns, policy_.spin_max_ns), std::memory_order_relaxed);
  }

 private:
  static constexpr std::int64_t kSoonSpins = 3;  // the longest spin, and twice that for falling asleep and waking

  const WorkerTeam::WaitPolicy policy_;
  std::atomic<std::int64_t> ns_;
};

// A word that members wait on until it changes.
class alignas(64) Gate {
 public:
  std::uint32_t value() const { return value_.load(std::memory_order_acquire); }

  void publish(std::uint32_t value) {
    // Either we see the sleeper, or the sleeper, who counts itself first, sees the new value: both are seq_cst.
    value_.store(value, std::memory_order_seq_cst);
    if (n_sleepers_.load(std::memory_order_seq_cst) != 0) futex(value_, FUTEX_WAKE_PRIVATE, INT_MAX);
  }

  // True if the value changed within the spin.
  bool spin_while(std::uint32_t old, std::int64_t spin_ns) const {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (value() != old) return true;
      pause_core();
    }
    const std::int64_t end = monotonic_ns() + spin_ns;
    do {
      for (int i = 0; i < kPausesPerLook; ++i) {
        if (value() != old) return true;
        pause_core();
      }
    } while (monotonic_ns() < end);
    return false;
  }

  void sleep_while(std::uint32_t old) {
    n_sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (value_.load(std::memory_order_seq_cst) == old) futex(value_, FUTEX_WAIT_PRIVATE, old);
    n_sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint32_t> value_{0};
  std::atomic<std::uint32_t> n_sleepers_{0};
};

struct alignas(64) WorkerTeam::Member {
  std::thread thread;         // none for member 0
  std::atomic<int> core{-1};  // where it was seen last: at the start of a region, at each barrier
};

struct WorkerTeam::Shared {
  Shared(const WaitPolicy& policy, const std::vector<std::unique_ptr<Member>>& team) : members(team), spin(policy) {}

  const std::vector<std::unique_ptr<Member>>& members;

  // The region in progress. The gate's value is its number and, in the low 8 bits, how many members it has; 0 members
  // ends the team. Only members of a region read `body` and `data`, and none is late: the join waits for them.
  Gate region;
  RegionBody body = nullptr;
  void* data = nullptr;

  alignas(64) std::atomic<int> n_running{0};  // members but the caller
  Gate joined;                                // its value: the last region that was joined

  alignas(64) std::atomic<int> n_arrived{0};
  Gate phase;  // its value: barriers passed

  SpinBound spin;
  std::atomic<bool> crowded{false};  // by the last wait
  std::atomic<bool> busy{false};
  std::atomic<std::uint64_t> n_regions{0};
  std::atomic<std::uint64_t> n_alone{0};
  std::atomic<std::uint64_t> n_barriers{0};
  std::atomic<std::uint64_t> n_sleeps{0};

  void note_core(int ith) const { members[ith]->core.store(sched_getcpu(), std::memory_order_relaxed); }

  // One of the first n members, another than this one, was last seen on its core: it cannot run while this one spins.
  bool shares_core(const Place& place) const {
    const int core = members[place.ith]->core.load(std::memory_order_relaxed);
    for (int i = 0; i < place.n; ++i) {
      if (i != place.ith && members[i]->core.load(std::memory_order_relaxed) == core) return true;
    }
    return false;
  }

  // Of a member inside a region, for the others.
  void wait(Gate& gate, std::uint32_t old, const Place& place) {
    const bool may_spin = !shares_core(place);
    if (gate.spin_while(old, may_spin ? spin.ns() : 0)) {
      if (crowded.load(std::memory_order_relaxed)) crowded.store(!may_spin, std::memory_order_relaxed);
      return;
    }
    const std::int64_t begin = monotonic_ns();
    n_sleeps.fetch_add(1, std::memory_order_relaxed);
    gate.sleep_while(old);
    if (may_spin) spin.slept(monotonic_ns() - begin);
    crowded.store(!may_spin || spin.is_short(), std::memory_order_relaxed);
  }

  // Of a worker, between regions. How long that takes tells nothing: the caller may have other things to do.
  void wait_for_region(std::uint32_t old, int ith) {
    note_core(ith);
    const bool may_spin = !shares_core({.ith = ith, .n = 1});
    if (region.spin_while(old, may_spin ? spin.ns() : 0)) return;
    n_sleeps.fetch_add(1, std::memory_order_relaxed);
    region.sleep_while(old);
  }

  void barrier(const Place& place) {
    const std::uint32_t passed = phase.value();
    note_core(place.ith);
    if (n_arrived.fetch_add(1, std::memory_order_acq_rel) == place.n - 1) {
      n_arrived.store(0, std::memory_order_relaxed);
      n_barriers.fetch_add(1, std::memory_order_relaxed);
      phase.publish(passed + 1);
    } else {
      wait(phase, passed, place);
    }
  }
};

namespace {

constexpr std::uint32_t kMembersBits = 8;
constexpr std::uint32_t kMembersMask = (1U << kMembersBits) - 1;
static_assert(WorkerTeam::kThreadsMax <= kMembersMask, "the gate's word holds the number of members");

std::mutex g_process_mutex;
std::atomic<WorkerTeam*> g_process_team{nullptr};

}  // namespace

WorkerTeam::WorkerTeam(const Options& options) : shared_(std::make_unique<Shared>(options.wait, members_)) {
  FERMATA_CHECK_LE(1, options.n_threads);
  FERMATA_CHECK_LE(options.n_threads, kThreadsMax);
  for (int ith = 0; ith < options.n_threads; ++ith) members_.push_back(std::make_unique<Member>());
  for (int ith = 1; ith < options.n_threads; ++ith) members_[ith]->thread = std::thread([this, ith] { work(ith); });
}

WorkerTeam::~WorkerTeam() {
  FERMATA_CHECK(!shared_->busy.load());
  shared_->region.publish((shared_->region.value() & ~kMembersMask) + (1U << kMembersBits));
  for (auto& member : members_) {
    if (member->thread.joinable()) member->thread.join();
  }
}

WorkerTeam& WorkerTeam::process() {
  if (WorkerTeam* team = g_process_team.load(std::memory_order_acquire)) return *team;
  std::lock_guard lock(g_process_mutex);
  // Never destroyed: exit() may run while a thread of a library still waits in a region.
  if (g_process_team.load() == nullptr) g_process_team.store(new WorkerTeam({.n_threads = cores_of_process()}));
  return *g_process_team.load();
}

void WorkerTeam::configure(const Options& options) {
  std::lock_guard lock(g_process_mutex);
  delete g_process_team.exchange(nullptr);
  g_process_team.store(new WorkerTeam(options), std::memory_order_release);
}

void WorkerTeam::run_region(int n_wanted, RegionBody body, void* data) {
  const int n = std::min(n_wanted, n_threads());
  const Place before = t_place;
  Shared& shared = *shared_;
  if (n <= 1 || before.inside || shared.busy.exchange(true, std::memory_order_acquire)) {
    shared.n_alone.fetch_add(1, std::memory_order_relaxed);
    t_place = {.inside = true};
    body(data, 0, 1);
    t_place = before;
    return;
  }
  shared.n_regions.fetch_add(1, std::memory_order_relaxed);
  shared.body = body;
  shared.data = data;
  shared.n_running.store(n - 1, std::memory_order_relaxed);
  const std::uint32_t joined = shared.joined.value();
  const std::uint32_t number = (shared.region.value() & ~kMembersMask) + (1U << kMembersBits);
  shared.region.publish(number | static_cast<std::uint32_t>(n));

  t_place = {.inside = true, .ith = 0, .n = n, .shared = &shared};
  shared.note_core(0);
  body(data, 0, n);
  shared.wait(shared.joined, joined, t_place);
  t_place = before;
  shared.busy.store(false, std::memory_order_release);
}

void WorkerTeam::work(int ith) {
  Shared& shared = *shared_;
  for (std::uint32_t seen = 0;;) {
    shared.wait_for_region(seen, ith);
    seen = shared.region.value();
    const int n = static_cast<int>(seen & kMembersMask);
    if (n == 0) return;
    if (ith >= n) continue;
    t_place = {.inside = true, .ith = ith, .n = n, .shared = &shared};
    shared.note_core(ith);
    shared.body(shared.data, ith, n);
    if (shared.n_running.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      shared.joined.publish(shared.joined.value() + 1);
    }
  }
}

void WorkerTeam::barrier() {
  if (t_place.shared != nullptr) static_cast<Shared*>(t_place.shared)->barrier(t_place);
}

bool WorkerTeam::is_crowded() const { return shared_->crowded.load(std::memory_order_relaxed); }

int WorkerTeam::member() { return t_place.ith; }
int WorkerTeam::n_members() { return t_place.n; }

WorkerTeam::Counters WorkerTeam::counters() const {
  const auto get = [](const auto& counter) { return counter.load(std::memory_order_relaxed); };
  return {get(shared_->n_regions), get(shared_->n_alone), get(shared_->n_barriers), get(shared_->n_sleeps),
          shared_->spin.ns()};
}

}  // namespace fermata
