#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/http/api_keys.h"
#include "api/http/http_request.h"
#include "api/http/router.h"
#include "base/result.h"

namespace fermata::api {

struct GuardOptions {
  std::vector<std::string> hosts;       // beside localhost, 127.0.0.1 and [::1]: "name" (any port) or "name:port"
  std::vector<std::string> origins;     // pages that may call us (CORS): "https://name[:port]"; empty: none
  std::shared_ptr<const ApiKeys> keys;  // null or empty: the local user, and loopback only
};

// What became of the head of a request, before its body is read.
struct Admission {
  const Endpoint* route = nullptr;  // admitted
  std::vector<std::string> parts;
  Principal principal;
  std::optional<ApiKeys::Hash> key;  // that was presented and is known; none: the route is open, or there are no keys
  std::optional<Error> refusal;
  std::optional<HttpResponse> preflight;                     // the answer to a CORS preflight
  std::vector<std::pair<std::string, std::string>> headers;  // of the answer, whatever it will be
};

// The name or address in "name" or "name:port", in lower case, an IPv6 address with its brackets; nothing if it is
// neither.
std::optional<std::string> host_of(std::string_view authority);

// Who may reach us, and as whom: rules of docs/security.md. Pure; io thread.
class Guard {
 public:
  static Result<Guard> make(GuardOptions options);

  Admission admit(const HttpRequest& head, std::string_view raw_path, const Router& router) const;
  bool has_keys() const { return keys_ && !keys_->empty(); }
  const std::vector<std::string>& hosts() const { return hosts_; }  // by which we may be called
  // Keys read anew; which are gone by that. Cannot take the last key away: that would open what was closed.
  Result<std::vector<ApiKeys::Hash>> replace_keys(std::shared_ptr<const ApiKeys> keys);

 private:
  explicit Guard(GuardOptions options);
  Result<void> check_host(const HttpRequest& head) const;
  Result<void> check_origin(const HttpRequest& head) const;
  // Fills in who it is.
  Result<void> authenticate(const HttpRequest& head, Admission& result) const;
  bool may_call(std::string_view origin) const;

  std::vector<std::string> hosts_;    // lower case
  std::vector<std::string> origins_;  // lower case
  std::shared_ptr<const ApiKeys> keys_;
};

}  // namespace fermata::api
