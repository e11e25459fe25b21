#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "base/ring.h"

namespace fermata {

// The answer to one command: the engine thread sends it once, whoever asked waits for it, polls it, or is woken.
// Copies share the answer; whoever takes it first has it.
template <class T>
class Reply {
 public:
  explicit Reply(std::function<void()> wake = {}) : slot_(std::make_shared<Ring<Result<T>>>(1, std::move(wake))) {}

  void send(Result<T> answer) const {
    const bool sent = slot_->push(std::move(answer));
    FERMATA_CHECK(sent);  // a command is answered once
  }
  std::optional<Result<T>> poll() const { return slot_->try_pop(); }
  std::optional<Result<T>> wait(Duration at_most) const { return slot_->pop(at_most); }

 private:
  std::shared_ptr<Ring<Result<T>>> slot_;
};

}  // namespace fermata
