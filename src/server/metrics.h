#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "api/desk.h"
#include "base/histogram.h"
#include "generation/state.h"

namespace fermata {

class MetricFamilies;

// What Prometheus is told: counts of what generations did, which it hears as a follower of the desk; what there is now;
// and what the engine thread and the process count themselves. docs/metrics.md lists all of it. io thread.
class Metrics {
 public:
  // The desk outlives it, and tells its followers nothing when it ends.
  Metrics(api::Desk& desk, std::function<std::uint64_t()> n_log_lines_lost);
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Everything there is, in the text format of Prometheus (version 0.0.4).
  std::string text() const;

 private:
  void add_generations(MetricFamilies& families) const;
  void take(const api::Dossier& dossier, std::size_t place);
  void take_end_of_pause(const api::Dossier& dossier, std::size_t place);
  void take_text(const api::Dossier& dossier, const TextEvent& text, Instant sent);
  void take_end(const api::Dossier& dossier, const FinishEvent& finish, Instant ended);

  api::Desk& desk_;
  const std::function<std::uint64_t()> n_log_lines_lost_;
  Histogram ttft_s_;
  Histogram itl_s_;
  Histogram whole_s_;
  Histogram paused_s_;
  Histogram n_prompt_;
  Histogram n_generated_;
  std::uint64_t n_prompt_cached_ = 0;
  std::array<std::uint64_t, kEndReasons> n_ended_{};
  std::array<std::uint64_t, kWaitReasons> n_pauses_{};
};

}  // namespace fermata
