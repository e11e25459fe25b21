// What this server is, can and does.
#include <memory>
#include <string>
#include <utility>

#include "api/openapi/openapi.h"
#include "api/parameters.h"
#include "api/respond.h"
#include "api/routes.h"
#include "base/limits.h"

namespace fermata::api {
namespace {

namespace asio = boost::asio;

json::object limits_object(const Desk& desk) {
  return {{"n_ctx", desk.info().n_cells},
          {"body_bytes", limits::kHttpBodyBytesMax},
          {"stop_strings", limits::kStopStringsMax},
          {"top_logprobs", limits::kTopLogprobsMax},
          {"alive_per_key", limits::kAlivePerKeyMax},
          {"paused_per_key", limits::kPausedPerKeyMax},
          {"pause_age_ms", limits::kPauseAgeMaxMs},
          {"finished_kept_ms", desk.options().finished_kept.ns / 1'000'000},
          {"finished_kept", limits::kFinishedKept}};
}

HttpResponse capabilities(Desk& desk, const HttpRequest& request) {
  const EngineInfo& info = desk.info();
  json::object model{{"name", desk.options().model_name}, {"fingerprint", info.fingerprint}};
  if (request.principal.may(Scope::kAdmin)) model["path"] = desk.options().model_path;
  const bool exact = info.exactness.with_neighbours;
  json::object answer{{"object", "capabilities"}};
  answer["model"] = std::move(model);
  answer["exact"] = json::object{{"alone", info.exactness.alone},
                                 {"with_neighbours", exact},
                                 {"after_recompute", exact},
                                 {"why", info.exactness.why}};
  answer["interrupt"] = json::object{{"pause", true},    {"in_prefill", true}, {"in_decode", true},
                                     {"durable", false}, {"edit", false},      {"fork", false}};
  answer["chat"] = desk.chat() != nullptr;
  answer["chat_template"] = desk.chat() ? json::value(desk.chat()->origin()) : json::value();
  answer["limits"] = limits_object(desk);
  return json_response(answer);
}

// 200 while the engine answers; 503 while the model is loaded, when an interrupt is not reached or nothing is answered
// at all, and when the server stops.
HttpResponse health(Desk& desk, const HttpRequest&) {
  if (!desk.ready()) return json_response(json::object{{"status", "loading"}}, 503);
  const Duration unreached = desk.longest_unreached();
  const Duration silent = desk.silent_for();
  const bool is_stuck =
      unreached >= milliseconds(limits::kInterruptReachMs) || silent >= milliseconds(limits::kEngineSilentMs);
  const std::string_view status = desk.draining() ? "draining" : is_stuck ? "stuck" : "ok";
  return json_response(json::object{{"status", status},
                                    {"steps", desk.core().stats().n_steps_ended.load()},
                                    {"unreached_ms", unreached.ns / 1'000'000},
                                    {"silent_ms", silent.ns / 1'000'000}},
                       status == "ok" ? 200 : 503);
}

HttpResponse stats(Desk& desk, const HttpRequest&) {
  const LoopStats& s = desk.core().stats();
  return json_response(json::object{{"object", "stats"},
                                    {"steps", s.n_steps.load()},
                                    {"steps_aborted", s.n_steps_aborted.load()},
                                    {"decode_rows", s.n_decode_rows.load()},
                                    {"prefill_rows", s.n_prefill_rows.load()},
                                    {"cached_rows", s.n_cached_rows.load()},
                                    {"preempted", s.n_preempted.load()},
                                    {"parked", s.n_parked.load()},
                                    {"pages_out", s.n_pages_out.load()},
                                    {"pages_in", s.n_pages_in.load()},
                                    {"evictions", s.n_evictions.load()},
                                    {"alive", desk.n_alive()}});
}

}  // namespace

Handler when_ready(Desk& desk, Handler handler) {
  return [&desk, handler = std::move(handler)](HttpRequest request, Exchange& exchange) -> asio::awaitable<void> {
    static const Error loading{Code::kDraining, "the model is being loaded; try again in a moment", {}, true};
    return desk.ready() ? handler(std::move(request), exchange) : refuse(exchange, loading);
  };
}

Handler look(Desk& desk, Look look) {
  return [&desk, look = std::move(look)](HttpRequest request, Exchange& exchange) {
    return exchange.respond(look(desk, request));
  };
}

Handler acting(Desk& desk, Act act) {
  return [&desk, act = std::move(act)](HttpRequest request, Exchange& exchange) {
    return act(desk, std::move(request), exchange);
  };
}

void add_service_routes(Router& router, Desk& desk) {
  router.add("GET", "/v1/capabilities", Scope::kUse, when_ready(desk, look(desk, capabilities)));
  router.add("GET", "/v1/stats", Scope::kAdmin, when_ready(desk, look(desk, stats)));
  for (const char* path : {"/health", "/v1/health"})
    router.add("GET", path, Scope::kUse, look(desk, health), {.open = true});
}

void add_metrics_route(Router& router, std::function<std::string()> text) {
  const auto answer = [text = std::move(text)](const HttpRequest&, Exchange& exchange) {
    HttpResponse response;
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = text();
    return exchange.respond(std::move(response));
  };
  router.add("GET", "/metrics", Scope::kAdmin, answer);
}

// Made once: nothing in it depends on the model or on who asks, so it needs neither.
void add_description(Router& router) {
  const auto text = std::make_shared<std::string>();
  const auto describe = [text](const HttpRequest&, Exchange& exchange) {
    HttpResponse response;
    response.body = *text;
    return exchange.respond(std::move(response));
  };
  router.add("GET", "/openapi.json", Scope::kUse, describe, {.open = true});
  *text = to_text(openapi_document(router.endpoints()));
}

void add_routes(Router& router, Desk& desk, std::function<std::string()> metrics) {
  add_openai_routes(router, desk);
  Router own;
  add_generation_routes(own, desk);
  add_edit_routes(own, desk);
  add_session_routes(own, desk);
  add_event_routes(own, desk);
  add_with_own_parameters(router, own);
  add_service_routes(router, desk);
  add_metrics_route(router, std::move(metrics));
  add_description(router);
}

}  // namespace fermata::api
