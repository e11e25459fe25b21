#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>

#include "base/ids.h"
#include "runtime/command.h"
#include "runtime/live.h"

namespace fermata {

Status status_of(const Live& live);

// All generations the engine thread knows: the living in order of arrival, and how the last finished ones ended.
// Owner: the engine thread.
class Roster {
 public:
  Live& add(Live live);
  Live* find(GenerationId id);
  std::optional<Status> ended(GenerationId id) const;
  std::size_t size() const { return lives_.size(); }

  void for_each(const std::function<void(Live&)>& visit);
  void for_each(const std::function<void(const Live&)>& visit) const;

  // Moves what generations said to their readers, as far as there is room; forgets finished ones that have said all.
  void deliver();
  // The same for one, which is not forgotten.
  static void deliver(Live& live);

 private:
  void remember_end(const Status& status);

  std::map<GenerationId, Live> lives_;  // ids grow, so this is the order of arrival
  std::unordered_map<GenerationId, Status> ended_;
  std::deque<GenerationId> ended_order_;
};

}  // namespace fermata
