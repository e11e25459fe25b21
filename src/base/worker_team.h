#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace fermata {

// The compute threads of the process: one team for everything that wants all cores, so that two pools never fight over
// them. Attention runs on it, and so does ggml, whose OpenMP regions and barriers come here
// (engine/attention/openmp_abi.cc).
//
// A region is a fork and a join: the caller is member 0. Waiting members spin for a bounded time, because on a quiet
// machine the others are microseconds away, and then sleep in the kernel, because on a shared machine the core they
// spin on is the core somebody needs. How long they spin follows what they see (WaitPolicy).
//
// Regions do not nest and do not queue: a region asked for while the team is busy, or from inside one, runs on its
// caller alone, which fork-join code must allow for. Thread-safe.
class WorkerTeam {
 public:
  static constexpr int kThreadsMax = 255;

  // How long a member spins before it sleeps, in nanoseconds. Between spin_min and spin_max the team adapts: a sleep
  // that was over soon lengthens it, a long one shortens it (decision 003 has the measurements). A member that was seen
  // on the core of another does not spin at all: the other could not run.
  struct WaitPolicy {
    std::int64_t spin_min_ns = 5'000;
    std::int64_t spin_max_ns = 100'000;
  };

  struct Options {
    int n_threads = 1;  // 1 .. kThreadsMax, the caller of a region counted
    WaitPolicy wait{};
  };

  explicit WorkerTeam(const Options& options);
  ~WorkerTeam();
  WorkerTeam(const WorkerTeam&) = delete;
  WorkerTeam& operator=(const WorkerTeam&) = delete;

  // The team of the process. Until configure() is called it has as many threads as the process may use cores.
  static WorkerTeam& process();
  // Ends the team of the process and begins another. No region may run or begin meanwhile: call it at start, before
  // the model is loaded.
  static void configure(const Options& options);

  int n_threads() const { return static_cast<int>(members_.size()); }

  // Members wait longer for each other than the work between two waits takes: others want the cores. Then short work is
  // done sooner by its caller alone. A guess, from the last wait.
  bool is_crowded() const;

  // Calls body(ith, n) on n <= n_wanted members and returns when all have returned. The body must not throw.
  template <class Body>
  void run(int n_wanted, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run_region(
        n_wanted, [](void* data, int ith, int n) { (*static_cast<Plain*>(data))(ith, n); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

  // Calls body(task, ith) once for each task of [0, n_tasks), in that order of start, on up to n_wanted members.
  template <class Body>
  void for_each_task(int n_wanted, int n_tasks, Body&& body) {
    std::atomic<int> next{0};
    run(n_wanted < n_tasks ? n_wanted : n_tasks, [&](int ith, int) {
      for (int task = next.fetch_add(1, std::memory_order_relaxed); task < n_tasks;
           task = next.fetch_add(1, std::memory_order_relaxed)) {
        body(task, ith);
      }
    });
  }

  // All members of the region that the calling thread is in wait for each other. Outside a region it does nothing.
  static void barrier();
  // Of the calling thread, in its region; 0 of 1 outside.
  static int member();
  static int n_members();

  // What happened since the team began. For tests, `doctor` and benches.
  struct Counters {
    std::uint64_t regions = 0;   // with more than one member
    std::uint64_t alone = 0;     // regions that ran on their caller because the team was busy, or n_wanted was 1
    std::uint64_t barriers = 0;  // of all members together
    std::uint64_t sleeps = 0;    // waits that outlasted their spin
    std::int64_t spin_ns = 0;    // what the team would spin now
  };
  Counters counters() const;

 private:
  using RegionBody = void (*)(void* data, int ith, int n);
  struct Member;
  struct Shared;

  void run_region(int n_wanted, RegionBody body, void* data);
  void work(int ith);

  std::unique_ptr<Shared> shared_;
  std::vector<std::unique_ptr<Member>> members_;  // [n_threads]; member 0 is whoever calls run()
};

}  // namespace fermata
