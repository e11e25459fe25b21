#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>

#include "api/dossier.h"
#include "api/http/http_message.h"
#include "base/result.h"

namespace fermata::api {

// Which events of a tenant's generations a client of /v1/events wants.
class EventFilter {
 public:
  // Of the tenant whose key came; `session`, `tag` and `types` (some of kEntryTypes, with commas) of the query narrow
  // it. kInvalidArgument names a type that there is not.
  static Result<EventFilter> parse(const HttpRequest& request);
  // The entry at `place` of its log.
  bool wants(const Dossier& dossier, std::size_t place) const;

 private:
  std::string tenant_;
  std::optional<std::string> session_;
  std::optional<std::string> tag_;
  std::set<std::string, std::less<>> types_;  // none: all
};

}  // namespace fermata::api
