#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

namespace fermata {

// How many values were how large, and their sum: a histogram as Prometheus has them. Any thread, without a lock; a
// snapshot may miss values that are being observed, and has each of the others once.
class Histogram {
 public:
  // Upper bounds of the buckets, inclusive, ascending; what is larger than all of them has a bucket of its own.
  explicit Histogram(std::vector<double> bounds)
      : bounds_(std::move(bounds)), counts_(std::make_unique<std::atomic<std::uint64_t>[]>(bounds_.size() + 1)) {}

  void observe(double value) {
    const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
    counts_[static_cast<std::size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
  }

  std::span<const double> bounds() const { return bounds_; }
  struct Snapshot {
    std::vector<std::uint64_t> counts;  // [bounds + 1], of each bucket alone
    double sum = 0;
    std::uint64_t n() const { return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}); }
  };
  Snapshot snapshot() const {
    Snapshot taken;
    for (std::size_t i = 0; i <= bounds_.size(); ++i)
      taken.counts.push_back(counts_[i].load(std::memory_order_relaxed));
    taken.sum = sum_.load(std::memory_order_relaxed);
    return taken;
  }

 private:
  std::vector<double> bounds_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> counts_;
  std::atomic<double> sum_{0};
};

}  // namespace fermata
