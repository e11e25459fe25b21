#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "api/http/signal.h"
#include "base/result.h"

namespace fermata::api {

// The client of a job that waits, so that it can say that nobody wants it any more. io thread.
class Leaver {
 public:
  void leave() {
    gone_ = true;
    if (on_leave_) on_leave_();
  }
  bool gone() const { return gone_; }

 private:
  friend class WorkLanes;
  bool gone_ = false;
  std::function<void()> on_leave_;
};

// A few threads for work that takes its time: reading bodies, tokenising, compiling. What waits is kept here, in order
// of size, so that one tenant's long texts do not make everybody's short ones wait: the shortest is next, unless one
// was passed over often; and long ones never have all threads. Its queue belongs to the io thread; as long as every
// job is a request's, it is bounded by the connections.
class WorkLanes {
  template <class T>
  struct OutcomeOf {
    using type = Result<T>;
  };
  template <class T>
  struct OutcomeOf<Result<T>> {
    using type = Result<T>;
  };

 public:
  template <class T>
  using Outcome = typename OutcomeOf<T>::type;

  struct Waiting {
    std::size_t n_work = 0;    // about as much as so many bytes of plain text
    std::size_t n_passed = 0;  // later ones that went before it
  };
  // Of those that wait, oldest first: which is next, if any may begin beside the long ones that run.
  static std::optional<std::size_t> next_of(std::span<const Waiting> waiting, std::size_t n_long_running,
                                            std::size_t n_threads);

  WorkLanes(boost::asio::any_io_executor executor, std::size_t n_threads);
  void join() { state_->threads.join(); }

  std::size_t n_waiting() const { return state_->queue.size(); }

  // What `work` gives, a value or a Result, run on one of the threads. kAborted if the client left before it began,
  // kEngine if it threw: nothing is thrown here. `work` is kept alive by the caller, who awaits this.
  template <class Work>
  auto run(std::size_t n_work, std::shared_ptr<Leaver> leaver, Work& work)
      -> boost::asio::awaitable<Outcome<decltype(work())>> {
    std::optional<Outcome<decltype(work())>> result;
    Job job(state_, n_work, leaver);
    while (!job.runs && !job.left()) co_await job.changed.wait(Signal::kForever);
    if (!job.runs || job.left()) co_return gave_up();
    auto task = [&]() -> boost::asio::awaitable<void> {
      result.emplace(outcome_of(work));
      co_return;
    };
    co_await boost::asio::co_spawn(state_->threads, task, boost::asio::use_awaitable);
    co_return *std::move(result);
  }

 private:
  template <class Work>
  static auto outcome_of(Work& work) -> Outcome<decltype(work())> {
    try {
      return work();
    } catch (const std::exception& thrown) {
      return failed(thrown);
    }
  }
  static Error gave_up();
  static Error failed(const std::exception& thrown);

  struct Job;
  struct State {
    State(boost::asio::any_io_executor of, std::size_t n) : executor(std::move(of)), n_threads(n), threads(n) {}
    void begin_next();

    boost::asio::any_io_executor executor;
    const std::size_t n_threads;
    boost::asio::thread_pool threads;
    std::vector<Job*> queue;  // oldest first
    std::size_t n_running = 0;
    std::size_t n_long_running = 0;
  };
  // In the queue from its making on; then it has a thread, until it dies.
  struct Job {
    Job(std::shared_ptr<State> of, std::size_t n_work, std::shared_ptr<Leaver> client);
    ~Job();
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;
    bool left() const { return leaver && leaver->gone(); }

    std::shared_ptr<State> state;
    std::shared_ptr<Leaver> leaver;
    Waiting size;
    bool runs = false;
    Signal changed;
  };

  std::shared_ptr<State> state_;
};

}  // namespace fermata::api
