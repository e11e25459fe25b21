#include "api/heartbeat.h"

namespace fermata::api {

bool Heartbeat::look(Core& core, Instant now) {
  const std::optional<Result<Status>> answer = asked_ ? asked_->poll() : std::nullopt;
  if (asked_ && !answer) return false;
  const bool has_answered = answer && (answer->has_value() || answer->error().code != Code::kBusy);
  if (!asked_ || has_answered) asked_at_ = now;
  asked_.emplace(core.status(kNoGeneration));
  return has_answered;
}

}  // namespace fermata::api
