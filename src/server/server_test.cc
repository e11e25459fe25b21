#include "server/server.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <condition_variable>
#include <future>
#include <latch>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "engine/fake/fake_engine.h"
#include "engine/forwarding_engine.h"

namespace fermata {
namespace {

namespace asio = boost::asio;

// Of a text that takes its time, as a long one does: it ends when the engine goes away under it, or else after a while,
// in which a server that does not wait for it would be gone.
struct LongWork {
  std::latch begun{1};
  std::mutex mutex;
  std::condition_variable changed;
  bool engine_is_gone = false;
  bool engine_went_first = false;
};

class SlowVocabulary final : public Vocabulary {
 public:
  SlowVocabulary(const Vocabulary& beneath, LongWork& work) : beneath_(beneath), work_(work) {}
  std::int32_t n_tokens() const override { return beneath_.n_tokens(); }
  std::string_view bytes(TokenId token) const override { return beneath_.bytes(token); }
  bool ends_generation(TokenId token) const override { return beneath_.ends_generation(token); }
  bool is_control(TokenId token) const override { return beneath_.is_control(token); }
  std::vector<TokenId> prompt_prefix() const override { return beneath_.prompt_prefix(); }
  std::vector<TokenId> tokenize(std::string_view text, Markers markers) const override {
    if (text != "long") return beneath_.tokenize(text, markers);
    LongWork& work = work_;
    work.begun.count_down();
    std::unique_lock lock(work.mutex);
    work.engine_went_first =
        work.changed.wait_for(lock, std::chrono::milliseconds(200), [&] { return work.engine_is_gone; });
    return {};
  }

 private:
  const Vocabulary& beneath_;
  LongWork& work_;
};

class SlowEngine final : public ForwardingEngine {
 public:
  explicit SlowEngine(LongWork& work) : ForwardingEngine(fake_), work_(work), vocabulary_(fake_.vocabulary(), work) {}
  ~SlowEngine() override {
    const std::lock_guard lock(work_.mutex);
    work_.engine_is_gone = true;
    work_.changed.notify_all();
  }
  SlowEngine(const SlowEngine&) = delete;
  SlowEngine& operator=(const SlowEngine&) = delete;
  const Vocabulary& vocabulary() const override { return vocabulary_; }

 private:
  FakeEngine fake_;
  LongWork& work_;
  SlowVocabulary vocabulary_;
};

// A server that is told to hurry while it works for a request: clients are cut off, but nothing goes away under the
// work.
TEST(Server, TheEngineOutlivesWhatIsWorkedOn) {
  LongWork work;
  std::promise<std::string> ready;
  std::function<void()> ask_to_stop;
  ServerEvents events;
  events.listening = [&](const std::string&, ServerControls controls) { ask_to_stop = std::move(controls.stop); };
  events.ready = [&](const Readiness& now) { ready.set_value(now.url); };
  ServerOptions options;
  options.port = 0;
  options.linger = milliseconds(0);
  Result<void> served;
  std::thread server([&] {
    const auto load = [&](const TellLoading&) -> Result<LoadedModel> {
      return LoadedModel{std::make_unique<SlowEngine>(work), nullptr, "slow", ""};
    };
    served = serve(options, load, events);
  });

  const std::string url = ready.get_future().get();
  const auto port = static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
  asio::io_context io;
  asio::ip::tcp::socket socket(io);
  socket.connect({asio::ip::make_address("127.0.0.1"), port});
  const std::string body = R"({"content": "long"})";
  asio::write(socket, asio::buffer("POST /tokenize HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                                   "Content-Length: " +
                                   std::to_string(body.size()) + "\r\n\r\n" + body));
  work.begun.wait();
  ask_to_stop();
  ask_to_stop();
  server.join();
  EXPECT_TRUE(served);
  EXPECT_FALSE(work.engine_went_first);
}

// The engine thread stands in a step as in a kernel that hangs; the io thread goes on.
TEST(Server, IsAliveAsLongAsItsEngineThreadAnswers) {
  std::mutex mutex;
  std::condition_variable changed;
  bool hangs = false;
  int n_alive = 0;
  std::promise<ServerControls> listening;
  std::promise<std::string> ready;
  ServerEvents events;
  events.listening = [&](const std::string&, ServerControls controls) { listening.set_value(std::move(controls)); };
  events.ready = [&](const Readiness& now) { ready.set_value(now.url); };
  events.alive = [&] {
    const std::lock_guard lock(mutex);
    ++n_alive;
    changed.notify_all();
  };
  FakeOptions fake;
  std::latch is_held{1};
  fake.on_compute = [&](std::size_t) {
    std::unique_lock lock(mutex);
    if (hangs) is_held.count_down();
    changed.wait(lock, [&] { return !hangs; });
  };
  ServerOptions options;
  options.port = 0;
  options.watch_every = milliseconds(1);
  options.linger = milliseconds(0);
  std::thread server([&] {
    const auto load = [&](const TellLoading&) -> Result<LoadedModel> {
      return LoadedModel{std::make_unique<FakeEngine>(fake), nullptr, "fake", ""};
    };
    EXPECT_TRUE(serve(options, load, events));
  });
  const auto lives = [&](int n_more) {
    std::unique_lock lock(mutex);
    const int wanted = n_alive + n_more;
    return changed.wait_for(lock, std::chrono::seconds(20), [&] { return n_alive >= wanted; });
  };
  const std::string url = ready.get_future().get();
  EXPECT_TRUE(lives(3));
  {
    const std::lock_guard lock(mutex);
    hangs = true;
  }
  asio::io_context io;
  asio::ip::tcp::socket socket(io);
  socket.connect(
      {asio::ip::make_address("127.0.0.1"), static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)))});
  const std::string body = R"({"prompt": "x", "max_tokens": 2})";
  asio::write(socket,
              asio::buffer("POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                           "Content-Length: " +
                           std::to_string(body.size()) + "\r\n\r\n" + body));
  is_held.wait();
  {
    std::unique_lock lock(mutex);
    n_alive = 0;
    // One answer may have been given before the step began; a thousand looks later there is no other.
    changed.wait_for(lock, std::chrono::milliseconds(300), [&] { return n_alive > 1; });
    EXPECT_LE(n_alive, 1);
    hangs = false;
    changed.notify_all();
  }
  EXPECT_TRUE(lives(3));
  const ServerControls controls = listening.get_future().get();
  controls.stop();
  server.join();
}

}  // namespace
}  // namespace fermata
