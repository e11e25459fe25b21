#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <thread>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "engine/engine.h"
#include "generation/request.h"
#include "runtime/command.h"
#include "runtime/engine_loop.h"

namespace fermata {

// A generation from the outside: its id and what it says.
struct Started {
  GenerationId id = kNoGeneration;
  std::shared_ptr<EventRing> events;
};

// An engine with its thread, for the rest of the process: every call may come from any thread. The calls that return a
// Reply do not wait; await() turns one into a blocking call. The destructor ends all generations (kShutdown) and joins.
class Core {
 public:
  // `clock` must outlive the core.
  Core(std::unique_ptr<Engine> engine, const Clock& clock, LoopOptions options = {});
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  const EngineInfo& info() const { return engine_->info(); }
  const Vocabulary& vocabulary() const { return engine_->vocabulary(); }
  const LoopStats& stats() const { return loop_.stats(); }

  // Validates (bad input is refused here, before the engine thread hears of it) and folds the prompt, on the calling
  // thread: of the two halves the one that takes time.
  Result<Generation> prepare(Request request);
  // Queues it; `paused`: it waits to be resumed. `wake`: see Ring. One that is refused stays with its caller, who may
  // try again.
  Result<Started> start(Generation&& prepared, std::function<void()> wake = {}, bool paused = false);
  // Both.
  Result<Started> submit(Request request, std::function<void()> wake = {});

  // `wake` is called, by the engine thread, when the answer is there.
  using Wake = std::function<void()>;
  Reply<PauseRecord> pause(GenerationId id, WaitReason reason = WaitReason::kUser, Wake wake = {});
  Reply<Status> resume(GenerationId id, MeantPause meant = {}, Wake wake = {});
  Reply<Status> cancel(GenerationId id, EndReason reason = EndReason::kCancelled, Wake wake = {});
  Reply<Inspection> inspect(GenerationId id, std::int32_t n_rows, std::int32_t n_next, Wake wake = {});
  Reply<Status> status(GenerationId id, Wake wake = {});

  // --- the past of a paused one. Changing it has three parts, of which the second takes the time: its anchor, a
  // revision made of that on the calling thread, and putting the revision in its place.
  Reply<Anchor> anchor(GenerationId id, Wake wake = {});
  // `request`: null, or what it is to be from now on (its prompt counts for nothing).
  Result<Revision> prepare_revision(const Anchor& anchor, std::span<const Splice> splices,
                                    const Request* request = nullptr) const;
  Reply<Revised> revise(GenerationId id, Revision revision, Wake wake = {});
  // A generation of its own instead, to be started: the anchor's stays as it is.
  Generation branch(Revision revision);

 private:
  template <class What, class T>
  Reply<T> post(What what, Reply<T> reply);

  std::unique_ptr<Engine> engine_;
  const Clock& clock_;
  EngineLoop loop_;
  std::atomic<std::uint64_t> next_id_{1};
  std::thread thread_;
};

// Waits for the answer. kEngine if none comes in `at_most` (the engine thread is stuck).
template <class T>
Result<T> await(const Reply<T>& reply, Duration at_most = seconds(30)) {
  std::optional<Result<T>> answer = reply.wait(at_most);
  if (!answer) return Error{Code::kEngine, "the engine did not answer in time", {}, true};
  return *std::move(answer);
}

}  // namespace fermata
