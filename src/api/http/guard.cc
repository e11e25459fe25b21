#include "api/http/guard.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "api/http/foreign_paths.h"
#include "api/http/http_text.h"
#include "base/own_machine.h"

namespace fermata::api {
namespace {

struct Authority {
  std::string host;  // lower case, "[::1]" with its brackets
  std::string port;  // digits, or empty
};

std::optional<Authority> read_authority(std::string_view text) {
  Authority authority;
  const std::size_t after_address = text.starts_with('[') ? text.find(']') : 0;
  if (after_address == std::string_view::npos) return std::nullopt;
  const auto colon = text.find(':', after_address);
  authority.host = to_lower(text.substr(0, colon));
  const bool is_host = !authority.host.empty() && std::all_of(authority.host.begin(), authority.host.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '[' ||
           c == ']' || c == ':';
  });
  if (!is_host) return std::nullopt;
  if (colon == std::string_view::npos) return authority;
  authority.port = text.substr(colon + 1);
  unsigned number = 0;
  const char* const last = authority.port.data() + authority.port.size();
  const auto [end, wrong] = std::from_chars(authority.port.data(), last, number);
  if (wrong != std::errc() || end != last || number == 0 || number > 65535) return std::nullopt;
  return authority;
}

struct Origin {
  std::string scheme;
  Authority authority;
};

std::optional<Origin> read_origin(std::string_view text) {
  const auto end = text.find("://");
  if (end == std::string_view::npos) return std::nullopt;
  auto authority = read_authority(text.substr(end + 3));
  if (!authority) return std::nullopt;
  Origin origin{to_lower(text.substr(0, end)), *std::move(authority)};
  if (origin.scheme != "http" && origin.scheme != "https") return std::nullopt;
  return origin;
}

constexpr std::string_view kLoopback[] = {"localhost", "127.0.0.1", "[::1]"};

// The page came from the server that is asked. Its scheme is https behind a proxy that speaks TLS, which stands before
// names that were configured: https://localhost is somebody else.
bool is_same_origin(const Origin& origin, const Authority& host) {
  if (origin.scheme == "https" && names_own_machine(host.host)) return false;
  const std::string default_port = origin.scheme == "https" ? "443" : "80";
  const auto port = [&](const Authority& a) { return a.port.empty() ? default_port : a.port; };
  return origin.authority.host == host.host && port(origin.authority) == port(host);
}

// "application/json", with no parameter but charset=utf-8. A browser sends this to another origin only after asking.
bool is_json(std::string_view type) {
  const auto semicolon = type.find(';');
  if (!equals_ignoring_case(trimmed(type.substr(0, semicolon)), "application/json")) return false;
  if (semicolon == std::string_view::npos) return true;
  const std::string_view parameter = trimmed(type.substr(semicolon + 1));
  return parameter.empty() || equals_ignoring_case(parameter, "charset=utf-8") ||
         equals_ignoring_case(parameter, "charset=\"utf-8\"");
}

bool changes_things(std::string_view method) { return method != "GET" && method != "HEAD" && method != "OPTIONS"; }

constexpr std::string_view kMethods = "GET, HEAD, POST, PUT, DELETE, OPTIONS";
constexpr std::string_view kExposed =
    "x-fermata-generation, x-fermata-session, x-request-id, retry-after, x-should-retry, allow";

HttpResponse preflight_answer(const HttpRequest& head) {
  HttpResponse answer;
  answer.status = 204;
  answer.headers.emplace_back("access-control-allow-methods", kMethods);
  // Which headers come is no danger once the origin is trusted, and openai's client sends a dozen of its own.
  answer.headers.emplace_back("access-control-allow-headers", head.header("access-control-request-headers"));
  answer.headers.emplace_back("access-control-max-age", "600");
  if (!head.header("access-control-request-private-network").empty()) {
    answer.headers.emplace_back("access-control-allow-private-network", "true");
  }
  return answer;
}

Error no_such_path(std::string_view path, const std::string& meant) {
  std::string message = "There is nothing at this path; ";
  const std::string_view instead = instead_of_path(path);
  if (!instead.empty())
    message += std::string(instead) + ". ";
  else if (!meant.empty())
    message += "did you mean " + ascii_excerpt(meant) + "? ";
  return {Code::kNotFound, message + "/openapi.json lists what there is.", {}};
}

Principal local_user() { return {"local", "", {Scope::kUse, Scope::kReview, Scope::kAdmin}}; }

}  // namespace

std::optional<std::string> host_of(std::string_view authority) {
  std::optional<Authority> read = read_authority(authority);
  if (!read) return std::nullopt;
  return std::move(read->host);
}

Guard::Guard(GuardOptions options) : keys_(std::move(options.keys)) {
  hosts_.assign(std::begin(kLoopback), std::end(kLoopback));
  for (const std::string& host : options.hosts) hosts_.push_back(to_lower(host));
  for (const std::string& origin : options.origins) origins_.push_back(to_lower(origin));
}

Result<Guard> Guard::make(GuardOptions options) {
  for (const std::string& host : options.hosts) {
    if (!read_authority(host)) {
      return Error{Code::kInvalidArgument, "an allowed host is a name or an address, with :port or without", host};
    }
  }
  for (const std::string& origin : options.origins) {
    if (!read_origin(origin)) {
      return Error{Code::kInvalidArgument, "an allowed origin is http://name[:port] or https://name[:port]", origin};
    }
  }
  return Guard(std::move(options));
}

