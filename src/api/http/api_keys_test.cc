#include "api/http/api_keys.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "base/limits.h"

namespace fermata::api {
namespace {

TEST(ApiKeys, AMadeKeyIsFoundAndNothingElseIs) {
  const auto made = ApiKeys::make_key("desk", "acme", {Scope::kUse, Scope::kReview});
  ASSERT_TRUE(made);
  const auto keys = ApiKeys::parse("# all\n\n" + made->line + "  # since May\r\n");
  ASSERT_TRUE(keys) << keys.error().message;
  const auto found = keys->find(made->key);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->principal.name, "desk");
  EXPECT_EQ(found->principal.tenant, "acme");
  EXPECT_TRUE(found->principal.may(Scope::kReview));
  EXPECT_FALSE(found->principal.may(Scope::kAdmin));
  std::string other = made->key;
  other.back() = other.back() == 'A' ? 'B' : 'A';
  for (const std::string& wrong :
       {std::string(), other, made->key + "A", made->key.substr(1), std::string(1000, 'x')}) {
    EXPECT_FALSE(keys->find(wrong)) << wrong;
  }
}

TEST(ApiKeys, TheFileDoesNotTellTheKey) {
  const auto made = ApiKeys::make_key("a", "", {Scope::kUse});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->key.substr(0, 8), "fermata_");
  EXPECT_EQ(made->key.size(), 8u + 43u);
  EXPECT_EQ(made->line.find(made->key.substr(8)), std::string::npos);
  // A hash is no key.
  EXPECT_FALSE(ApiKeys::parse(made->line)->find(made->line.substr(made->line.find(':') + 1)));
}

TEST(ApiKeys, EveryKeyIsAnother) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) seen.insert(ApiKeys::make_key("a", "", {Scope::kUse})->key);
  EXPECT_EQ(seen.size(), 100u);
}

TEST(ApiKeys, RefusesBadLinesAndNamesThemWithoutQuoting) {
  const std::string hash(64, 'a');
  EXPECT_TRUE(ApiKeys::parse("a - use blake2b:" + hash));
  for (const std::string& line :
       {std::string("a"), std::string("a - use"), "a - use blake2b:" + hash + " more", "a - use " + hash,
        "a - use blake2b:" + hash.substr(1), "a - use blake2b:" + hash + "aa",
        "a - use blake2b:" + std::string(64, 'g'), "a - root blake2b:" + hash, "a - , blake2b:" + hash,
        "a/b - use blake2b:" + hash, "- - use blake2b:" + hash, std::string(65, 'n') + " - use blake2b:" + hash,
        std::string("a - use fermata_SECRET")}) {
    const auto keys = ApiKeys::parse("\n" + line);
    ASSERT_FALSE(keys) << line;
    EXPECT_NE(keys.error().message.find("line 2"), std::string::npos);
    EXPECT_EQ((keys.error().message + keys.error().detail).find("SECRET"), std::string::npos);
  }
  EXPECT_NE(ApiKeys::parse("secret").error().message.find("fermata new-key NAME --append FILE"), std::string::npos)
      << "a file of bare keys, as others have it";
  EXPECT_FALSE(ApiKeys::make_key("a b", "", {Scope::kUse}));
  EXPECT_FALSE(ApiKeys::make_key("a", "", {}));
  std::string many;
  for (std::size_t i = 0; i <= limits::kApiKeysMax; ++i) many += "a - use blake2b:" + hash + "\n";
  EXPECT_EQ(ApiKeys::parse(many).error().code, Code::kTooLarge);
}

TEST(ApiKeys, SaysWhichKeysAReloadTakesAway) {
  const auto one = ApiKeys::make_key("one", "acme", {Scope::kUse});
  const auto two = ApiKeys::make_key("two", "acme", {Scope::kUse});
  const auto keys = [](const std::string& text) { return ApiKeys::parse(text).value(); };
  const ApiKeys both = keys(one->line + "\n" + two->line);
  const ApiKeys::Hash hash_of_one = both.find(one->key)->hash;
  EXPECT_TRUE(both.gone_from(both).empty());
  EXPECT_TRUE(keys(two->line).gone_from(both).empty());
  EXPECT_EQ(both.gone_from(keys(two->line)), std::vector<ApiKeys::Hash>{hash_of_one});
  // The same key, but for somebody else, or for other things.
  const std::string hex = one->line.substr(one->line.find("blake2b:"));
  for (const char* now : {"uno acme use ", "one other use ", "one acme use,review "})
    EXPECT_EQ(both.gone_from(keys(two->line + "\n" + now + hex)), std::vector<ApiKeys::Hash>{hash_of_one}) << now;
  EXPECT_TRUE(both.gone_from(keys("uno acme use " + hex + "\n" + two->line + "\n" + one->line)).empty());
}

TEST(ApiKeys, AFileIsReadForWhoeverWritesItAnew) {
  const std::string path = testing::TempDir() + "api_keys_test.anew";
  const auto made = ApiKeys::make_key("a", "", {Scope::kUse});
  std::ofstream(path) << made->line << "  # mine";
  ::chmod(path.c_str(), 0640);
  const auto file = read_key_file(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->text, made->line + "  # mine");
  EXPECT_TRUE(file->keys.find(made->key));
  EXPECT_EQ(file->permissions.mode, 0640u);
  EXPECT_EQ(std::pair(file->permissions.owner, file->permissions.group), std::pair(geteuid(), getegid()));
  std::ofstream(path, std::ios::trunc) << "a - use blake2b:12\n";
  EXPECT_TRUE(read_key_file(path).error().message.starts_with(path + ": line 1: "))
      << read_key_file(path).error().message;
  std::remove(path.c_str());
}

TEST(ApiKeys, AFileThatOthersMayWriteIsRefused) {
  const std::string path = testing::TempDir() + "api_keys_test.keys";
  std::ofstream(path) << ApiKeys::make_key("a", "", {Scope::kUse})->line << "\n";
  ::chmod(path.c_str(), 0600);
  ASSERT_TRUE(ApiKeys::load(path));
  EXPECT_EQ(ApiKeys::load(path)->size(), 1u);
  ::chmod(path.c_str(), 0620);
  EXPECT_FALSE(ApiKeys::load(path));
  ::chmod(path.c_str(), 0600);
  std::ofstream(path, std::ios::trunc) << "# none\n";
  EXPECT_FALSE(ApiKeys::load(path));  // would open the server to everybody
  EXPECT_TRUE(read_key_file(path)) << "whoever adds one may read it";
  std::remove(path.c_str());
  EXPECT_EQ(ApiKeys::load(path).error().code, Code::kNotFound);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);  // nobody will ever write to it
  EXPECT_EQ(ApiKeys::load(path).error().code, Code::kIo);
  std::remove(path.c_str());
  EXPECT_EQ(ApiKeys::load("/dev/zero").error().code, Code::kIo);
}

}  // namespace
}  // namespace fermata::api
