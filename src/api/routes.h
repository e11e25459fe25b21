#pragma once

#include <functional>
#include <string>

#include "api/desk.h"
#include "api/http/router.h"

namespace fermata::api {

// What is served, by groups. The desk outlives the router.

// Everything but health answers 503 until the desk is ready.
Handler when_ready(Desk& desk, Handler handler);
// For what is answered from what is known.
using Look = std::function<HttpResponse(Desk& desk, const HttpRequest& request)>;
Handler look(Desk& desk, Look look);
// For what takes its time.
using Act = std::function<boost::asio::awaitable<void>(Desk& desk, HttpRequest request, Exchange& exchange)>;
Handler acting(Desk& desk, Act act);

void add_openai_routes(Router& router, Desk& desk);      // completions, models, tokens of a text
void add_generation_routes(Router& router, Desk& desk);  // look at, pause, resume, cancel
void add_edit_routes(Router& router, Desk& desk);        // edit, fork, the tree of branches
void add_session_routes(Router& router, Desk& desk);     // the same of all that share a session
void add_event_routes(Router& router, Desk& desk);       // events of one and of all
void add_service_routes(Router& router, Desk& desk);     // capabilities, health
// `text` makes the answer, as Prometheus reads it.
void add_metrics_route(Router& router, std::function<std::string()> text);
void add_description(Router& router);  // of all that is there so far, and of itself

// All of these.
void add_routes(Router& router, Desk& desk, std::function<std::string()> metrics);

}  // namespace fermata::api
