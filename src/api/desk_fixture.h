#pragma once

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "api/desk.h"
#include "engine/fake/fake_engine.h"

// For tests of the desk.
namespace fermata::api {

namespace asio = boost::asio;

// The engine thread passes it in each step; a test may hold it there.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++n_came_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return n_came_ <= n_may_pass_; });
  }
  // Returns when the engine thread stands here: there must be something that runs.
  void close() { let_pass(1); }
  // The one that stands here, and `n` - 1 more; the next one stands.
  void let_pass(std::uint64_t n) {
    std::unique_lock lock(mutex_);
    n_may_pass_ = n_may_pass_ == kAll ? n_came_ : n_may_pass_ + n;
    changed_.notify_all();
    changed_.wait(lock, [this] { return n_came_ > n_may_pass_; });
  }
  void open() {
    std::lock_guard lock(mutex_);
    n_may_pass_ = kAll;
    changed_.notify_all();
  }

 private:
  static constexpr std::uint64_t kAll = UINT64_MAX;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t n_came_ = 0;
  std::uint64_t n_may_pass_ = kAll;
};

// A desk over a core with the fake engine. Everything of the desk runs in the test's thread, inside run() and until().
class DeskTest : public ::testing::Test {
 protected:
  DeskTest() { desk_.serve(core_, nullptr, "fake", ""); }
  ~DeskTest() override { gate_.open(); }

  template <class T>
  T run(asio::awaitable<T> work) {
    std::optional<T> result;
    asio::co_spawn(io_, into(std::move(work), result), asio::detached);
    until([&] { return result.has_value(); });
    return *std::move(result);
  }
  template <class T>
  static asio::awaitable<void> into(asio::awaitable<T> work, std::optional<T>& result) {
    result.emplace(co_await std::move(work));
  }
  template <class Condition>
  void until(Condition holds) {
    for (int i = 0; i < 100'000 && !holds(); ++i) io_.run_one_for(std::chrono::milliseconds(1));
    ASSERT_TRUE(holds()) << "nothing came of it";
  }

  FakeOptions roomy() {
    FakeOptions options;
    options.n_cells = 1 << 17;
    options.on_compute = [this](std::size_t) { gate_.pass(); };
    return options;
  }

  // Endless, as far as a test goes, unless it is to be short.
  static constexpr std::int32_t kEndless = 1 << 16;
  static Call call(std::int32_t n_tokens = kEndless) {
    Call call;
    call.route = Route::kCompletions;
    call.has_prompt_tokens = true;
    call.prompt_tokens = {TokenId{1}, TokenId{2}};
    call.request.n_tokens_max = n_tokens;
    call.request.sampling.ignore_eos = true;
    call.has_seed = true;
    return call;
  }
  std::shared_ptr<Dossier> open(Call what, const Principal& who = {}, std::string digest = "a") {
    Result<Desk::Opened> opened = run(desk_.open(std::move(what), who, std::move(digest)));
    EXPECT_TRUE(opened.has_value()) << opened.error().message;
    return opened->dossier;
  }
  void until_ended(const std::shared_ptr<Dossier>& dossier) {
    until([&] { return dossier->recording.ended(); });
  }
  static Principal of_tenant(std::string tenant, std::string name = "key") {
    return {std::move(name), std::move(tenant), {Scope::kUse}};
  }

  // While the engine thread stands at the gate: no more calls of this kind are taken.
  void fill_work_lane() {
    while (core_.status(kNobody).poll() == std::nullopt) {
    }
  }
  void fill_control_lane() {
    while (core_.pause(kNobody).poll() == std::nullopt) {
    }
  }
  // Returns when what filled the lanes was taken.
  void open_gate() {
    gate_.open();
    while (await(core_.status(kNobody)).error().code == Code::kBusy ||
           await(core_.pause(kNobody)).error().code == Code::kBusy) {
    }
  }
  static constexpr GenerationId kNobody{UINT64_MAX};

  SystemClock clock_;
  Gate gate_;
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> works_{io_.get_executor()};
  Core core_{std::make_unique<FakeEngine>(roomy()), clock_};
  Desk desk_{io_.get_executor(), clock_, {}};
};

}  // namespace fermata::api
