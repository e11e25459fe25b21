#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/limits.h"
#include "coverage.h"
#include "invariants.h"
#include "plants.h"
#include "random.h"
#include "random_request.h"
#include "runtime/engine_loop.h"
#include "watched_engine.h"

namespace fermata::sim {

struct SimulationOptions {
  std::uint64_t seed = 0;
  Plant plant = Plant::kNone;
  bool verbose = false;  // says what is done, turn by turn
};

// One world from one seed, in one thread: a fake engine, the engine loop, a clock that only the simulation moves, and
// clients who ask for everything at any time, also in the middle of a step. run() throws Failure.
//
//   act ─► turn (commands come in the middle of its steps) ─► read ─► check      so many turns; then settle: nobody
//   asks
//                                                                                for more, and everything must end
class Simulation {
 public:
  Simulation(const SimulationOptions& options, Coverage& coverage);
  ~Simulation();
  void run();
  // Turns that settling took, over the bound for it.
  double settling() const { return settling_; }

 private:
  // A generation as its client sees it.
  struct Client {
    Client(GenerationId its_id, Watch its_watch, std::shared_ptr<EventRing> its_ring)
        : id(its_id), watch(std::move(its_watch)), ring(std::move(its_ring)) {}
    GenerationId id;
    Watch watch;
    std::shared_ptr<EventRing> ring;
    enum class Asked { kNothing, kPause, kResume, kCancel } last_asked = Asked::kNothing;
    bool reads = true;                   // else it is slow
    bool gone = false;                   // it has abandoned its ring
    std::optional<Position> stalled_at;  // tokens generated, as told while its ring was full
    bool is_stalled() const { return !reads && !gone && ring->n_free() < limits::kEventsPerTokenMax; }
    std::uint64_t n_numbers_added = 0;  // by a plant
    std::size_t n_pauses_resumed = 0;   // while settling: of so many that it told of
  };
  struct Answer;  // one that is waited for

  // --- the world (simulation.cc)
  void turn();
  void step_is_polled();
  void read(Client& client);
  void give(Client& client, Event event);
  void settle();
  void check_the_gone();
  void probe();
  void shut_down();
  std::uint64_t settle_bound() const;
  bool all_ended() const;

  // --- what clients do (commands.cc)
  void act();
  void act_on(Client& client, int what);
  void burst(Client& client);
  void flood();
  void submit(Request request, std::size_t ring_size);
  void submit_random();
  void pause(GenerationId id);
  void resume(GenerationId id);
  void cancel(GenerationId id, EndReason reason);
  void inspect(GenerationId id);
  void get_status(GenerationId id);
  template <class What>
  bool post(What what);
  template <class T>
  void expect_answer(const Reply<T>& reply, GenerationId id, std::string_view call,
                     std::function<void(const Result<T>&)> check);
  void check_answers(bool all);
  void on_refusal(const Error& error, GenerationId id, std::string_view call);
  Client* find(GenerationId id);
  Client& any_client();
  Client& running_client();
  Client& inspected_client();
  void say(const std::string& what) const;

  SimulationOptions options_;
  Coverage& coverage_;
  Random random_;
  ManualClock clock_;
  FakeModel model_;
  std::unique_ptr<WatchedEngine> engine_;
  std::unique_ptr<EngineLoop> loop_;
  LoopOptions loop_options_;
  std::unique_ptr<RequestMaker> requests_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<Answer>> answers_;
  std::uint64_t next_id_ = 1;
  std::uint64_t now_in_halves_ = 0;  // two a turn: between turns, within one
  Instant turn_began_;
  Duration turn_max_;
  double poll_chance_ = 0;
  bool acting_ = false;
  double settling_ = 0;
};

}  // namespace fermata::sim
