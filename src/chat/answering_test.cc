#include "chat/answering.h"

#include <gtest/gtest.h>

namespace fermata::chat {
namespace {

using Kind = News::Kind;

TEST(NewsOf, WhatAStreamSays) {
  const auto text = news_of(R"({"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]})");
  ASSERT_TRUE(text);
  ASSERT_EQ(text->news.size(), 1u);
  EXPECT_EQ(text->news[0].kind, Kind::kText);
  EXPECT_EQ(text->news[0].text, "Hi");
  EXPECT_TRUE(text->has_begun);

  const auto end =
      news_of(R"({"choices":[{"delta":{"reasoning_content":"hm","content":"x"},"finish_reason":"length"}]})");
  ASSERT_EQ(end->news.size(), 3u);
  EXPECT_EQ(end->news[0].kind, Kind::kThought);
  EXPECT_EQ(end->news[2].kind, Kind::kEnded);
  EXPECT_EQ(end->news[2].text, "length");

  const auto paused = news_of(R"({"choices":[{"delta":{}}],"fermata":{"type":"paused","seq":4}})");
  EXPECT_TRUE(paused->is_paused && !paused->is_resumed && paused->news.empty());
  EXPECT_TRUE(news_of(R"({"choices":[],"fermata":{"type":"resumed"}})")->is_resumed);
}

TEST(NewsOf, KeepAlivesUsageAndTheEndSayNothing) {
  for (const char* data :
       {R"({"choices":[{"index":0,"delta":{},"finish_reason":null}]})", R"({"choices":[],"usage":{}})", "[DONE]",
        R"({"choices":[{"delta":{"role":"assistant","content":""}}]})", "{}"}) {
    const auto told = news_of(data);
    ASSERT_TRUE(told) << data;
    EXPECT_TRUE(told->news.empty()) << data;
  }
}

TEST(NewsOf, AnErrorIsTheServersOwn) {
  const auto told = news_of(R"({"error":{"message":"it was cancelled","code":"cancelled"}})");
  ASSERT_EQ(told->news.size(), 1u);
  EXPECT_EQ(told->news[0].kind, Kind::kFailed);
  EXPECT_EQ(told->news[0].error.message, "it was cancelled");
}

TEST(NewsOf, AnythingElseIsRefusedOrReadOver) {
  for (const char* data : {"", "x", "7", "[]", "null", "{"}) EXPECT_FALSE(news_of(data)) << data;
  for (const char* data : {R"({"choices":7})", R"({"choices":[7]})", R"({"choices":[{"delta":"x"}]})",
                           R"({"choices":[{"delta":{"content":7}}],"fermata":"x"})"})
    EXPECT_TRUE(news_of(data) && news_of(data)->news.empty()) << data;
}

}  // namespace
}  // namespace fermata::chat
