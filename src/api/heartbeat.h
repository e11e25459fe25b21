#pragma once

#include <optional>

#include "base/clock.h"
#include "runtime/command.h"
#include "runtime/core.h"
#include "runtime/reply.h"

namespace fermata::api {

// Whether the engine thread still answers: it is asked something that costs nothing, and anew when it has answered. A
// kernel that hangs cannot be left from inside, so all that can be done is to say so.
class Heartbeat {
 public:
  // Never waits. True: there was an answer since the last look. A refusal by a full mailbox is none of the engine's.
  bool look(Core& core, Instant now);
  // Since the oldest question without an answer; 0: there is none.
  Duration silent_for(Instant now) const { return asked_ ? now - asked_at_ : Duration(); }

 private:
  std::optional<Reply<Status>> asked_;
  Instant asked_at_;  // the first of those that had no answer
};

}  // namespace fermata::api
