#pragma once

#include <algorithm>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace fermata::api {

// "Something changed, look again." notify() wakes all who wait now, and is not remembered: look, then wait, with
// nothing awaited between. io thread only. May die before those who wait: they get false.
class Signal {
 public:
  static constexpr Duration kForever = seconds(100LL * 365 * 24 * 3600);

  explicit Signal(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}
  ~Signal() {
    for (Waiter* waiter : std::exchange(waiters_, {})) waiter->wake(false);
  }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  // Returns at once; who waited goes on later, from the io loop.
  void notify() {
    for (Waiter* waiter : std::exchange(waiters_, {})) waiter->wake(true);
  }

  // True if notified, false after `at_most`.
  boost::asio::awaitable<bool> wait(Duration at_most) {
    Waiter waiter(*this);
    waiter.timer.expires_after(std::chrono::nanoseconds(std::clamp<std::int64_t>(at_most.ns, 0, kForever.ns)));
    boost::system::error_code ignored;
    co_await waiter.timer.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
    co_return waiter.notified;
  }

  std::size_t n_waiting() const { return waiters_.size(); }

 private:
  struct Waiter {
    explicit Waiter(Signal& owner) : signal(&owner), timer(owner.executor_) { owner.waiters_.push_back(this); }
    ~Waiter() {
      if (signal) std::erase(signal->waiters_, this);
    }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    void wake(bool by_notify) {
      signal = nullptr;
      notified = by_notify;
      timer.cancel();
    }
    Signal* signal;  // null: no longer in its list
    boost::asio::steady_timer timer;
    bool notified = false;
  };

  boost::asio::any_io_executor executor_;
  std::vector<Waiter*> waiters_;
};

}  // namespace fermata::api
