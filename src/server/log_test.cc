#include "server/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <future>
#include <memory>
#include <string>
#include <utility>

namespace fermata {
namespace {

constexpr std::int64_t kTime = 1'796'015'521'250;

api::AnsweredRequest request() {
  api::AnsweredRequest request;
  request.id = "req_1";
  request.method = "POST";
  request.path = "/v1/chat/completions";
  request.status = 200;
  request.n_bytes = 1234;
  request.took = milliseconds(1500);
  request.key = "desk";
  request.tenant = "acme";
  request.noted = "gen_1";
  request.end = "length";
  request.is_whole = true;
  return request;
}

// What a log writes into a pipe.
class LogTest : public testing::Test {
 protected:
  LogTest() { EXPECT_EQ(pipe(ends_), 0); }
  ~LogTest() override { close(ends_[0]); }
  void start(LogOptions options) { log_ = std::make_unique<Log>(options, ends_[1]); }
  // All of it; the log ends, but not before `last` was read: how long that takes is the machine's affair.
  std::string all(const std::string& last = "") {
    std::promise<void> has_last;
    if (last.empty()) has_last.set_value();
    auto text = std::async(std::launch::async, [&, waits = !last.empty()]() mutable {
      std::string read_so_far;
      char buffer[4096];
      for (ssize_t n; (n = read(ends_[0], buffer, sizeof buffer)) > 0;) {
        read_so_far.append(buffer, static_cast<std::size_t>(n));
        if (waits && read_so_far.find(last) != std::string::npos) {
          has_last.set_value();
          waits = false;
        }
      }
      return read_so_far;
    });
    has_last.get_future().wait();
    n_lost_ = log_->n_lost();
    log_.reset();
    close(ends_[1]);
    return text.get();
  }
  int ends_[2] = {-1, -1};
  std::unique_ptr<Log> log_;
  std::uint64_t n_lost_ = 0;
};

TEST(LogLine, OfARequestForPeople) {
  EXPECT_EQ(log_line(LogFormat::kText, kTime, LogLevel::kInfo, request()),
            "2026-11-30T05:12:01.250Z info  POST /v1/chat/completions 200 1234 B 1500.0 ms key=desk id=req_1 "
            "generation=gen_1 end=length\n");
  api::AnsweredRequest odd;
  odd.id = "x";
  odd.status = 400;
  odd.cut_by = api::CutBy::kClient;
  EXPECT_EQ(log_line(LogFormat::kText, kTime, LogLevel::kWarn, odd),
            "2026-11-30T05:12:01.250Z warn  - - 400 0 B 0.0 ms key=- id=x cut=client\n");
}

TEST(LogLine, OfARequestForPrograms) {
  const auto line = boost::json::parse(log_line(LogFormat::kJson, kTime, LogLevel::kInfo, request())).as_object();
  EXPECT_EQ(boost::json::value(line),
            boost::json::parse(R"({"time": "2026-11-30T05:12:01.250Z", "level": "info", "event": "request",
    "request_id": "req_1", "method": "POST", "path": "/v1/chat/completions", "status": 200, "bytes": 1234, "ms": 1500.0,
    "key": "desk", "tenant": "acme", "generation": "gen_1", "end": "length", "whole": true})"));
  api::AnsweredRequest odd = request();
  odd.is_whole = false;
  odd.cut_by = api::CutBy::kKey;
  const auto cut = boost::json::parse(log_line(LogFormat::kJson, kTime, LogLevel::kInfo, odd));
  EXPECT_FALSE(cut.at("whole").as_bool());
  EXPECT_EQ(cut.at("cut").as_string(), "key");
  odd.took = Duration{134'567};
  const std::string quick = log_line(LogFormat::kJson, kTime, LogLevel::kInfo, odd);
  EXPECT_TRUE(quick.ends_with(",\"ms\":0.135}\n")) << quick;
}

TEST(LogLine, AMessageIsOneLineWhateverItQuotes) {
  EXPECT_EQ(log_line(LogFormat::kText, kTime, LogLevel::kError, "a\nb\x1b[2J"),
            "2026-11-30T05:12:01.250Z error a b [2J\n");
  const std::string json = log_line(LogFormat::kJson, kTime, LogLevel::kError, "a\nb\"");
  EXPECT_EQ(json.find('\n'), json.size() - 1);
  EXPECT_EQ(boost::json::parse(json).at("message").as_string(), "a b\"");
}

TEST(LogLevels, WhatIsRefusedOrFailedIsLouder) {
  api::AnsweredRequest one = request();
  EXPECT_EQ(level_of(one), LogLevel::kInfo);
  one.path = "/health";
  EXPECT_EQ(level_of(one), LogLevel::kDebug);
  one.status = 503;
  EXPECT_EQ(level_of(one), LogLevel::kError) << "the engine does not answer";
  one.ending = api::Ending::kWell;
  EXPECT_EQ(level_of(one), LogLevel::kDebug) << "it loads, or stops";
  one.ending.reset();
  one.status = 499;
  EXPECT_EQ(level_of(one), LogLevel::kWarn);
}

TEST(LogLevels, HowAGenerationEndedIsAsLoudInAStreamAsInAWholeAnswer) {
  for (const int status : {200, 409, 504}) {
    api::AnsweredRequest one = request();
    one.status = status;
    one.ending = api::Ending::kWell;
    EXPECT_EQ(level_of(one), LogLevel::kInfo) << status;
    one.ending = api::Ending::kRefused;
    EXPECT_EQ(level_of(one), LogLevel::kWarn) << status;
    one.ending = api::Ending::kFailed;
    EXPECT_EQ(level_of(one), LogLevel::kError) << status;
  }
}

TEST_F(LogTest, SaysInOrderWhatIsLoudEnough) {
  start({LogFormat::kText, LogLevel::kWarn});
  log_->say(LogLevel::kInfo, "quiet");
  log_->answered(request());
  for (int i = 0; i < 1000; ++i) log_->say(LogLevel::kWarn, "line " + std::to_string(i));
  const std::string text = all();
  EXPECT_EQ(text.find("quiet"), std::string::npos);
  EXPECT_EQ(text.find("POST"), std::string::npos);
  std::size_t at = 0;
  for (int i = 0; i < 1000; ++i) {
    at = text.find(" warn  line " + std::to_string(i) + "\n", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
}

TEST_F(LogTest, AReaderThatDoesNotReadLosesLinesAndIsTold) {
  start({});
  const std::string padding(200, 'x');
  // More than the queue and a pipe hold. Nobody reads yet, so saying them must not wait.
  constexpr std::size_t kLines = 2 * limits::kWriterLinesMax;
  for (std::size_t i = 0; i < kLines; ++i) log_->say(LogLevel::kInfo, padding + std::to_string(i));
  const std::string lost = " lines of this log were lost, not read in time";
  const std::string text = all(lost);
  const std::size_t told = text.find(lost);
  ASSERT_NE(told, std::string::npos);
  const std::size_t n_before = text.rfind(' ', told - 1);
  EXPECT_EQ(std::stoull(text.substr(n_before)), n_lost_);
  EXPECT_NE(text.find(padding + "0\n"), std::string::npos);
  std::size_t n_read = 0;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1, ++n_read)
    ASSERT_EQ(text[at + 10], 'T') << "a line that does not begin with a time: " << text.substr(at, 80);
  EXPECT_EQ(n_read - 1 + n_lost_, kLines) << "which are lost is chance; none is uncounted";
}

TEST_F(LogTest, AReaderThatIsGoneEndsNothing) {
  start({});
  close(std::exchange(ends_[0], -1));
  for (int i = 0; i < 100; ++i) log_->say(LogLevel::kInfo, "x");
  log_.reset();  // no SIGPIPE
  close(ends_[1]);
}

}  // namespace
}  // namespace fermata
