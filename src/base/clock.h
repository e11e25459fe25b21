#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace fermata {

// Time is an integer: nanoseconds since an arbitrary start, monotonic.
struct Instant {
  std::int64_t ns = 0;
  auto operator<=>(const Instant&) const = default;
};
struct Duration {
  std::int64_t ns = 0;
  auto operator<=>(const Duration&) const = default;
  double ms() const { return static_cast<double>(ns) / 1e6; }
  double seconds() const { return static_cast<double>(ns) / 1e9; }
};
constexpr Duration operator-(Instant a, Instant b) { return {a.ns - b.ns}; }
constexpr Instant operator+(Instant a, Duration d) { return {a.ns + d.ns}; }
constexpr Duration operator+(Duration a, Duration b) { return {a.ns + b.ns}; }
constexpr Duration milliseconds(std::int64_t n) { return {n * 1'000'000}; }
constexpr Duration seconds(std::int64_t n) { return {n * 1'000'000'000}; }

// Thread-safe. Everything that looks at time gets a Clock, so that tests can stand still or jump.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant now() const = 0;
};

class SystemClock final : public Clock {
 public:
  Instant now() const override {
    return {std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
                .count()};
  }
};

class ManualClock final : public Clock {
 public:
  Instant now() const override { return {ns_.load(std::memory_order_relaxed)}; }
  void advance(Duration d) { ns_.fetch_add(d.ns, std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> ns_{1'000'000'000};
};

}  // namespace fermata