Result<std::vector<ApiKeys::Hash>> Guard::replace_keys(std::shared_ptr<const ApiKeys> keys) {
  if (has_keys() && (!keys || keys->empty())) {
    return Error{Code::kInvalidArgument, "the last API key cannot be taken away while the server runs", {}};
  }
  const std::shared_ptr<const ApiKeys> before = std::exchange(keys_, std::move(keys));
  return before && keys_ ? before->gone_from(*keys_) : std::vector<ApiKeys::Hash>();
}

// A page of an attacker whose name was made to point at us (DNS rebinding) is same-origin for the browser; only the
// name tells.
Result<void> Guard::check_host(const HttpRequest& head) const {
  const auto host = read_authority(head.header("host"));
  const auto is_ours = [&](const std::string& ours) {
    return ours == host->host || ours == host->host + ":" + host->port;
  };
  if (host && std::any_of(hosts_.begin(), hosts_.end(), is_ours)) return {};
  return Error{Code::kWrongHost,
               "This server does not go by that name; its operator can allow it with --allow-host NAME.",
               ascii_excerpt(head.header("host"))};
}

bool Guard::may_call(std::string_view origin) const {
  return std::find(origins_.begin(), origins_.end(), to_lower(origin)) != origins_.end();
}

Result<void> Guard::check_origin(const HttpRequest& head) const {
  const std::string_view origin = head.header("origin");
  const std::string_view site = head.header("sec-fetch-site");
  if (head.headers.contains("origin")) {
    if (may_call(origin)) return {};
    const auto page = read_origin(origin);
    const auto host = read_authority(head.header("host"));
    if (!page || !host || !is_same_origin(*page, *host)) {
      return Error{Code::kForbidden, "A page of another origin may not call this server; its operator can allow it.",
                   ascii_excerpt(origin)};
    }
  }
  // same-site is another port or a sibling name: not us either. "none" is the user's own address bar.
  if (site.empty() || site == "same-origin" || site == "none") return {};
  return Error{Code::kForbidden, "A page of another site may not call this server.", ascii_excerpt(site)};
}

Result<void> Guard::authenticate(const HttpRequest& head, Admission& result) const {
  if (!has_keys()) {
    result.principal = local_user();
    return {};
  }
  const std::string_view header = head.header("authorization");
  const auto blank = header.find(' ');
  if (blank == std::string_view::npos || !equals_ignoring_case(header.substr(0, blank), "bearer")) {
    return Error{Code::kUnauthenticated, "This server needs an API key: send Authorization: Bearer KEY.", {}};
  }
  auto found = keys_->find(trimmed(header.substr(blank)));
  if (!found) return Error{Code::kUnauthenticated, "This API key is not known here.", {}};
  result.principal = std::move(found->principal);
  result.key = found->hash;
  return {};
}

// In this order: who is not us, then who may not ask, then what there is. What a stranger may learn is nothing.
Admission Guard::admit(const HttpRequest& head, std::string_view raw_path, const Router& router) const {
  Admission result;
  const auto refuse = [&](Error error) -> Admission& {
    result.refusal = std::move(error);
    return result;
  };
  if (auto ours = check_host(head); !ours) return refuse(ours.error());
  if (auto allowed = check_origin(head); !allowed) return refuse(allowed.error());
  const std::string_view origin = head.header("origin");
  const bool is_cors = may_call(origin);
  if (!origins_.empty()) result.headers.emplace_back("vary", "origin");
  if (is_cors) {
    result.headers.emplace_back("access-control-allow-origin", origin);
    result.headers.emplace_back("access-control-expose-headers", kExposed);
    if (head.method == "OPTIONS" && head.headers.contains("access-control-request-method")) {
      result.preflight = preflight_answer(head);
      return result;
    }
  }

  Router::Match match = router.find(head.method, raw_path);
  const bool is_open = match.route && match.route->options.open;
  if (const auto known = is_open ? Result<void>() : authenticate(head, result); !known) {
    result.headers.emplace_back("www-authenticate", "Bearer");
    return refuse(known.error());
  }
  if (!match.route && match.allow.empty()) return refuse(no_such_path(raw_path, router.meant(raw_path)));
  if (!match.route) {
    result.headers.emplace_back("allow", match.allow);
    const std::string instead(instead_of_path(raw_path));
    return refuse({Code::kMethod,
                   "This path is there, but not for this method; it has " + match.allow + "." +
                       (instead.empty() ? "" : " But " + instead + "."),
                   {}});
  }
  if (changes_things(head.method) && !is_json(head.header("content-type"))) {
    return refuse({Code::kMediaType, "Send Content-Type: application/json, with an empty body too.",
                   ascii_excerpt(head.header("content-type"))});
  }
  if (!is_open && !result.principal.may(match.route->scope)) {
    return refuse(
        {Code::kForbidden,
         "This API key may not do that; it needs the scope " + std::string(to_string(match.route->scope)) + ".",
         {}});
  }
  result.route = match.route;
  result.parts = std::move(match.parts);
  return result;
}

}  // namespace fermata::api
