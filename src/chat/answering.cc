#include "chat/answering.h"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <random>
#include <utility>

#include "client/json_member.h"

namespace fermata::chat {

using client::number_at;
using client::object_at;
using client::text_at;

namespace {

const json::object* first_choice(const json::object& chunk) {
  const json::value* choices = chunk.if_contains("choices");
  const json::array* array = choices ? choices->if_array() : nullptr;
  return array && !array->empty() ? array->front().if_object() : nullptr;
}

News paused_news(const json::object& record) {
  News news{News::Kind::kPaused};
  if (const json::object* at = object_at(record, "at")) news.at_token = client::integer_at(*at, "token", -1);
  news.reach_ms = number_at(record, "reach_ms", -1);
  return news;
}

json::object with_ours(json::object request, const std::string& client_id, const std::string& session) {
  request["stream"] = true;
  json::object& ours =
      request["fermata"].is_object() ? request["fermata"].get_object() : request["fermata"].emplace_object();
  ours["client_id"] = client_id;
  ours["session"] = session;
  ours["stream_events"] = true;
  return request;
}

}  // namespace

std::string random_name() {
  std::random_device chance;
  std::string name = "chat-";
  for (int i = 0; i < 16; ++i) name += "0123456789abcdef"[chance() % 16];
  return name;
}

Result<StreamNews> news_of(std::string_view data) {
  StreamNews told;
  if (data == "[DONE]") return told;
  boost::system::error_code failed;
  const json::value parsed = json::parse(json::string_view(data.data(), data.size()), failed);
  if (failed || !parsed.is_object()) return Error{Code::kIo, "the server's stream is no JSON", {}, false};
  const json::object& chunk = parsed.get_object();
  if (chunk.contains("error")) {
    told.news.push_back({News::Kind::kFailed, {}, client::error_of(500, chunk)});
    return told;
  }
  told.has_begun = true;
  if (const json::object* ours = object_at(chunk, "fermata")) {
    told.is_paused = text_at(*ours, "type") == "paused";
    told.is_resumed = text_at(*ours, "type") == "resumed";
  }
  const json::object* choice = first_choice(chunk);
  if (choice == nullptr) return told;
  if (const json::object* delta = object_at(*choice, "delta")) {
    if (std::string thought = text_at(*delta, "reasoning_content"); !thought.empty())
      told.news.push_back({News::Kind::kThought, std::move(thought)});
    if (std::string text = text_at(*delta, "content"); !text.empty())
      told.news.push_back({News::Kind::kText, std::move(text)});
  }
  if (std::string reason = text_at(*choice, "finish_reason"); !reason.empty())
    told.news.push_back({News::Kind::kEnded, std::move(reason)});
  return told;
}

Answering::Answering(client::RemoteServer& server, json::object request, const std::string& session) : server_(server) {
  const std::string client_id = random_name();
  name_ = "client:" + client_id;
  request = with_ours(std::move(request), client_id, session);
  stream_ = server_.http().begin(
      {.method = "POST", .path = "/v1/chat/completions", .body = json::serialize(request), .at_most = Duration()},
      [this](std::string_view piece) { take(piece); },
      [this](const Result<client::HttpAnswer>& answer) { end(answer); });
}

Answering::~Answering() { server_.http().drop(stream_); }

std::string Answering::path(std::string_view verb) const {
  return "/v1/generations/" + client::percent_encoded(name_) + std::string(verb);
}

void Answering::take(std::string_view piece) {
  std::vector<client::SseEvent> events;
  Result<void> added = parser_.add(piece, events);
  for (const client::SseEvent& event : events) {
    Result<StreamNews> told = news_of(event.data);
    if (!told) return fail(told.error());
    take(*std::move(told));
  }
  if (!added) fail(added.error());
}

void Answering::take(StreamNews told) {
  for (News& news : told.news) {
    has_ended_ |= news.kind == News::Kind::kEnded || news.kind == News::Kind::kFailed;
    news_.push_back(std::move(news));
  }
  if (has_ended_) return;
  has_begun_ |= told.has_begun;
  // Of a pause that we asked for the call's own answer tells more.
  is_look_wanted_ |= told.is_paused && !is_pause_asked_ && !is_paused_;
  if (told.is_resumed && std::exchange(is_paused_, false)) news_.push_back({News::Kind::kResumed});
}

void Answering::end(const Result<client::HttpAnswer>& answer) {
  if (!answer) return fail(answer.error());
  if (answer->status >= 300) {
    const Result<json::object> refusal = client::object_of(answer);
    return fail(refusal
                    ? Error{Code::kIo, "the server answers with status " + std::to_string(answer->status), {}, false}
                    : refusal.error());
  }
  if (!has_ended_) return fail({Code::kIo, "the answer broke off", {}, true});
  is_over_ = true;
}

void Answering::fail(Error error) {
  server_.http().drop(stream_);
  is_over_ = true;
  if (!std::exchange(has_ended_, true)) news_.push_back({News::Kind::kFailed, {}, std::move(error)});
}

void Answering::pause() {
  if (is_over_ || is_paused_ || is_pause_asked_) return;
  is_pause_wanted_ = true;
}

std::vector<News> Answering::take_news() {
  if (!has_ended_ && has_begun_ && std::exchange(is_pause_wanted_, false)) ask_pause();
  if (!has_ended_ && std::exchange(is_look_wanted_, false)) look_why_paused();
  return std::exchange(news_, {});
}

void Answering::ask_pause() {
  is_pause_asked_ = true;
  server_.post_later(path("/pause"), {}, [this, here = std::weak_ptr<char>(here_)](const Result<json::object>& record) {
    if (!here.expired()) pause_is_answered(record);
  });
}

void Answering::pause_is_answered(const Result<json::object>& record) {
  is_pause_asked_ = false;
  if (has_ended_) return;  // it was faster
  if (record && !std::exchange(is_paused_, true)) news_.push_back(paused_news(*record));
  if (!record) news_.push_back({News::Kind::kRefused, {}, record.error()});
}

void Answering::look_why_paused() {
  server_.http().begin({.method = "GET", .path = path(""), .body = {}}, {},
                       [this, here = std::weak_ptr<char>(here_)](const Result<client::HttpAnswer>& answer) {
                         if (!here.expired()) take_record(client::object_of(answer));
                       });
}

// Of somebody else's pause, or of one of the server's own that it also resumes, which is nobody's concern.
void Answering::take_record(const Result<json::object>& generation) {
  const json::object* record = generation ? object_at(*generation, "pause") : nullptr;
  if (record == nullptr || has_ended_ || is_paused_ || is_pause_asked_) return;  // resumed already, or told otherwise
  const json::object* reason = object_at(*record, "reason");
  if (reason != nullptr && text_at(*reason, "class") == "resource") return;
  is_paused_ = true;
  news_.push_back(paused_news(*record));
}

void Answering::resume() {
  if (!std::exchange(is_paused_, false)) return;
  server_.post_later(path("/resume"), {},
                     [this, here = std::weak_ptr<char>(here_)](const Result<json::object>& generation) {
                       if (here.expired() || has_ended_) return;
                       if (!generation) news_.push_back({News::Kind::kRefused, {}, generation.error()});
                     });
}

void Answering::cancel() {
  if (std::exchange(is_over_, true)) return;
  has_ended_ = true;
  server_.post_later(path("/cancel"), {}, [](const Result<json::object>&) {});
  server_.http().drop(stream_);
}

}  // namespace fermata::chat
