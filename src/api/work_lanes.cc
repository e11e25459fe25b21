#include "api/work_lanes.h"

#include <algorithm>

#include "base/limits.h"

namespace fermata::api {
namespace {

bool is_long(const WorkLanes::Waiting& job) { return job.n_work > limits::kLongJobBytes; }

}  // namespace

std::optional<std::size_t> WorkLanes::next_of(std::span<const Waiting> waiting, std::size_t n_long_running,
                                              std::size_t n_threads) {
  const bool long_may = n_long_running + 1 < n_threads || n_threads == 1;
  std::optional<std::size_t> next;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    if (is_long(waiting[i]) && !long_may) continue;
    if (waiting[i].n_passed >= limits::kJobPassedMax) return i;
    if (!next || waiting[i].n_work < waiting[*next].n_work) next = i;
  }
  return next;
}

WorkLanes::WorkLanes(boost::asio::any_io_executor executor, std::size_t n_threads)
    : state_(std::make_shared<State>(std::move(executor), n_threads)) {}

Error WorkLanes::gave_up() { return {Code::kAborted, "the client left before its turn", {}, true}; }

// What was thrown is told: at this border it is ours or the standard library's, never a client's text.
Error WorkLanes::failed(const std::exception& thrown) {
  return {Code::kEngine, "the server failed at this request", thrown.what(), false};
}

void WorkLanes::State::begin_next() {
  while (n_running < n_threads) {
    std::vector<Waiting> waiting;
    for (const Job* job : queue) waiting.push_back(job->size);
    const std::optional<std::size_t> next = next_of(waiting, n_long_running, n_threads);
    if (!next) return;
    Job& job = *queue[*next];
    for (std::size_t i = 0; i < *next; ++i) ++queue[i]->size.n_passed;
    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(*next));
    ++n_running;
    n_long_running += is_long(job.size) ? 1 : 0;
    job.runs = true;
    job.changed.notify();
  }
}

WorkLanes::Job::Job(std::shared_ptr<State> of, std::size_t n_work, std::shared_ptr<Leaver> client)
    : state(std::move(of)), leaver(std::move(client)), size{n_work}, changed(state->executor) {
  if (leaver) leaver->on_leave_ = [this] { changed.notify(); };
  state->queue.push_back(this);
  state->begin_next();
}

WorkLanes::Job::~Job() {
  if (leaver) leaver->on_leave_ = nullptr;
  if (!runs) {
    std::erase(state->queue, this);
    return;
  }
  --state->n_running;
  state->n_long_running -= is_long(size) ? 1 : 0;
  state->begin_next();
}

}  // namespace fermata::api
