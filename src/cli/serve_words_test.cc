#include "cli/serve_words.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fermata::cli {
namespace {

class ServeWords : public testing::Test {
 protected:
  ServeWords() { info_.n_cells = 8192; }
  std::string told(const std::string& url, std::string_view chat = "model", bool wants_key = false,
                   std::vector<std::string> hosts = {}) const {
    return told_when_ready({info_, "tiny", url, chat, wants_key, std::move(hosts)});
  }
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
  EngineInfo info_;
};

TEST_F(ServeWords, NobodyIsCalledAtAnyAddress) {
  EXPECT_TRUE(told("http://0.0.0.0:80").starts_with("fermata serves tiny at http://0.0.0.0:80\n"))
      << "where it listens";
  EXPECT_TRUE(has(told("http://0.0.0.0:80"), "curl -N http://127.0.0.1:80/v1/"));
  EXPECT_TRUE(has(told("http://[::]:80"), "curl -N http://[::1]:80/v1/"));
  EXPECT_TRUE(has(told("http://10.0.0.7:80"), "curl -N http://10.0.0.7:80/v1/"));
}

TEST_F(ServeWords, TheCallToTryIsOneThatIsAnswered) {
  EXPECT_TRUE(has(told("http://127.0.0.1:80", "file"), "/v1/chat/completions"));
  const std::string without = told("http://127.0.0.1:80", "");
  EXPECT_TRUE(has(without, "curl -N http://127.0.0.1:80/v1/completions"));
  EXPECT_FALSE(has(without, "/v1/chat/completions"));
  EXPECT_TRUE(has(without, "chat    no template: /v1/completions alone"));
}

TEST_F(ServeWords, AKeyStandsInEveryCallOfAServerThatWantsOne) {
  EXPECT_FALSE(has(told("http://127.0.0.1:80"), "FERMATA_API_KEY"));
  const std::string with = told("http://127.0.0.1:80", "model", true);
  for (const char* call : {"curl -N", "curl -X POST"})
    for (std::size_t at = with.find(call); at != std::string::npos; at = with.find(call, at + 1))
      EXPECT_TRUE(with.substr(at).starts_with(std::string(call) + " -H \"Authorization: Bearer $FERMATA_API_KEY\""))
          << with;
  EXPECT_TRUE(has(with, "export FERMATA_API_KEY=KEY"));
}

TEST_F(ServeWords, WhoCanBeCalledByOthersSaysByWhichNames) {
  EXPECT_FALSE(has(told("http://127.0.0.1:80"), "names"));
  EXPECT_TRUE(has(told("http://0.0.0.0:80", "model", true, {"localhost", "my.name"}),
                  "names   localhost, my.name; by any other it answers 421: --allow-host NAME allows one"));
}

}  // namespace
}  // namespace fermata::cli
