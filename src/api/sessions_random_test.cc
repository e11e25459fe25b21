// Sessions in which messages come, are paused, resumed, held and cancelled at random, while an engine that answers
// late, and says still later what happened, does what it is asked: at most one of each goes on, each in its turn.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "api/sessions.h"

namespace fermata::api {
namespace {

namespace asio = boost::asio;
using Coverage = std::map<std::string, int>;

class World final : private Sessions::Steering {
 public:
  World(unsigned seed, Coverage& coverage) : random_(seed), coverage_(coverage) {}

  void run() {
    for (int i = 0; i < 400 && !::testing::Test::HasFailure(); ++i) {
      act();
      look();
    }
    for (int i = 0; i < 4000 && !::testing::Test::HasFailure() && n_unended() > 0; ++i) {
      wind_up();
      look();
    }
    EXPECT_EQ(n_unended(), 0u) << "one waits for nobody";
    EXPECT_EQ(n_opening_, 0u);
  }

 private:
  // What the engine knows of one.
  struct One {
    std::shared_ptr<Dossier> dossier;
    State state = State::kQueued;
    bool is_settled = false;  // take_place answered
    bool is_forgotten = false;
  };

  std::size_t below(std::size_t n) { return random_() % n; }
  bool one_in(std::size_t n) { return below(n) == 0; }
  One& of(const Dossier& dossier) { return all_.at(static_cast<std::size_t>(dossier.priority)); }

  // ------------------------------------------------------------------------------------- what clients do, and the
  // engine
  void act() {
    if (one_in(10)) return come();
    if (all_.empty() || one_in(2)) return turn();
    One& one = any();
    switch (below(7)) {
      case 0: return resume(one);
      case 1: return asio::co_spawn(io_, user_pauses(one.dossier), asio::detached);
      case 2:
        if (Sessions::hold(*one.dossier, Instant{1})) ++coverage_[one.is_settled ? "held" : "held while it makes room"];
        return;
      case 3:
        if (Sessions::let_go(*one.dossier)) ++coverage_["let go"];
        return;
      case 4:
        if (one_in(3)) asio::co_spawn(io_, user_cancels(one.dossier), asio::detached);
        return;
      case 5: return forget(one);
      default: return resume(one);
    }
  }

  // Mostly one that has not ended.
  One& any() {
    for (int i = 0; i < 20; ++i)
      if (One& one = all_.at(below(all_.size())); !one.dossier->recording.ended()) return one;
    return all_.at(below(all_.size()));
  }

  // Mostly with a choice that leaves those before it alive.
  void come() {
    One one{std::make_shared<Dossier>(io_.get_executor())};
    Dossier& dossier = *one.dossier;
    dossier.priority = static_cast<std::int32_t>(all_.size());
    dossier.head.session = std::array{"a", "b", ""}[one_in(10) ? 2 : below(2)];
    const OnNewMessage patient = one_in(2) ? OnNewMessage::kPause : OnNewMessage::kQueue;
    dossier.options.on_new_message = one_in(4) ? OnNewMessage::kCancel : patient;
    all_.push_back(one);
    sessions_.join(one.dossier);
    ++n_opening_;
    asio::co_spawn(io_, open(one.dossier), asio::detached);
  }

  asio::awaitable<void> open(std::shared_ptr<Dossier> dossier) {
    const Result<void> opened = co_await sessions_.take_place(dossier, nullptr);
    --n_opening_;
    of(*dossier).is_settled = true;
    if (opened) co_return;
    EXPECT_EQ(opened.error().code, Code::kBusy) << "only what was refused is an error";
    drop(*dossier);
  }

  // The engine takes a command, one ends by itself, what it said is heard, or who waits goes on.
  void turn() {
    switch (below(4)) {
      case 0:
        if (const auto command = take(commands_)) (*command)();
        return;
      case 1:
        if (one_in(4)) finish_one();
        return;
      case 2:
        if (const auto told = take(told_)) (*told)();
        return;
      default: io_.poll(); io_.restart();
    }
  }

  using Queue = std::deque<std::function<void()>>;
  static std::optional<std::function<void()>> take(Queue& queue) {
    if (queue.empty()) return std::nullopt;
    std::function<void()> first = std::move(queue.front());
    queue.pop_front();
    return first;
  }

  void finish_one() {
    for (One& one : all_) {
      if (one.state != State::kRunning || one_in(2)) continue;
      return end(one, EndReason::kLength);
    }
  }

  void end(One& one, EndReason reason) {
    one.state = State::kFinished;
    says(one, FinishEvent{reason, {}, 0, 0, 0, {}});
  }

