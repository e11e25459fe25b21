#include "client/json_member.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace fermata::client {
namespace {

namespace json = boost::json;

TEST(JsonMember, AWholeNumberIsWhatFitsOrNothing) {
  const json::object object = json::parse(R"({"a": 7, "b": -3.9, "c": 1e300, "d": 18446744073709551615, "e": "7",
    "f": 9007199254740993, "g": -1e300, "h": null, "i": 1e15})")
                                  .as_object();
  EXPECT_EQ(integer_at(object, "a"), 7);
  EXPECT_EQ(integer_at(object, "b"), -3);
  EXPECT_EQ(integer_at(object, "f"), 9007199254740993);
  EXPECT_EQ(integer_at(object, "i"), 1'000'000'000'000'000);
  for (const char* key : {"c", "d", "e", "g", "h", "none"}) EXPECT_EQ(integer_at(object, key, -5), -5) << key;
}

TEST(JsonMember, OfAnotherTypeIsAsIfItWereNotThere) {
  const json::object object = json::parse(R"({"text": "x", "number": 1.5, "object": {}})").as_object();
  EXPECT_EQ(text_at(object, "text"), "x");
  EXPECT_EQ(text_at(object, "number"), "");
  EXPECT_EQ(number_at(object, "number"), 1.5);
  EXPECT_EQ(number_at(object, "text", 2), 2);
  EXPECT_NE(object_at(object, "object"), nullptr);
  EXPECT_EQ(object_at(object, "text"), nullptr);
  EXPECT_EQ(data_of(object).error().code, Code::kIo);
}

}  // namespace
}  // namespace fermata::client
