// Templates of users, which need no model.
#include "engine/llama/chat/chat_template.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/limits.h"

namespace fermata {
namespace {

Result<std::unique_ptr<ChatTemplate>> made(const std::string& source) {
  return make_llama_chat_template(nullptr, source);
}

std::string why_not(const std::string& source) {
  const auto chat = made(source);
  return chat ? "it is fine" : chat.error().detail;
}

constexpr const char* kPlain =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif "
    "%}";

TEST(ChatTemplate, OfAUserIsApplied) {
  const auto chat = made(kPlain);
  ASSERT_TRUE(chat) << chat.error().detail;
  EXPECT_EQ((*chat)->origin(), "file");
  EXPECT_EQ(*(*chat)->apply({{"system", "Be brief."}, {"user", "Hi"}}), "<system>Be brief.<user>Hi<assistant>");
}

TEST(ChatTemplate, ThatIsNoneIsRefusedWithAReason) {
  EXPECT_NE(why_not(""), "it is fine");
  EXPECT_NE(why_not(" \n"), "it is fine");
  EXPECT_NE(why_not("chatml"), "it is fine") << "a name is no template";
  EXPECT_NE(why_not(std::string("a\0b", 3)), "it is fine");
  EXPECT_NE(why_not("{% fro m in messages %}{% endfor %}").find("fro"), std::string::npos);
  EXPECT_NE(why_not("{{ raise_exception('never') }}").find("never"), std::string::npos);
  EXPECT_NE(why_not("{{ " + std::string(100, '(') + "1" + std::string(100, ')') + " }}").find("brackets"),
            std::string::npos);
  EXPECT_NE(why_not(std::string(2 << 20, 'x')).find("bytes"), std::string::npos);
}

TEST(ChatTemplate, ThatDoesNotEndIsRefusedWhenItIsLoaded) {
  std::string doubling = "{% set s = 'xxxxxxxx' %}";
  for (int i = 0; i < 60; ++i) doubling += "{% set s = s + s %}";
  for (const std::string& source :
       {std::string("{% for i in range(1000000000000) %}{{ i }}{% endfor %}"),
        std::string("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"),
        std::string("{% macro f(x) %}{% for i in range(999) %}{{ x }}{% endfor %}{% endmacro %}"
                    "{{ f(f(f(f(messages[0].content)))) }}"),
        std::string("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
        std::string("{% macro f(n) %}{{ g(n) }}{% endmacro %}{% macro g(n) %}{% if n %}{{ f(n) }}{% endif %}{% "
                    "endmacro %}{{ f(1) }}"),
        doubling}) {
    EXPECT_NE(why_not(source).find("does it end?"), std::string::npos) << source << why_not(source);
    EXPECT_NE(why_not("{% if messages[0].content == 'Hello' %}" + source + "{% endif %}").find("does it end?"),
              std::string::npos)
        << source;
  }
}

TEST(ChatTemplate, AMessageThatMakesItEndlessIsRefused) {
  const auto chat =
      made("{% if 'boom' in messages[0].content %}{% for i in range(1000000000000) %}{% endfor %}{% endif %}" +
           std::string(kPlain));
  ASSERT_TRUE(chat) << chat.error().detail;
  const auto refused = (*chat)->apply({{"user", "boom"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  EXPECT_NE(refused.error().detail.find("does it end?"), std::string::npos);
  EXPECT_EQ(*(*chat)->apply({{"user", "Hi"}}), "<user>Hi<assistant>") << "and it goes on";
}

TEST(ChatTemplate, AMessageThatMakesItRecurseIsRefusedOnAnyThread) {
  const auto chat =
      made("{% macro f() %}{{ f() }}{% endmacro %}{% if 'boom' in messages[0].content %}{{ f() }}{% endif %}" +
           std::string(kPlain));
  ASSERT_TRUE(chat) << chat.error().detail;
  for (int i = 0; i < 2; ++i)
    std::thread([&] {
      const auto refused = (*chat)->apply({{"user", "boom"}});
      ASSERT_FALSE(refused);
      EXPECT_NE(refused.error().detail.find("does it end?"), std::string::npos);
      EXPECT_EQ(*(*chat)->apply({{"user", "Hi"}}), "<user>Hi<assistant>");
    }).join();
}

TEST(ChatTemplate, AMessageThatBlowsUpTheTextIsRefused) {
  const auto chat = made("{% for m in messages %}{% for n in messages %}{{ m.content }}{% endfor %}{% endfor %}");
  ASSERT_TRUE(chat);
  const std::vector<ChatMessage> many(1000, {"user", std::string(20'000, 'x')});
  const auto refused = (*chat)->apply(many);  // 20 GB
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().detail.find("does it end?"), std::string::npos);
}

// The longest dialogues that are taken, and every template that llama.cpp is tested with.
TEST(ChatTemplate, WhatModelsShipStaysFarFromTheBounds) {
  std::size_t n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FERMATA_TEMPLATES)) {
    if (entry.path().extension() != ".jinja") continue;
    std::ifstream file(entry.path());
    const std::string source((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const auto chat = made(source);
    ASSERT_TRUE(chat) << entry.path() << chat.error().detail;
    std::vector<ChatMessage> messages;
    for (std::size_t i = 0; i < 201; ++i)
      messages.push_back({i % 2 == 0 ? "user" : "assistant", std::string(2000, static_cast<char>('a' + i % 26))});
    const auto text = (*chat)->apply(messages);
    ASSERT_TRUE(text) << entry.path() << text.error().detail;
    EXPECT_NE(text->find(messages.back().content), std::string::npos) << entry.path();
    ++n;
  }
  EXPECT_GT(n, 50u);
}

}  // namespace
}  // namespace fermata
