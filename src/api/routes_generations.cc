// The routes of generations: look at them, pause, resume, cancel.
#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "api/control_body.h"
#include "api/names.h"
#include "api/page.h"
#include "api/records.h"
#include "api/respond.h"
#include "api/routes.h"
#include "api/send_answer.h"
#include "base/limits.h"

namespace fermata::api {
namespace {

namespace asio = boost::asio;

HttpResponse get(Desk& desk, const HttpRequest& request) {
  const auto found = desk.find(name_in_path(request), request.principal);
  return found ? json_response(generation_object(desk, **found)) : error_response(found.error());
}

// ------------------------------------------------------------------------------------------------------------ list

// Which generations a list has. Empty sets: whatever state, or reason, it is.
struct Wanted {
  std::set<std::string, std::less<>> states;
  std::set<std::string, std::less<>> reasons;
  std::optional<std::string> session;
  std::optional<std::string> tag;
  double created_after = -1;  // seconds since 1970

  bool fits(const Desk& desk, const Dossier& dossier) const {
    const Recording& recording = dossier.recording;
    const std::string_view reason =
        recording.end() ? to_string(recording.end()->reason) : to_string(recording.wait_reason());
    const auto& tags = dossier.options.tags;
    return (states.empty() || states.contains(to_string(recording.state()))) &&
           (reasons.empty() || reasons.contains(reason)) && (!session || *session == dossier.head.session) &&
           (!tag || std::find(tags.begin(), tags.end(), *tag) != tags.end()) &&
           desk.unix_time(dossier.created) > created_after;
  }
};

// Names of the values from `first` on, of an enum with n values.
template <class Enum>
void add_words(std::vector<std::string_view>& words, Enum first, std::size_t n) {
  for (auto i = static_cast<std::size_t>(first); i < n; ++i) words.push_back(to_string(static_cast<Enum>(i)));
}

// States and reasons that there are not are errors: a misspelt one would be that of nobody.
Result<Wanted> parse_wanted(const HttpRequest& request) {
  std::vector<std::string_view> known_states, known_reasons;
  add_words(known_states, State::kQueued, kStates);
  add_words(known_reasons, WaitReason::kQueue, kWaitReasons);
  add_words(known_reasons, EndReason::kStop, kEndReasons);
  auto states = words_parameter(request, "state", known_states);
  if (!states) return states.error();
  auto reasons = words_parameter(request, "reason", known_reasons);
  if (!reasons) return reasons.error();
  const Result<std::int64_t> created_after = number_parameter(request, "created_after", -1, 0, INT64_MAX);
  if (!created_after) return created_after.error();
  return Wanted{*std::move(states), *std::move(reasons), request.parameter("session"), request.parameter("tag"),
                static_cast<double>(*created_after)};
}

HttpResponse list(Desk& desk, const HttpRequest& request) {
  const Result<Wanted> wanted = parse_wanted(request);
  if (!wanted) return error_response(wanted.error());
  const Result<PageCall> page = parse_page(request);
  if (!page) return error_response(page.error());
  std::vector<std::shared_ptr<Dossier>> all = desk.all(request.principal);
  const Result<bool> has_more = cut_page(
      *page, all, [](const auto& d) { return d->id(); }, [&](const auto& d) { return wanted->fits(desk, *d); });
  if (!has_more) return error_response(lost_place(desk, request.principal, *page->after));
  json::array data;
  for (const auto& dossier : all) data.emplace_back(generation_object(desk, *dossier));
  return json_response(list_object(std::move(data), *has_more));
}

// ---------------------------------------------------------------------------------------------- pause, resume, cancel

// The fields of a resume.
struct ResumeCall {
  std::string pause_id;
  std::optional<std::int64_t> if_version;
  bool stream = false;
  bool wait = false;
};

// Made here, since a braced temporary in a co_await expression is destroyed twice by g++ 12.
Error no_pause_id() { return {Code::kInvalidArgument, "pause_id must say which pause", {}, false, "pause_id"}; }

Result<ResumeCall> parse_resume(std::string_view body) {
  const Result<json::object> object = parse_control(body);
  if (!object) return object.error();
  ResumeCall call;
  Complaints complaints;
  FieldReader fields(*object, "", complaints);
  if (auto pause_id = fields.string("pause_id", limits::kNameBytesMax)) {
    if (pause_id->empty()) complaints.add(no_pause_id());  // of a client whose variable is unset: it means some pause
    call.pause_id = *std::move(pause_id);
  }
  call.stream = fields.boolean("stream").value_or(false);
  call.wait = fields.boolean("wait").value_or(false);
  call.if_version = fields.integer("if_version", 0, INT32_MAX);
  for (const std::string_view later : {"edits", "inject", "sampling", "decisions"})
    if (fields.any(later)) fields.complain(later, "is not supported yet");
  fields.refuse_unread();
  if (complaints.any()) return complaints.first();
  return call;
}

asio::awaitable<void> resume(Desk& desk, std::shared_ptr<Dossier> dossier, ResumeCall call, std::string body_digest,
                             Exchange& exchange) {
  const std::uint64_t version = dossier->recording.version();
  if (call.if_version && static_cast<std::uint64_t>(*call.if_version) != version)
    co_return co_await refuse(exchange, another_version(version));
  const Result<std::size_t> from = co_await desk.resume(dossier, call.pause_id, std::move(body_digest));
  if (!from) co_return co_await refuse(exchange, from.error());
  if (call.stream) co_return co_await send_stream(desk, dossier, *from, exchange);
  if (call.wait) co_return co_await send_whole(desk, dossier, *from, exchange);
  co_await exchange.respond(json_response(generation_object(desk, *dossier), 202));
}

asio::awaitable<void> resume_by_generation(Desk& desk, HttpRequest request, Exchange& exchange) {
  const auto found = desk.find(name_in_path(request), request.principal);
  if (!found) co_return co_await refuse(exchange, found.error());
  Result<ResumeCall> call = parse_resume(request.body);
  if (!call) co_return co_await refuse(exchange, call.error());
  co_await resume(desk, *found, *std::move(call), digest(request.body), exchange);
}

asio::awaitable<void> resume_by_pause(Desk& desk, HttpRequest request, Exchange& exchange) {
  Result<ResumeCall> call = parse_resume(request.body);
  if (!call) co_return co_await refuse(exchange, call.error());
  if (call->pause_id.empty()) co_return co_await refuse(exchange, no_pause_id());
  const auto found = desk.find_pause(call->pause_id, request.principal);
  if (!found) co_return co_await refuse(exchange, found.error());
  co_await resume(desk, *found, *std::move(call), digest(request.body), exchange);
}

HttpResponse reached_response(const Desk& desk, const Dossier& dossier) {
  const PauseTicket* ticket = dossier.recording.pause();
  // It may have been resumed by another call by now; then its last pause is what was reached.
  if (!ticket && !dossier.recording.tickets().empty()) ticket = &dossier.recording.tickets().back();
  if (ticket) return json_response(pause_object(desk, dossier, *ticket));
  return error_response(Error{Code::kWrongState, "it went on before the pause could be told", {}, true});
}

asio::awaitable<void> pause(Desk& desk, HttpRequest request, Exchange& exchange) {
  const auto found = desk.find(name_in_path(request), request.principal);
  if (!found) co_return co_await refuse(exchange, found.error());
  const Result<void> well = check_no_fields(request.body);
  if (!well) co_return co_await refuse(exchange, well.error());
  const Result<void> paused = co_await desk.pause(*found, WaitReason::kUser);
  if (!paused) co_return co_await refuse(exchange, paused.error());
  if ((*found)->is_held()) co_return co_await exchange.respond(json_response(generation_object(desk, **found), 202));
  co_await exchange.respond(reached_response(desk, **found));
}

HttpResponse will_be_cancelled(std::string_view client_id) {
  json::object answer{{"object", "generation"}, {"client_id", client_id}, {"state", "unknown"}};
  answer["will_be_cancelled"] = true;
  return json_response(answer, 202);
}

asio::awaitable<void> cancel(Desk& desk, HttpRequest request, Exchange& exchange) {
  const Result<void> well = check_no_fields(request.body);
  if (!well) co_return co_await refuse(exchange, well.error());
  const auto found = desk.find(name_in_path(request), request.principal);
  if (desk.may_come(name_in_path(request), request.principal)) {
    const std::string_view client_id = name_in_path(request).substr(kClientPrefix.size());
    const Result<void> noted = desk.cancel_unborn(client_id, request.principal);
    if (!noted) co_return co_await refuse(exchange, noted.error());
    co_return co_await exchange.respond(will_be_cancelled(client_id));
  }
  if (!found) co_return co_await refuse(exchange, found.error());
  const Result<void> cancelled = co_await desk.cancel(*found, EndReason::kCancelled);
  if (!cancelled) co_return co_await refuse(exchange, cancelled.error());
  co_await exchange.respond(json_response(generation_object(desk, **found)));
}

// ---------------------------------------------------------------------------------------------------- tokens, inspect

json::object row_object(Position position, const JournalRow& row, const Vocabulary& vocabulary) {
  json::object object{{"index", position}};
  add_token(object, row.token, vocabulary);
  object["origin"] = to_string(row.origin);
  if (row.origin == Origin::kPrompt) return object;
  object["logprob"] = logprob_number(row.logprob);
  object["entropy"] = row.entropy;
  object["margin"] = row.margin;
  return object;
}

// The journal, as far as it may be seen: held-back tokens are not in it.
HttpResponse tokens(Desk& desk, const HttpRequest& request) {
  const auto found = desk.find(name_in_path(request), request.principal);
  if (!found) return error_response(found.error());
  const Result<std::int64_t> from = number_parameter(request, "from", 0, 0, limits::kTokensMax);
  const Result<std::int64_t> limit =
      number_parameter(request, "limit", limits::kTokensPageDefault, 1, limits::kTokensPageMax);
  if (!from || !limit) return error_response(from ? limit.error() : from.error());
  const Dossier& dossier = **found;
  const auto n_prompt = static_cast<std::int64_t>(dossier.prompt.size());
  const std::span<const JournalRow> rows = dossier.recording.rows();
  const std::int64_t n_rows = n_prompt + static_cast<std::int64_t>(rows.size());
  const std::int64_t end = std::min(n_rows, *from + *limit);
  json::array data;
  for (std::int64_t i = *from; i < end; ++i) {
    JournalRow of_prompt;
    if (i < n_prompt) of_prompt.token = dossier.prompt[static_cast<std::size_t>(i)];
    const JournalRow& row = i < n_prompt ? of_prompt : rows[static_cast<std::size_t>(i - n_prompt)];
    data.emplace_back(row_object(static_cast<Position>(i), row, desk.core().vocabulary()));
  }
  json::object answer{{"object", "list"}, {"n_prompt", n_prompt}, {"n_tokens", n_rows}, {"has_more", end < n_rows}};
  answer["data"] = std::move(data);
  return json_response(answer);
}

asio::awaitable<void> inspect(Desk& desk, HttpRequest request, Exchange& exchange) {
  const auto found = desk.find(name_in_path(request), request.principal);
  if (!found) co_return co_await refuse(exchange, found.error());
  const Result<std::int64_t> n_next =
      number_parameter(request, "top", limits::kInspectTopDefault, 0, limits::kTopLogprobsMax);
  if (!n_next) co_return co_await refuse(exchange, n_next.error());
  const Result<Inspection> seen = co_await desk.inspect(*found, static_cast<std::int32_t>(*n_next));
  if (!seen) co_return co_await refuse(exchange, seen.error());
  co_await exchange.respond(json_response(inspection_object(desk, **found, *seen, request.principal)));
}

}  // namespace

void add_generation_routes(Router& router, Desk& desk) {
  const auto seen = [&](std::string_view pattern, Look what) {
    router.add("GET", pattern, Scope::kUse, when_ready(desk, look(desk, std::move(what))));
  };
  const auto done = [&](std::string method, std::string_view pattern, Act act) {
    router.add(std::move(method), pattern, Scope::kUse, when_ready(desk, acting(desk, std::move(act))));
  };
  seen("/v1/generations", list);
  seen("/v1/generations/*", get);
  seen("/v1/generations/*/tokens", tokens);
  done("GET", "/v1/generations/*/inspect", inspect);
  done("POST", "/v1/generations/*/pause", pause);
  done("POST", "/v1/generations/*/resume", resume_by_generation);
  done("POST", "/v1/generations/*/cancel", cancel);
  done("POST", "/v1/resume", resume_by_pause);
}

}  // namespace fermata::api
