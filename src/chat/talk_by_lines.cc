#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "chat/answering.h"
#include "chat/commands.h"
#include "chat/layout.h"
#include "chat/readiness.h"
#include "chat/talk.h"

namespace fermata::chat {
namespace {

constexpr Duration kPatience = seconds(1);

class TalkByLines {
 public:
  TalkByLines(client::RemoteServer& server, const TalkOptions& options, int stop)
      : server_(server), options_(options), stop_(stop), dialogue_(options.system) {}

  Result<TalkEnd> run();

 private:
  // Nothing: the input is over, or we are to stop.
  Result<std::optional<std::string>> next_line();
  Result<void> take(const Line& line);
  Result<void> ask(std::string question);
  Result<void> take(const News& news, Dialogue::Turn& turn, bool& has_ended);
  Result<void> print(std::string_view text);

  client::RemoteServer& server_;
  const TalkOptions& options_;
  int stop_;
  Dialogue dialogue_;
  std::string unread_;
  std::string last_question_;
  bool is_input_over_ = false;
  bool has_left_ = false;
};

Result<TalkEnd> TalkByLines::run() {
  while (!has_left_) {
    Result<std::optional<std::string>> line = next_line();
    if (!line) return line.error();
    if (can_be_read(stop_)) return TalkEnd::kStopped;
    if (!*line) break;
    if ((*line)->find_first_not_of(" \t") == std::string::npos) continue;
    if (const Result<void> done = take(line_of(**line)); !done) return done.error();
    if (can_be_read(stop_)) return TalkEnd::kStopped;
  }
  return TalkEnd::kLeft;
}

Result<std::optional<std::string>> TalkByLines::next_line() {
  for (auto end = unread_.find('\n'); end == std::string::npos && !is_input_over_; end = unread_.find('\n')) {
    if (unread_.size() > limits::kInputBytesMax)
      return Error{Code::kTooLarge, "a line of standard input is too long",
                   "limit " + std::to_string(limits::kInputBytesMax) + " bytes", false};
    const std::array descriptors = {STDIN_FILENO, stop_};
    server_.http().wait(descriptors, kPatience);
    if (can_be_read(stop_)) return std::optional<std::string>();
    if (!can_be_read(STDIN_FILENO)) continue;
    char bytes[65536];
    const ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
    if (n < 0 && errno != EINTR && errno != EAGAIN)
      return Error{Code::kIo, "standard input cannot be read", std::strerror(errno), false};
    if (n > 0) unread_.append(bytes, static_cast<std::size_t>(n));
    is_input_over_ = n == 0;
  }
  if (unread_.empty()) return std::optional<std::string>();
  const auto end = unread_.find('\n');
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end == std::string::npos ? end : end + 1);
  if (line.ends_with('\r')) line.pop_back();
  return std::optional(std::move(line));
}

Result<void> TalkByLines::take(const Line& line) {
  switch (line.kind) {
    case Line::Kind::kQuestion: return ask(line.text);
    case Line::Kind::kQuit: has_left_ = true; return {};
    case Line::Kind::kRetry: {
      if (last_question_.empty()) return Error{Code::kInvalidArgument, "/retry: nothing was asked yet", {}, false};
      if (!dialogue_.turns().empty() && dialogue_.turns().back().question == last_question_) dialogue_.drop_last();
      return ask(last_question_);
    }
    default: break;
  }
  const Result<std::string> said = carry_out(line, dialogue_);
  if (!said) return said.error();
  std::fputs(harmless(*said).c_str(), stderr);
  return {};
}

Result<void> TalkByLines::ask(std::string question) {
  last_question_ = question;
  Answering answering(server_, request_for(options_, dialogue_, question), options_.session);
  Dialogue::Turn turn{std::move(question)};
  for (bool has_ended = false; !has_ended;) {
    const std::array descriptors = {stop_};
    server_.http().wait(descriptors, kPatience);
    for (const News& news : answering.take_news())
      if (const Result<void> taken = take(news, turn, has_ended); !taken) {
        answering.cancel();
        return taken.error();
      }
    if (!has_ended && can_be_read(stop_)) {
      answering.cancel();
      return print("\n");
    }
  }
  if (!turn.answer.empty()) dialogue_.add(turn);
  return turn.answer.ends_with('\n') ? Result<void>() : print("\n");
}

Result<void> TalkByLines::take(const News& news, Dialogue::Turn& turn, bool& has_ended) {
  switch (news.kind) {
    case News::Kind::kText: turn.answer += news.text; return print(news.text);
    case News::Kind::kEnded: has_ended = true; return {};
    case News::Kind::kFailed:
      if (!turn.answer.empty()) (void)print("\n");
      return news.error;
    default: return {};  // a pause is waited through
  }
}

Result<void> TalkByLines::print(std::string_view text) {
  const std::string shown = isatty(STDOUT_FILENO) == 1 ? harmless(text) : std::string(text);
  if (std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size() && std::fflush(stdout) == 0) return {};
  return Error{Code::kIo, "the answer could not be written to standard output", {}, false};
}

}  // namespace

Result<TalkEnd> talk_by_lines(client::RemoteServer& server, const TalkOptions& options, int stop) {
  return TalkByLines(server, options, stop).run();
}

json::object request_for(const TalkOptions& options, const Dialogue& dialogue, const std::string& question,
                         const std::string& answer_begun) {
  json::object request = options.fields;
  request["messages"] = dialogue.messages(question, answer_begun);
  if (!answer_begun.empty()) request["continue_final_message"] = true;
  return request;
}

}  // namespace fermata::chat
