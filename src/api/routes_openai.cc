// The routes that OpenAI's clients know.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/http/foreign_paths.h"
#include "api/names.h"
#include "api/openai/call.h"
#include "api/records.h"
#include "api/respond.h"
#include "api/routes.h"
#include "api/send_answer.h"
#include "base/limits.h"
#include "generation/text_stream.h"

namespace fermata::api {
namespace {

namespace asio = boost::asio;

Error long_key() {
  return invalid("Idempotency-Key",
                 "the header Idempotency-Key must have at most " + std::to_string(limits::kNameBytesMax) + " bytes");
}

asio::awaitable<void> complete(Desk& desk, Route route, HttpRequest request, Exchange& exchange) {
  // Long bodies are read elsewhere than where all streams are served, and not for a client that left.
  const auto leaver = std::make_shared<Leaver>();
  exchange.on_gone([leaver] { leaver->leave(); });
  std::string body_digest;
  const auto parse = [&] {
    body_digest = digest(request.body);
    return parse_call(route, request.body);
  };
  Result<Call> call = co_await desk.lanes().run(request.body.size(), leaver, parse);
  if (!call) co_return co_await refuse(exchange, call.error());
  const std::string_view key = request.header("idempotency-key");
  if (key.size() > limits::kNameBytesMax) co_return co_await refuse(exchange, long_key());
  if (call->fermata.idempotency_key.empty()) call->fermata.idempotency_key = key;
  const bool streams = call->stream;
  Result<Desk::Opened> opened = co_await desk.open(*std::move(call), request.principal, std::move(body_digest), leaver);
  if (!opened) co_return co_await refuse(exchange, opened.error());
  if (streams) co_return co_await send_stream(desk, opened->dossier, 0, exchange);
  co_await send_whole(desk, opened->dossier, 0, exchange);
}

// `name`: its own or an alias. `root` is the one behind all of them, as vLLM has it.
json::object model_object(const Desk& desk, std::string_view name) {
  const EngineInfo& info = desk.info();
  return {{"id", name},
          {"object", "model"},
          {"created", static_cast<std::int64_t>(desk.unix_time({}))},
          {"owned_by", "fermata"},
          {"root", desk.options().model_name},
          {"fermata", json::object{{"fingerprint", info.fingerprint},
                                   {"n_ctx", info.n_cells},
                                   {"n_ctx_train", info.n_ctx_train},
                                   {"n_vocab", info.n_vocab}}}};
}

HttpResponse list_models(Desk& desk, const HttpRequest&) {
  json::object answer{{"object", "list"}};
  std::vector<std::string> names = desk.options().model_aliases;
  names.insert(names.begin(), desk.options().model_name);
  json::array models;
  for (auto name = names.begin(); name != names.end(); ++name)
    if (std::find(names.begin(), name, *name) == name) models.push_back(model_object(desk, *name));
  answer["data"] = std::move(models);
  return json_response(answer);
}

HttpResponse get_model(Desk& desk, const HttpRequest& request) {
  Call call;
  call.model = name_in_path(request);
  const Result<void> known = desk.check_model(call);
  if (known) return json_response(model_object(desk, call.model));
  Error error = known.error();
  if (const std::string_view instead = instead_of_path(request.path); !instead.empty()) error.message = instead;
  return error_response(error);
}

struct TokenizeCall {
  std::string content;
  bool add_special = false;
  bool parse_special = true;
  bool with_pieces = false;
};

// As llama-server has it.
Result<TokenizeCall> parse_tokenize(std::string_view body) {
  const Result<json::object> object = parse_object(body);
  if (!object) return object.error();
  Complaints complaints;
  FieldReader fields(*object, "", complaints);
  TokenizeCall call;
  call.content = fields.string("content", limits::kTokenizeBytesMax).value_or("");
  call.add_special = fields.boolean("add_special").value_or(false);
  call.parse_special = fields.boolean("parse_special").value_or(true);
  call.with_pieces = fields.boolean("with_pieces").value_or(false);
  fields.refuse_unread();
  if (complaints.any()) return complaints.first();
  return call;
}

// Written as text: a tree of values would take a hundred bytes for each byte of a token.
HttpResponse tokens_of(const Vocabulary& vocabulary, const TokenizeCall& call) {
  std::vector<TokenId> tokens = call.add_special ? vocabulary.prompt_prefix() : std::vector<TokenId>();
  for (const TokenId token : vocabulary.tokenize(call.content, call.parse_special ? Markers::kParse : Markers::kPlain))
    tokens.push_back(token);
  HttpResponse response;
  response.body = "{\"tokens\":[";
  for (const TokenId token : tokens) {
    const std::string id = std::to_string(raw(token));
    response.body += call.with_pieces ? "{\"id\":" + id + ",\"piece\":[" : id;
    if (call.with_pieces) {
      for (const char byte : vocabulary.bytes(token))
        response.body += std::to_string(static_cast<unsigned char>(byte)) + ",";
      if (response.body.back() == ',') response.body.pop_back();
      response.body += "]}";
    }
    response.body += ',';
  }
  if (response.body.back() == ',') response.body.pop_back();
  response.body += "]}";
  return response;
}

template <class Work>
asio::awaitable<void> respond_from_lanes(Desk& desk, std::size_t n_work, const Work& work, Exchange& exchange) {
  const auto leaver = std::make_shared<Leaver>();
  exchange.on_gone([leaver] { leaver->leave(); });
  Result<HttpResponse> response = co_await desk.lanes().run(n_work, leaver, work);
  if (!response) co_return co_await refuse(exchange, response.error());
  co_await exchange.respond(*std::move(response));
}

asio::awaitable<void> tokenize(Desk& desk, HttpRequest request, Exchange& exchange) {
  const auto work = [&] {
    const Result<TokenizeCall> call = parse_tokenize(request.body);
    return call ? tokens_of(desk.core().vocabulary(), *call) : error_response(call.error());
  };
  co_await respond_from_lanes(desk, request.body.size(), work, exchange);
}

Error too_long_text() {
  return {
      Code::kTooLarge,
      "tokens have a text of more than " + std::to_string(limits::kDetokenizeBytesMax) + " bytes; ask for parts of it",
      {},
      false,
      "tokens"};
}

// {"tokens": […]} -> {"content": "…"}; what is no UTF-8 shows as U+FFFD.
HttpResponse text_of(const Vocabulary& vocabulary, std::string_view body) {
  const Result<json::object> object = parse_object(body);
  if (!object) return error_response(object.error());
  Complaints complaints;
  FieldReader fields(*object, "", complaints);
  const json::array* tokens = fields.array("tokens");
  fields.refuse_unread();
  if (!tokens) fields.refuse_missing("tokens");
  if (complaints.any()) return error_response(complaints.first());
  TextStream text(std::make_shared<const StopSet>(std::vector<std::string>{}));
  std::string content;
  for (const json::value& token : *tokens) {
    const std::int64_t* id = token.if_int64();
    if (!id || *id < 0 || *id >= vocabulary.n_tokens())
      return error_response(invalid("tokens", "tokens must be ids of this model's vocabulary", in_words(token)));
    content += text.push(vocabulary.bytes(TokenId{static_cast<std::int32_t>(*id)})).released;
    if (content.size() > limits::kDetokenizeBytesMax) return error_response(too_long_text());
  }
  content += text.finish().released;
  return json_response(json::object{{"content", content}});
}

asio::awaitable<void> detokenize(Desk& desk, HttpRequest request, Exchange& exchange) {
  const auto work = [&] { return text_of(desk.core().vocabulary(), request.body); };
  co_await respond_from_lanes(desk, request.body.size(), work, exchange);
}

}  // namespace

void add_openai_routes(Router& router, Desk& desk) {
  const RouteOptions with_body{.needs_json_body = true};
  for (const auto& [pattern, route] :
       {std::pair("/v1/chat/completions", Route::kChat), std::pair("/v1/completions", Route::kCompletions)})
    router.add("POST", pattern, Scope::kUse,
               when_ready(desk,
                          [&desk, route = route](HttpRequest request, Exchange& exchange) {
                            return complete(desk, route, std::move(request), exchange);
                          }),
               with_body);
  router.add("GET", "/v1/models", Scope::kUse, when_ready(desk, look(desk, list_models)));
  router.add("GET", "/v1/models/**", Scope::kUse, when_ready(desk, look(desk, get_model)));
  const auto both = [&](std::string_view name, auto handler) {
    for (const std::string prefix : {"/", "/v1/"})
      router.add("POST", prefix + std::string(name), Scope::kUse,
                 when_ready(desk,
                            [&desk, handler](HttpRequest request, Exchange& exchange) {
                              return handler(desk, std::move(request), exchange);
                            }),
                 with_body);
  };
  both("tokenize", tokenize);
  both("detokenize", detokenize);
}

}  // namespace fermata::api
