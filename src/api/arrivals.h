#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "api/http/http_message.h"
#include "base/clock.h"
#include "base/result.h"

namespace fermata::api {

// Requests that have no generation yet: those that are being prepared, and those that were cancelled by their client id
// before they came (for a minute). Owner: the io thread.
class Arrivals {
 public:
  void begin(const std::string& tenant, const std::string& client_id);
  void end(const std::string& tenant, const std::string& client_id);
  std::size_t n() const { return n_; }
  // One with this client id is being prepared.
  bool is_coming(const std::string& tenant, const std::string& client_id) const;

  // kBusy if too many are cancelled already.
  Result<void> cancel(const std::string& tenant, std::string_view client_id, Instant now);
  // Whether it was cancelled before it came; it counts once.
  bool take_cancel(const std::string& tenant, const std::string& client_id);
  void sweep(Instant now);

 private:
  using Name = std::pair<std::string, std::string>;  // tenant, client id
  std::size_t n_ = 0;
  std::map<Name, std::size_t> coming_;  // so many of each
  std::map<Name, Instant> cancelled_;
};

}  // namespace fermata::api
