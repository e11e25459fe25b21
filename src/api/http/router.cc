#include "api/http/router.h"

#include <algorithm>
#include <utility>

#include "api/http/http_text.h"
#include "base/check.h"

namespace fermata::api {
namespace {

// "/a/b" -> "a", "b"; "/" -> "". Views into `path`.
std::vector<std::string_view> segments_of(std::string_view path) {
  std::vector<std::string_view> segments;
  if (!path.starts_with('/')) return segments;
  do {
    path.remove_prefix(1);
    const auto end = std::min(path.find('/'), path.size());
    segments.push_back(path.substr(0, end));
    path.remove_prefix(end);
  } while (!path.empty());
  return segments;
}

bool matches(const Endpoint& route, const std::vector<std::string_view>& path) {
  const auto& pattern = route.pattern;
  const bool open_end = pattern.back() == "**";
  if (open_end ? path.size() < pattern.size() : path.size() != pattern.size()) return false;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (open_end && i + 1 >= pattern.size()) return !path[i].empty();
    if (pattern[i] == "*" ? path[i].empty() : pattern[i] != path[i]) return false;
  }
  return true;
}

int wildness(const std::string& segment) { return segment == "**" ? 2 : segment == "*" ? 1 : 0; }

// Where both match, the first segment in which one has a word decides.
bool is_nearer(const Endpoint& a, const Endpoint& b) {
  for (std::size_t i = 0; i < std::min(a.pattern.size(), b.pattern.size()); ++i) {
    if (wildness(a.pattern[i]) != wildness(b.pattern[i])) return wildness(a.pattern[i]) < wildness(b.pattern[i]);
  }
  return a.pattern.size() > b.pattern.size();
}

bool answers(const Endpoint& route, std::string_view method) {
  return route.method == method || (method == "HEAD" && route.method == "GET");
}

std::vector<std::string> parts_of(const Endpoint& route, const std::vector<std::string_view>& path) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < route.pattern.size(); ++i) {
    if (route.pattern[i] == "**") {
      std::string rest(path[i]);
      for (std::size_t k = i + 1; k < path.size(); ++k) rest.append("/").append(path[k]);
      parts.push_back(percent_decoded(rest).value_or(rest));
    } else if (route.pattern[i] == "*") {
      parts.push_back(percent_decoded(path[i]).value_or(std::string(path[i])));
    }
  }
  return parts;
}

void allow(std::string& list, const std::string& method) {
  if (lists_token(list, method)) return;
  list.append(list.empty() ? "" : ", ").append(method);
}

}  // namespace

void Router::add(std::string method, std::string_view pattern, Scope scope, Handler handler, RouteOptions options) {
  Endpoint route{std::move(method), {}, scope, std::move(handler), options};
  for (const std::string_view segment : segments_of(pattern)) route.pattern.emplace_back(segment);
  add(std::move(route));
}

void Router::add(Endpoint route) {
  FERMATA_CHECK(!route.pattern.empty() && route.handler);
  for (std::size_t i = 0; i + 1 < route.pattern.size(); ++i) FERMATA_CHECK(route.pattern[i] != "**");
  for (const Endpoint& other : routes_) FERMATA_CHECK(other.method != route.method || other.pattern != route.pattern);
  routes_.push_back(std::move(route));
}

Router::Match Router::find(std::string_view method, std::string_view path) const {
  const auto segments = segments_of(path);
  Match match;
  for (const Endpoint& route : routes_) {
    if (!matches(route, segments)) continue;
    if (answers(route, method)) {
      if (!match.route || is_nearer(route, *match.route)) match.route = &route;
    } else {
      allow(match.allow, route.method);
      if (route.method == "GET") allow(match.allow, "HEAD");
    }
  }
  if (match.route) {
    match.allow.clear();
    match.parts = parts_of(*match.route, segments);
  }
  return match;
}

std::string Router::meant(std::string_view path) const {
  constexpr std::string_view kVersion = "/v1";
  if (path.ends_with('/')) path.remove_suffix(1);
  const std::string_view without = path.starts_with("/v1/") ? path.substr(kVersion.size()) : std::string_view();
  for (const std::string& candidate : {std::string(path), std::string(kVersion).append(path), std::string(without)}) {
    const auto segments = segments_of(candidate);
    const auto is_it = [&](const Endpoint& route) { return matches(route, segments); };
    if (std::any_of(routes_.begin(), routes_.end(), is_it)) return candidate;
  }
  return {};
}

}  // namespace fermata::api