  template <class What>
  void says(One& one, What what) {
    told_.push_back([this, dossier = one.dossier, what] { record(*dossier, what); });
  }
  template <class What>
  void record(Dossier& dossier, const What& what) {
    dossier.held_since = {};
    dossier.recording.take({0, {}, what});
    dossier.changed.notify();
  }

  // The answer of the engine, behind all that it said before; or before it was heard, which `hurries`.
  asio::awaitable<bool> answer(std::function<bool()> command, bool hurries = false) {
    const auto signal = std::make_shared<Signal>(io_.get_executor());
    const auto well = std::make_shared<std::optional<bool>>();
    const auto hear = [signal, well](bool value) {
      *well = value;
      signal->notify();
    };
    commands_.push_back([this, command = std::move(command), hear, hurries] {
      const bool value = command();
      if (hurries && !value) return hear(value);
      told_.push_back([hear, value] { hear(value); });
    });
    while (!*well) co_await signal->wait(Signal::kForever);
    co_return **well;
  }

  // --------------------------------------------------------------------------------------------------------- the desk
  asio::awaitable<Result<void>> pause(std::shared_ptr<Dossier> dossier, WaitReason reason) override {
    if (dossier->recording.ended() || dossier->core_id == kNoGeneration)
      co_return Error{Code::kWrongState, "", "", false};
    if (reason == WaitReason::kNewMessage) {
      EXPECT_TRUE(dossier->goes_on()) << "it paused what did not go on";
      ++coverage_["paused for a new message"];
      if (one_in(30)) co_return refused("refused a pause");
    }
    const auto freeze = [this, dossier, reason] {
      One& one = of(*dossier);
      if (one.state == State::kFinished) return false;
      if (one.state != State::kPaused) says(one, StateEvent{State::kPaused, reason, {}});
      one.state = State::kPaused;
      return true;
    };
    const bool well = co_await answer(freeze, true);
    if (well) co_return Result<void>();
    if (!dossier->recording.ended()) ++coverage_["its end was on its way"];
    co_return Error{Code::kWrongState, "", "", false};
  }

  asio::awaitable<Result<void>> cancel(std::shared_ptr<Dossier> dossier, EndReason reason) override {
    if (dossier->recording.ended()) co_return Result<void>();
    if (reason == EndReason::kReplaced) {
      ++coverage_[dossier->core_id == kNoGeneration ? "replaced one that waited" : "replaced"];
      if (one_in(30)) co_return refused("refused a cancel");
    }
    if (dossier->core_id == kNoGeneration) {
      record(*dossier, FinishEvent{reason, {}, 0, 0, 0, {}});
      co_return Result<void>();
    }
    const auto stop = [this, dossier, reason] {
      if (of(*dossier).state != State::kFinished) end(of(*dossier), reason);
      return true;
    };
    co_await answer(stop);
    while (!dossier->recording.ended()) co_await dossier->changed.wait(Signal::kForever);
    co_return Result<void>();
  }

  Error refused(const std::string& what) {
    ++coverage_[what];
    return {Code::kBusy, "", "", true};
  }

  Result<void> start(const std::shared_ptr<Dossier>& dossier, const std::shared_ptr<Generation>&) override {
    One& one = of(*dossier);
    if (dossier->recording.ended()) return {};
    EXPECT_FALSE(dossier->is_held());
    EXPECT_EQ(dossier->core_id, kNoGeneration) << "started twice";
    const bool had_to_wait = one.is_settled;
    for (const One& other : all_) {
      if (other.dossier == dossier || !are_together(*other.dossier, *dossier)) continue;
      EXPECT_FALSE(other.dossier->goes_on());
      const bool is_before = other.dossier->priority < dossier->priority && !other.dossier->recording.ended();
      const bool may_stay = dossier->options.on_new_message == OnNewMessage::kPause && !had_to_wait;
      EXPECT_FALSE(is_before && !may_stay) << "it overtook " << other.dossier->priority;
      if (is_before) ++coverage_["started beside paused ones"];
    }
    if (one_in(30)) return refused(had_to_wait ? "found no room in its turn" : "could not start");
    if (had_to_wait && one_in(30)) {
      ++coverage_["could not start in its turn"];
      return Error{Code::kWrongState, "", "", false};
    }
    ++coverage_[had_to_wait ? "started in its turn" : "started at once"];
    dossier->core_id = GenerationId{static_cast<std::uint64_t>(dossier->priority) + 1};
    commands_.push_back([this, dossier] {
      of(*dossier).state = State::kRunning;
      says(of(*dossier), StateEvent{State::kRunning, WaitReason::kNone, {}});
    });
    return {};
  }

