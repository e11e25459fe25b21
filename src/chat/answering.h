#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/remote_server.h"
#include "client/sse_parser.h"

namespace fermata::chat {

namespace json = boost::json;

// Something that happened to an answer, in the order in which it did.
struct News {
  enum class Kind {
    kText,     // more of the answer
    kThought,  // more of what the model thinks before it answers
    kPaused,   // by us or by somebody else
    kResumed,
    kEnded,    // by itself; `text`: why, as finish_reason has it
    kFailed,   // it comes to no end; `error` says why
    kRefused,  // a pause or resume of ours; `error` says why
  };
  Kind kind = Kind::kText;
  std::string text = {};
  Error error = {};
  // of kPaused, as far as it is known:
  std::int64_t at_token = -1;
  double reach_ms = -1;
};

// A client_id or session that nobody else has.
std::string random_name();

// What an event of a completion stream says. kIo: it is no such event. Pure.
struct StreamNews {
  std::vector<News> news;
  bool has_begun = false;  // the generation is there and can be paused
  bool is_paused = false;  // the server says so in the stream
  bool is_resumed = false;
};
Result<StreamNews> news_of(std::string_view data);

// One answer that a server writes: its stream, and what is done to it. Nothing is called back: what came is taken.
// One thread, that of `server`; what it began does not outlive it, but for a cancel that is on its way.
class Answering {
 public:
  // `request`: all of a streaming chat completion but `stream` and the fields of `fermata` that are ours.
  Answering(client::RemoteServer& server, json::object request, const std::string& session);
  ~Answering();
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;

  // Outside of callbacks: what the news ask for is begun here, as libcurl takes no call while it gives us bytes.
  std::vector<News> take_news();
  bool is_over() const { return is_over_; }  // no more news will come

  // As soon as it can be; one that is not there yet is paused when it is.
  void pause();
  void resume();
  // The generation ends and this is over, at once.
  void cancel();

 private:
  void take(std::string_view piece);
  void take(StreamNews told);
  void end(const Result<client::HttpAnswer>& answer);
  void fail(Error error);
  void ask_pause();
  void look_why_paused();
  void take_record(const Result<json::object>& generation);
  void pause_is_answered(const Result<json::object>& record);
  std::string path(std::string_view verb) const;

  client::RemoteServer& server_;
  std::string name_;                                       // client:…
  std::shared_ptr<char> here_ = std::make_shared<char>();  // callbacks of ours do nothing without it
  client::HttpClient::Id stream_ = 0;
  client::SseParser parser_;
  std::vector<News> news_;
  bool has_begun_ = false;
  bool is_over_ = false;
  bool has_ended_ = false;        // its finish_reason, or an error, was told
  bool is_pause_wanted_ = false;  // and not asked for: before it has begun
  bool is_pause_asked_ = false;   // and not answered
  bool is_look_wanted_ = false;   // paused, and nobody knows why
  bool is_paused_ = false;
};

}  // namespace fermata::chat
