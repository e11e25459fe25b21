#pragma once

// For tests: an engine loop over a fake engine in one thread, and clients that read what it says.

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "engine/fake/fake_engine.h"
#include "runtime/engine_loop.h"
#include "runtime/heard.h"

namespace fermata::test {

class LoopBench {
 public:
  struct Client {
    GenerationId id = kNoGeneration;
    std::shared_ptr<EventRing> events;
    Heard heard;
  };

  explicit LoopBench(FakeOptions options = {}, LoopOptions loop_options = {})
      : engine_(with_hooks(std::move(options))), loop_(engine_, clock_, loop_options) {}

  // Called in the middle of each step, once.
  std::function<void()> in_step;

  Client submit(Request request, std::size_t ring_size = 1024) {
    auto valid = validate(std::move(request), engine_.info(), engine_.vocabulary(), engine_.samplers());
    FERMATA_CHECK(valid.has_value());
    const GenerationId id{next_id_++};
    auto generation = Generation::make(id, *std::move(valid), engine_.vocabulary(), clock_.now());
    FERMATA_CHECK(generation.has_value());
    auto ring = std::make_shared<EventRing>(ring_size);
    post(Submit{std::make_unique<Generation>(*std::move(generation)), ring});
    return {id, ring, {}};
  }

  Reply<PauseRecord> pause(GenerationId id, WaitReason reason = WaitReason::kUser) {
    Reply<PauseRecord> reply;
    post(Pause{id, reply, reason});
    return reply;
  }
  Reply<Status> resume(GenerationId id, MeantPause meant = {}) {
    Reply<Status> reply;
    post(Resume{id, reply, meant});
    return reply;
  }
  Reply<Status> status(GenerationId id) { return ask<GetStatus>(id, Reply<Status>()); }
  Reply<Status> cancel(GenerationId id, EndReason reason = EndReason::kCancelled) {
    Reply<Status> reply;
    post(Cancel{id, reason, reply});
    return reply;
  }
  Reply<Inspection> inspect(GenerationId id, std::int32_t n_next = 8) {
    Reply<Inspection> reply;
    post(Inspect{id, 8, n_next, reply});
    return reply;
  }

  bool turn() {
    const bool busy = loop_.turn();
    loop_.audit();
    return busy;
  }
  void turns(int n) {
    for (int i = 0; i < n; ++i) turn();
  }
  // Turns and reads until it has ended, is paused, or nothing is done any more.
  void run(Client& client) {
    for (bool busy = true; busy && client.heard.ends.empty();) {
      busy = turn();
      read(client);
    }
  }
  void read(Client& client) {
    while (const auto event = client.events->try_pop()) client.heard.take(*event);
  }

  FakeEngine& engine() { return engine_; }
  EngineLoop& loop() { return loop_; }
  ManualClock& clock() { return clock_; }
  const FakeVocabulary& vocabulary() const { return engine_.vocabulary(); }

 private:
  FakeOptions with_hooks(FakeOptions options) {
    options.on_poll = [this](std::int32_t poll) {
      if (poll == 0 && in_step) in_step();
    };
    options.on_compute = take_time(clock_, milliseconds(1), {1000});
    return options;
  }
  template <class What, class T>
  Reply<T> ask(GenerationId id, Reply<T> reply) {
    post(What{id, reply});
    return reply;
  }
  template <class What>
  void post(What what) {
    FERMATA_CHECK(loop_.post({clock_.now(), std::move(what)}).has_value());
  }

  ManualClock clock_;
  FakeEngine engine_;
  EngineLoop loop_;
  std::uint64_t next_id_ = 1;
};

}  // namespace fermata::test