  void undo(const std::shared_ptr<Dossier>& dossier, Error error) override {
    EXPECT_NE(error.code, Code::kBusy) << "it has its turn still";
    drop(*dossier);
  }
  void drop(Dossier& dossier) {
    if (!dossier.recording.ended()) record(dossier, FinishEvent{EndReason::kError, {}, 0, 0, 0, {}});
    sessions_.leave(dossier);
  }

  void resume(One& one) {
    const std::shared_ptr<Dossier> dossier = one.dossier;
    if (dossier->recording.ended() || dossier->core_id == kNoGeneration) return;
    if (!sessions_.begin_resume(*dossier)) {
      ++coverage_["refused a resume"];
      return;
    }
    asio::co_spawn(io_, let_go_on(dossier), asio::detached);
  }

  asio::awaitable<void> let_go_on(std::shared_ptr<Dossier> dossier) {
    const auto go_on = [this, dossier] {
      if (of(*dossier).state != State::kPaused) return false;
      of(*dossier).state = State::kRunning;
      ++coverage_["resumed"];
      says(of(*dossier), StateEvent{State::kRunning, WaitReason::kNone, {}});
      return true;
    };
    co_await answer(go_on);
    Sessions::end_resume(*dossier);
  }

  asio::awaitable<void> user_pauses(std::shared_ptr<Dossier> dossier) {
    (void)co_await pause(dossier, WaitReason::kUser);
  }
  asio::awaitable<void> user_cancels(std::shared_ptr<Dossier> dossier) {
    if (!dossier->recording.ended() && !of(*dossier).is_settled) ++coverage_["cancelled while it makes room"];
    (void)co_await cancel(dossier, EndReason::kCancelled);
  }

  void forget(One& one) {
    if (!one.dossier->recording.ended() || std::exchange(one.is_forgotten, true)) return;
    sessions_.leave(*one.dossier);
    ++coverage_["forgotten"];
  }

  // ------------------------------------------------------------------------------------------------- what must be true
  static bool are_together(const Dossier& one, const Dossier& other) {
    return !one.head.session.empty() && one.head.session == other.head.session;
  }

  void look() {
    for (const std::string_view session : {"a", "b"}) {
      int n_running = 0;
      int n_going_on = 0;
      for (const One& one : all_) {
        if (one.dossier->head.session != session) continue;
        n_running += one.state == State::kRunning ? 1 : 0;
        n_going_on += one.dossier->goes_on() ? 1 : 0;
      }
      EXPECT_LE(n_running, 1) << "in the engine";
      EXPECT_LE(n_going_on, 1) << "as clients see it";
    }
  }

  std::size_t n_unended() const {
    std::size_t n = 0;
    for (const One& one : all_) n += one.dossier->recording.ended() ? 0 : 1;
    return n;
  }

  // Nobody comes any more; what is held is let go, what is paused ends, and so does what runs.
  void wind_up() {
    for (One& one : all_) Sessions::let_go(*one.dossier);
    for (One& one : all_) one.dossier->changed.notify();  // as time does for who found no room
    if (commands_.empty() && told_.empty())
      for (One& one : all_)
        if (one.state == State::kPaused || one.state == State::kRunning) return end(one, EndReason::kLength);
    while (const auto command = take(commands_)) (*command)();
    while (const auto told = take(told_)) (*told)();
    io_.poll();
    io_.restart();
  }

  std::mt19937 random_;
  Coverage& coverage_;
  asio::io_context io_;
  Sessions sessions_{io_.get_executor(), *this};
  std::deque<One> all_;
  Queue commands_;  // that the engine has not taken
  Queue told_;      // what it said that nobody heard yet
  std::size_t n_opening_ = 0;
};

TEST(SessionsRandomTest, AtMostOneOfASessionGoesOnAndEachHasItsTurn) {
  Coverage coverage;
  for (unsigned seed = 0; seed < 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World(seed, coverage).run();
  }
  for (const std::string what : {"started at once", "started in its turn", "started beside paused ones",
                                 "could not start", "could not start in its turn", "found no room in its turn",
                                 "paused for a new message", "its end was on its way", "refused a pause", "replaced",
                                 "replaced one that waited", "refused a cancel", "held", "held while it makes room",
                                 "let go", "resumed", "refused a resume", "cancelled while it makes room", "forgotten"})
    EXPECT_GE(coverage[what], 20) << what;
}

}  // namespace
}  // namespace fermata::api
