#include "api/arrivals.h"

#include <algorithm>

#include "base/limits.h"

namespace fermata::api {

void Arrivals::begin(const std::string& tenant, const std::string& client_id) {
  ++n_;
  ++coming_[{tenant, client_id}];
}

void Arrivals::end(const std::string& tenant, const std::string& client_id) {
  --n_;
  const auto entry = coming_.find({tenant, client_id});
  if (--entry->second == 0) coming_.erase(entry);
}

bool Arrivals::is_coming(const std::string& tenant, const std::string& client_id) const {
  return coming_.contains({tenant, client_id});
}

Result<void> Arrivals::cancel(const std::string& tenant, std::string_view client_id, Instant now) {
  if (client_id.empty() || client_id.size() > limits::kNameBytesMax)
    return Error{Code::kInvalidArgument, "a client id has 1 to " + std::to_string(limits::kNameBytesMax) + " bytes",
                 std::to_string(client_id.size()) + " bytes", false};
  const auto n_of_tenant = static_cast<std::size_t>(std::count_if(
      cancelled_.begin(), cancelled_.end(), [&](const auto& entry) { return entry.first.first == tenant; }));
  if (n_of_tenant >= limits::kTombstonesPerTenantMax || cancelled_.size() >= limits::kTombstonesMax)
    return Error{Code::kBusy, "too many requests were cancelled before they came; try again in a minute",
                 "limit " + std::to_string(limits::kTombstonesPerTenantMax), true};
  cancelled_[{tenant, std::string(client_id)}] = now;
  return {};
}

bool Arrivals::take_cancel(const std::string& tenant, const std::string& client_id) {
  return cancelled_.erase({tenant, client_id}) > 0;
}

void Arrivals::sweep(Instant now) {
  std::erase_if(cancelled_,
                [&](const auto& entry) { return now - entry.second >= milliseconds(limits::kTombstoneMs); });
}

}  // namespace fermata::api
