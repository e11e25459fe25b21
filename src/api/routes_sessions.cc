// The routes of sessions: all generations that share a name.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/control_body.h"
#include "api/names.h"
#include "api/page.h"
#include "api/records.h"
#include "api/respond.h"
#include "api/routes.h"

namespace fermata::api {
namespace {

namespace asio = boost::asio;

using Alive = std::vector<std::shared_ptr<Dossier>>;  // those of a session that have not ended, oldest first

Error no_session(const HttpRequest& request) {
  return {Code::kNotFound, "there is no such session", std::string(name_in_path(request)), false};
}

bool is_settled(const Result<void>& done) { return done || done.error().code == Code::kWrongState; }

// Newest first: the end of one would let the next one begin. One that ends meanwhile is as good as paused.
asio::awaitable<Result<void>> pause_all(Desk& desk, Alive alive) {
  for (auto dossier = alive.rbegin(); dossier != alive.rend(); ++dossier) {
    const Result<void> done = co_await desk.pause(*dossier, WaitReason::kUser);
    if (!is_settled(done)) co_return done;
  }
  co_return Result<void>();
}

asio::awaitable<Result<void>> cancel_all(Desk& desk, Alive alive) {
  for (auto dossier = alive.rbegin(); dossier != alive.rend(); ++dossier) {
    const Result<void> done = co_await desk.cancel(*dossier, EndReason::kCancelled);
    if (!is_settled(done)) co_return done;
  }
  co_return Result<void>();
}

// Of those that stand in a pause the one that was paused last: it was the one that ran. What a new message displaced
// was not paused by who pauses a session, and whose reader is slow goes on by itself.
std::shared_ptr<Dossier> paused_last(const Alive& alive) {
  std::shared_ptr<Dossier> last;
  for (const auto& dossier : alive) {
    const PauseTicket* pause = dossier->recording.pause();
    if (!pause || pause->record.reason == WaitReason::kNewMessage || pause->record.reason == WaitReason::kSlowReader)
      continue;
    if (!last || last->recording.pause()->reached <= pause->reached) last = dossier;
  }
  return last;
}

// What was held before it began goes back to its place in the queue, behind the one that goes on.
asio::awaitable<Result<void>> resume_all(Desk& desk, Alive alive) {
  if (const auto last = paused_last(alive)) {
    const Result<std::size_t> resumed = co_await desk.resume(last, std::string(), digest("session"));
    // Another one of the session runs, or somebody else resumed it at the same time.
    const bool is_refused = !resumed && resumed.error().code != Code::kWrongState;
    if (is_refused && resumed.error().code != Code::kAlreadyResumed) co_return resumed.error();
  }
  for (const auto& dossier : alive) desk.let_go(dossier);
  co_return Result<void>();
}

using SteerAll = asio::awaitable<Result<void>> (*)(Desk& desk, Alive alive);

asio::awaitable<void> all_of_session(Desk& desk, SteerAll steer, HttpRequest request, Exchange& exchange) {
  Alive alive = desk.of_session(name_in_path(request), request.principal);
  if (alive.empty()) co_return co_await refuse(exchange, no_session(request));
  const Result<void> well = check_no_fields(request.body);
  if (!well) co_return co_await refuse(exchange, well.error());
  std::erase_if(alive, [](const auto& dossier) { return dossier->recording.ended(); });
  const Result<void> done = co_await steer(desk, alive);
  if (!done) co_return co_await refuse(exchange, done.error());
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
  for (const auto& [name, steer] :
       {std::pair<std::string, SteerAll>("pause", pause_all), std::pair<std::string, SteerAll>("resume", resume_all),
        std::pair<std::string, SteerAll>("cancel", cancel_all)}) {
    const auto act = [steer = steer](Desk& d, HttpRequest request, Exchange& exchange) {
      return all_of_session(d, steer, std::move(request), exchange);
    };
    router.add("POST", "/v1/sessions/*/" + name, Scope::kUse, when_ready(desk, acting(desk, act)));
  }
}

}  // namespace fermata::api
