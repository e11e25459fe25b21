#pragma once

#include "base/clock.h"

namespace fermata::api {

// How long a stream may still say nothing. Counted from what was last written, not from what was last looked at: news
// of which the client hears nothing (a text that is held back, a pause and its end) must not put a keep-alive off.
class Silence {
 public:
  Silence(const Clock& clock, Duration at_most) : clock_(clock), at_most_(at_most) { begin(); }

  void begin() { since_ = clock_.now(); }
  Duration left() const { return since_ + at_most_ - clock_.now(); }  // below 0: over

 private:
  const Clock& clock_;
  Duration at_most_;
  Instant since_;
};

}  // namespace fermata::api
