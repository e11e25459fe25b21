#include "api/catalogue.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

#include "base/limits.h"

namespace fermata::api {
namespace {

class CatalogueTest : public ::testing::Test {
 protected:
  std::shared_ptr<Dossier> filed(const std::string& bits, const std::string& client_id = "") {
    auto dossier = std::make_shared<Dossier>(io_.get_executor());
    dossier->head.generation_id = "gen_" + bits;
    dossier->tenant = "t";
    dossier->client_id = client_id;
    catalogue_.file(dossier);
    return dossier;
  }

  boost::asio::io_context io_;
  Catalogue catalogue_;
  const Principal who_{"key", "t", {Scope::kUse}};
  const Principal other_{"key", "u", {Scope::kUse}};
};

TEST_F(CatalogueTest, HasAGenerationByEachOfItsNames) {
  const auto dossier = filed("1", "mine");
  catalogue_.name_pause("pau_1", *dossier);
  for (const char* name : {"gen_1", "chatcmpl-1", "cmpl-1", "client:mine"}) {
    EXPECT_EQ(*catalogue_.find(name, who_), dossier) << name;
    EXPECT_EQ(catalogue_.find(name, other_).error().code, Code::kNotFound) << name;
  }
  EXPECT_EQ(*catalogue_.find_pause("pau_1", who_), dossier);
  EXPECT_EQ(catalogue_.find_pause("pau_1", other_).error().code, Code::kNotFound);
  EXPECT_TRUE(catalogue_.all(other_).empty());
}

TEST_F(CatalogueTest, AClientIdIsTheNewestOnes) {
  const auto first = filed("1", "mine");
  const auto second = filed("2", "mine");
  EXPECT_EQ(catalogue_.find_client_id("t", "mine"), second);
  catalogue_.forget(first);
  EXPECT_EQ(*catalogue_.find("client:mine", who_), second) << "what went had the name no longer";
  catalogue_.forget(second);
  EXPECT_EQ(catalogue_.find_client_id("t", "mine"), nullptr);
}

TEST_F(CatalogueTest, WhatIsForgottenIsGoneByEachOfItsNames) {
  const auto first = filed("1", "mine");
  const auto second = filed("2");
  catalogue_.forget(first);
  for (const char* name : {"gen_1", "chatcmpl-1", "client:mine"}) {
    EXPECT_EQ(catalogue_.find(name, who_).error().code, Code::kGone) << name;
    EXPECT_EQ(catalogue_.find(name, other_).error().code, Code::kNotFound) << name;
  }
  EXPECT_EQ(catalogue_.all(who_), std::vector{second});
}

TEST_F(CatalogueTest, AClientIdWithoutItsPrefixIsToldOf) {
  filed("1", "mine");
  const Error mine = catalogue_.find("mine", who_).error();
  EXPECT_EQ(mine.code, Code::kNotFound);
  EXPECT_NE(mine.message.find("a client_id is named client:ID, here client:mine"), std::string::npos) << mine.message;
  EXPECT_EQ(catalogue_.find("mine", other_).error().message.find("client:"), std::string::npos) << "another tenant's";
  EXPECT_EQ(catalogue_.find("yours", who_).error().message.find("client:"), std::string::npos);
}

TEST_F(CatalogueTest, WhatIsNotThereSaysHowLongThingsAre) {
  catalogue_.forget(filed("1"));
  for (const char* name : {"gen_1", "gen_2"}) {
    const std::string message = catalogue_.find(name, who_).error().message;
    EXPECT_NE(message.find("60 minutes"), std::string::npos) << message;
    EXPECT_NE(message.find("2000"), std::string::npos) << message;
  }
}

TEST_F(CatalogueTest, APauseIsGoneWithItsGeneration) {
  const auto dossier = filed("1");
  for (const WaitReason reason : {WaitReason::kUser, WaitReason::kSlowReader}) {
    PauseRecord record;
    record.reason = reason;
    dossier->recording.take({0, {}, StateEvent{State::kPaused, reason, record}});
    catalogue_.name_pause(dossier->recording.tickets().back().id, *dossier);
  }
  const std::string users = dossier->recording.tickets()[0].id;
  const std::string servers = dossier->recording.tickets()[1].id;
  catalogue_.forget(dossier);
  EXPECT_EQ(catalogue_.find_pause(users, who_).error().code, Code::kGone);
  EXPECT_EQ(catalogue_.find_pause(users, other_).error().code, Code::kNotFound);
  EXPECT_EQ(catalogue_.find_pause(servers, who_).error().code, Code::kNotFound) << "there may be thousands of these";
  for (std::size_t i = 0; i <= limits::kForgottenIdsMax; ++i) catalogue_.forget(filed("x" + std::to_string(i)));
  EXPECT_EQ(catalogue_.find_pause(users, who_).error().code, Code::kGone) << "generations do not push it out";
}

TEST_F(CatalogueTest, OnlySoManyAreKnownAsGone) {
  for (std::size_t i = 0; i <= limits::kForgottenIdsMax; ++i) catalogue_.forget(filed(std::to_string(i)));
  EXPECT_EQ(catalogue_.find("gen_0", who_).error().code, Code::kNotFound);
  EXPECT_EQ(catalogue_.find("gen_1", who_).error().code, Code::kGone);
}

}  // namespace
}  // namespace fermata::api
