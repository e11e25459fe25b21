// The routes of sessions: all generations that share a name.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/control_body.h"
#include "api/page.h"
#include "api/records.h"
#include "api/respond.h"
#include "api/routes.h"

namespace fermata::api {
namespace {

namespace asio = boost::asio;

enum class OfAll { kPause, kCancel };

Error no_session(const HttpRequest& request) {
  return {Code::kNotFound, "there is no such session", std::string(name_in_path(request)), false};
}

asio::awaitable<void> all_of_session(Desk& desk, OfAll what, HttpRequest request, Exchange& exchange) {
  const auto generations = desk.of_session(name_in_path(request), request.principal);
  if (generations.empty()) co_return co_await refuse(exchange, no_session(request));
  const Result<void> well = check_no_fields(request.body);
  if (!well) co_return co_await refuse(exchange, well.error());
  std::vector<std::shared_ptr<Dossier>> alive = generations;
  std::erase_if(alive, [](const auto& dossier) { return dossier->recording.ended(); });
  // Newest first: the end of one would let the next one begin.
  for (auto dossier = alive.rbegin(); dossier != alive.rend(); ++dossier) {
    Result<void> done;
    if (what == OfAll::kCancel)
      done = co_await desk.cancel(*dossier, EndReason::kCancelled);
    else if (!desk.hold(*dossier))
      done = co_await desk.pause(*dossier, WaitReason::kUser);
    // One that ends meanwhile is as good as paused.
    if (!done && done.error().code != Code::kWrongState) co_return co_await refuse(exchange, done.error());
  }
  json::array data;
  for (const auto& dossier : alive) data.emplace_back(generation_object(desk, *dossier));
  co_await exchange.respond(json_response(list_object(std::move(data))));
}

// As a dialogue is read: oldest first.
HttpResponse get_session(Desk& desk, const HttpRequest& request) {
  const Result<PageCall> page = parse_page(request, "asc");
  if (!page) return error_response(page.error());
  auto generations = desk.of_session(name_in_path(request), request.principal);
  if (generations.empty()) return error_response(no_session(request));
  const Result<bool> has_more = cut_page(*page, generations, [](const auto& dossier) { return dossier->id(); });
  if (!has_more) return error_response(lost_place(desk, request.principal, *page->after));
  json::array data;
  for (const auto& dossier : generations) data.emplace_back(generation_object(desk, *dossier));
  json::object answer = list_object(std::move(data), *has_more);
  answer["id"] = name_in_path(request);
  answer["object"] = "session";
  answer["generations"] = std::move(answer.at("data"));
  answer.erase("data");
  return json_response(answer);
}

// What a list says of a session.
struct SessionLine {
  std::string id;
  std::size_t n_generations = 0;
  std::size_t n_alive = 0;
  const Dossier* newest = nullptr;
};

// In the order of their newest generations, oldest first.
std::vector<SessionLine> session_lines(const std::vector<std::shared_ptr<Dossier>>& generations) {
  std::vector<SessionLine> lines;
  std::map<std::string_view, std::size_t> place_of;
  for (auto dossier = generations.rbegin(); dossier != generations.rend(); ++dossier) {
    const std::string& session = (*dossier)->head.session;
    if (session.empty()) continue;
    const auto [entry, is_new] = place_of.emplace(session, lines.size());
    if (is_new) lines.push_back({session, 0, 0, dossier->get()});
    SessionLine& line = lines[entry->second];
    ++line.n_generations;
    if (!(*dossier)->recording.ended()) ++line.n_alive;
  }
  return {lines.rbegin(), lines.rend()};
}

HttpResponse list_sessions(Desk& desk, const HttpRequest& request) {
  const Result<PageCall> page = parse_page(request);
  if (!page) return error_response(page.error());
  const std::vector<std::shared_ptr<Dossier>> generations = desk.all(request.principal);
  std::vector<SessionLine> lines = session_lines(generations);
  const Result<bool> has_more = cut_page(*page, lines, [](const SessionLine& line) { return line.id; });
  if (!has_more) return error_response(has_more.error());
  json::array data;
  for (const SessionLine& line : lines) {
    json::object one{{"id", line.id}, {"object", "session"}};
    one["n_generations"] = line.n_generations;
    one["n_alive"] = line.n_alive;
    one["newest"] = line.newest->id();
    one["state"] = to_string(line.newest->recording.state());
    one["created_at"] = desk.unix_time(line.newest->created);
    data.emplace_back(std::move(one));
  }
  return json_response(list_object(std::move(data), *has_more));
}

}  // namespace

void add_session_routes(Router& router, Desk& desk) {
  router.add("GET", "/v1/sessions", Scope::kUse, when_ready(desk, look(desk, list_sessions)));
  router.add("GET", "/v1/sessions/*", Scope::kUse, when_ready(desk, look(desk, get_session)));
  for (const auto& [name, what] : {std::pair("pause", OfAll::kPause), std::pair("cancel", OfAll::kCancel)}) {
    const auto act = [what = what](Desk& d, HttpRequest request, Exchange& exchange) {
      return all_of_session(d, what, std::move(request), exchange);
    };
    router.add("POST", "/v1/sessions/*/" + std::string(name), Scope::kUse, when_ready(desk, acting(desk, act)));
  }
}

}  // namespace fermata::api
