#include "api/idempotency_keys.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

#include "base/limits.h"

namespace fermata::api {
namespace {

class IdempotencyKeysTest : public ::testing::Test {
 protected:
  static Call call(const std::string& key) {
    Call call;
    call.fermata.idempotency_key = key;
    return call;
  }
  std::shared_ptr<Dossier> remembered(const std::string& key) {
    auto dossier = std::make_shared<Dossier>(io_.get_executor());
    dossier->tenant = "t";
    dossier->owner = "key";
    dossier->options.idempotency_key = key;
    keys_.remember(dossier, "body");
    return dossier;
  }
  static void end(Dossier& dossier, EndReason reason) {
    dossier.recording.take({0, {}, FinishEvent{reason, {}, 0, 0, 0, {}}});
  }
  auto find(const std::string& key, const std::string& body = "body") { return keys_.find(call(key), who_, body); }

  boost::asio::io_context io_;
  IdempotencyKeys keys_;
  const Principal who_{"key", "t", {Scope::kUse}};
};

TEST_F(IdempotencyKeysTest, AKeyIsFreeAgainAfterARefusalThatInvitesAnotherTry) {
  for (const bool retryable : {true, false}) {
    const std::string key = retryable ? "busy" : "broken";
    const auto refused = remembered(key);
    refused->recording.take({0, {}, FinishEvent{EndReason::kError, {Code::kBusy, "full", {}, retryable}, 0, 0, 0, {}}});
    EXPECT_EQ(find(key).has_value(), !retryable);
  }
}

TEST_F(IdempotencyKeysTest, ARequestWithoutAKeyIsAlwaysNew) {
  remembered("");
  EXPECT_FALSE(find(""));
}

TEST_F(IdempotencyKeysTest, AKeyIsOfWhoUsedIt) {
  const auto dossier = remembered("k");
  EXPECT_EQ(**find("k"), dossier);
  EXPECT_EQ(find("k", "another body")->error().code, Code::kIdempotency);
  EXPECT_FALSE(find("other"));
  EXPECT_FALSE(keys_.find(call("k"), {"another key", "t", {Scope::kUse}}, "body"));
  EXPECT_FALSE(keys_.find(call("k"), {"key", "u", {Scope::kUse}}, "body"));
}

TEST_F(IdempotencyKeysTest, WhatNeverStartedAndWhatNobodyHeardFreesItsKey) {
  const auto first = remembered("k");
  const auto second = remembered("k");
  keys_.release(*first);
  EXPECT_EQ(**find("k"), second) << "it is no longer the first one's";
  keys_.release(*second);
  EXPECT_FALSE(find("k"));
  const auto unheard = remembered("k");
  end(*unheard, EndReason::kDisconnected);
  EXPECT_FALSE(find("k"));
  keys_.forget(*unheard, Instant{});
  EXPECT_FALSE(find("k"));
}

TEST_F(IdempotencyKeysTest, AKeyOutlivesItsGenerationByADay) {
  const auto dossier = remembered("k");
  end(*dossier, EndReason::kLength);
  keys_.sweep(Instant{} + milliseconds(10 * limits::kIdempotencyKeptMs));
  EXPECT_EQ(**find("k"), dossier) << "as long as that is kept";
  keys_.forget(*dossier, Instant{});
  keys_.sweep(Instant{} + milliseconds(limits::kIdempotencyKeptMs - 1));
  EXPECT_EQ(find("k")->error().code, Code::kGone);
  EXPECT_EQ(find("k", "another body")->error().code, Code::kIdempotency);
  keys_.sweep(Instant{} + milliseconds(limits::kIdempotencyKeptMs));
  EXPECT_FALSE(find("k"));
}

TEST_F(IdempotencyKeysTest, OfTooManySpentKeysTheOldestAreFree) {
  for (std::size_t i = 0; i <= limits::kIdempotencyKeysKept; ++i) {
    const auto dossier = remembered(std::to_string(i));
    end(*dossier, EndReason::kLength);
    keys_.forget(*dossier, Instant{});
  }
  keys_.sweep(Instant{});
  EXPECT_FALSE(find("0"));
  EXPECT_EQ(find("1")->error().code, Code::kGone);
}

}  // namespace
}  // namespace fermata::api
