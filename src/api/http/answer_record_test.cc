// What a log is told of an answer that was cut, by whom, and of one that was told nothing.
#include "api/http/answer_record.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

namespace fermata::api {
namespace {

class AnswerRecordTest : public testing::Test {
 protected:
  AnswerRecordTest() {
    request_.method = "GET";
    record_.begin(request_, "/v1/x");
  }
  void has_head(int status = 200) {
    HttpResponse response;
    response.status = status;
    record_.head(response, "");
  }
  AnsweredRequest told(Instant now = {}) {
    std::optional<AnsweredRequest> kept;
    record_.tell([&kept](const AnsweredRequest& request) { kept = request; }, now);
    EXPECT_TRUE(kept);
    return kept.value_or(AnsweredRequest());
  }

  HttpRequest request_;
  AnswerRecord record_{Instant{}};
};

TEST_F(AnswerRecordTest, WhoWasToldNothingHasTheStatusOfWhoCutIt) {
  for (const auto& [by, status] : {std::pair(CutBy::kClient, 499), {CutBy::kKey, 401}, {CutBy::kStop, 503}}) {
    AnswerRecord record{Instant{}};
    record.begin(request_, "/v1/x");
    record.cut(by);
    int told = 0;
    record.tell([&](const AnsweredRequest& request) { told = request.status; }, {});
    EXPECT_EQ(told, status);
  }
  EXPECT_EQ(told().status, 499) << "cut by nobody that is known: its client went";
  EXPECT_EQ(told().cut_by, CutBy::kClient);
}

TEST_F(AnswerRecordTest, WhatWasToldSomethingKeepsItsStatus) {
  has_head();
  record_.wrote(5);
  record_.cut(CutBy::kStop);
  EXPECT_EQ(told().status, 200);
  EXPECT_FALSE(told().is_whole);
  EXPECT_EQ(told().n_bytes, 5u);
}

TEST_F(AnswerRecordTest, AFailureOfOursBeginsWithAHead) {
  has_head();
  record_.cut(CutBy::kError);
  EXPECT_EQ(told().status, 200);
  EXPECT_EQ(told().cut_by, CutBy::kError);
}

TEST_F(AnswerRecordTest, TheFirstWhoCutsCounts) {
  has_head();
  record_.wrote(1);
  record_.cut(CutBy::kKey);
  record_.cut(CutBy::kStop);
  EXPECT_EQ(told().cut_by, CutBy::kKey);
}

TEST_F(AnswerRecordTest, NothingCutsWhatIsWhole) {
  has_head();
  record_.whole();
  record_.cut(CutBy::kStop);
  EXPECT_TRUE(told().is_whole);
  EXPECT_EQ(told().cut_by, CutBy::kNobody);
}

TEST_F(AnswerRecordTest, WhoIsHalfGoneAndTookAllHasItWhole) {
  has_head(409);
  record_.cut(CutBy::kClient);
  record_.whole();
  EXPECT_TRUE(told().is_whole);
  EXPECT_EQ(told().cut_by, CutBy::kNobody);
  EXPECT_EQ(told().status, 409);
}

TEST_F(AnswerRecordTest, WhoWentBeforeItsAnswerHasNoneThoughALastWordIsTaken) {
  has_head(409);
  record_.wrote(5);
  record_.whole();
  record_.end("disconnected", Ending::kLeft);
  const AnsweredRequest one = told();
  EXPECT_EQ(one.status, 499);
  EXPECT_FALSE(one.is_whole);
  EXPECT_EQ(one.cut_by, CutBy::kClient);
  EXPECT_EQ(one.end, "disconnected");
  EXPECT_FALSE(one.ending) << "as loud as one that was reset";
}

TEST_F(AnswerRecordTest, AWebSocketIsWholeUnlessItIsCut) {
  record_.become_websocket();
  EXPECT_TRUE(told().is_whole);
  EXPECT_EQ(told().status, 101);
  record_.cut(CutBy::kKey);
  record_.cut(CutBy::kStop);
  EXPECT_FALSE(told().is_whole);
  EXPECT_EQ(told().cut_by, CutBy::kKey);
  EXPECT_EQ(told().status, 101) << "it was told that";
}

TEST_F(AnswerRecordTest, TakesTheIdOfTheClientOrMakesOne) {
  EXPECT_EQ(record_.id().substr(0, 4), "req_");
  EXPECT_EQ(told().id, record_.id());
  request_.headers["x-request-id"] = "mine/1";
  AnswerRecord record{Instant{}};
  record.begin(request_, "/v1/x");
  EXPECT_EQ(record.id(), "mine/1");
}

TEST_F(AnswerRecordTest, IsTimedFromItsBeginning) {
  has_head();
  EXPECT_EQ(told(Instant{} + milliseconds(7)).took, milliseconds(7));
}

TEST(AnswerRecordOfNothing, IsNotTold) {
  AnswerRecord record{Instant{}};
  record.cut(CutBy::kStop);
  record.tell([](const AnsweredRequest&) { ADD_FAILURE(); }, {});
  record.tell({}, {});
}

}  // namespace
}  // namespace fermata::api
