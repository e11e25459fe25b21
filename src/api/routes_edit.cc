// The routes that change the past of a generation, and make several of one.
#include <utility>

#include "api/page.h"
#include "api/records.h"
#include "api/respond.h"
#include "api/routes.h"
#include "base/limits.h"

namespace fermata::api {
namespace {

namespace asio = boost::asio;

HttpResponse edited_response(const Dossier& dossier, const Edited& edited) {
  json::object answer{{"object", "edit"}, {"id", dossier.id()}, {"dry_run", edited.dry_run}};
  answer["first_changed"] = edited.first_changed;
  answer["kept"] = edited.first_changed;
  answer["recomputed"] = edited.n_recomputed;
  answer["ms"] = edited.took.ms();
  answer["version"] = edited.version;
  answer["pause_id"] = edited.pause_id.empty() ? json::value() : json::value(edited.pause_id);
  answer["text_bytes_kept"] = edited.n_text_bytes_kept;
  answer["takes_text_back"] = edited.takes_text_back;
  answer["approximate"] = false;
  return json_response(answer);
}

asio::awaitable<void> edit(Desk& desk, HttpRequest request, Exchange& exchange) {
  const auto found = desk.find(name_in_path(request), request.principal);
  if (!found) co_return co_await refuse(exchange, found.error());
  Result<EditBody> body = parse_edit(request.body);
  if (!body) co_return co_await refuse(exchange, body.error());
  const Result<Edited> edited = co_await desk.edit(*found, *std::move(body));
  if (!edited) co_return co_await refuse(exchange, edited.error());
  co_await exchange.respond(edited_response(**found, *edited));
}

asio::awaitable<void> fork(Desk& desk, HttpRequest request, Exchange& exchange) {
  const auto found = desk.find(name_in_path(request), request.principal);
  if (!found) co_return co_await refuse(exchange, found.error());
  Result<ForkBody> body = parse_fork(request.body);
  if (!body) co_return co_await refuse(exchange, body.error());
  const auto branches = co_await desk.fork(*found, *std::move(body), request.principal);
  if (!branches) co_return co_await refuse(exchange, branches.error());
  json::array data;
  for (const auto& branch : *branches) data.emplace_back(generation_object(desk, *branch));
  co_await exchange.respond(json_response(list_object(std::move(data)), 201));
}

// A branch has been forked once, so this ends; it is as deep as branches of branches go.
json::object tree_object(const Desk& desk, const Dossier& dossier) {
  json::object node{{"id", dossier.id()}, {"state", to_string(dossier.recording.state())}};
  node["forked_at"] = dossier.parent.empty() ? json::value() : json::value(dossier.forked_at);
  node["seed"] = dossier.head.seed;
  json::array branches;
  for (const auto& branch : desk.branches_of(dossier)) branches.emplace_back(tree_object(desk, *branch));
  node["branches"] = std::move(branches);
  return node;
}

// Of all that have the same first ancestor that is kept.
HttpResponse tree(Desk& desk, const HttpRequest& request) {
  const auto found = desk.find(name_in_path(request), request.principal);
  if (!found) return error_response(found.error());
  std::shared_ptr<Dossier> root = *found;
  while (!root->parent.empty()) {
    const auto parent = desk.find(root->parent, request.principal);
    if (!parent) break;
    root = *parent;
  }
  json::object answer = tree_object(desk, *root);
  answer["object"] = "tree";
  return json_response(answer);
}

}  // namespace

void add_edit_routes(Router& router, Desk& desk) {
  const auto done = [&](std::string_view pattern, Act act) {
    router.add("POST", pattern, Scope::kUse, when_ready(desk, acting(desk, std::move(act))));
  };
  done("/v1/generations/*/edit", edit);
  done("/v1/generations/*/fork", fork);
  router.add("GET", "/v1/generations/*/tree", Scope::kUse, when_ready(desk, look(desk, tree)));
}

}  // namespace fermata::api
