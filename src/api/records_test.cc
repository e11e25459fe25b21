#include "api/records.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

#include "engine/fake/fake_engine.h"

namespace fermata::api {
namespace {

class InspectionObject : public ::testing::Test {
 protected:
  InspectionObject() {
    desk_.serve(core_, nullptr, "fake", "");
    seen_.has_logits = true;
    seen_.next = {{TokenId{65}, -0.5F}};
    seen_.next_entropy = 1.5F;
  }
  json::object of(std::vector<Scope> scopes) {
    return inspection_object(desk_, dossier_, seen_, {"key", "tenant", std::move(scopes)});
  }

  ManualClock clock_;
  boost::asio::io_context io_;
  Core core_{std::make_unique<FakeEngine>(), clock_};
  Desk desk_{io_.get_executor(), clock_, {}};
  Dossier dossier_{io_.get_executor()};  // in no pause: it gave way to others, or was resumed behind the look
  Inspection seen_;
};

TEST_F(InspectionObject, TellsAReviewerAloneWhatComesAfterTextThatIsHeld) {
  seen_.n_bytes_held = 3;
  const json::object of_user = of({Scope::kUse});
  EXPECT_EQ(of_user.at("withheld"), true);
  EXPECT_TRUE(of_user.at("next").get_array().empty());
  EXPECT_TRUE(of_user.at("entropy").is_null());
  EXPECT_EQ(of_user.at("has_logits"), true) << "that tells nothing";
  const json::object of_reviewer = of({Scope::kUse, Scope::kReview});
  EXPECT_EQ(of_reviewer.at("withheld"), false);
  EXPECT_EQ(of_reviewer.at("next").get_array().size(), 1u);
  EXPECT_EQ(of_reviewer.at("entropy"), 1.5);
}

TEST_F(InspectionObject, TellsAllWhatComesWhenNothingIsHeld) {
  const json::object object = of({Scope::kUse});
  EXPECT_EQ(object.at("withheld"), false);
  EXPECT_EQ(object.at("next").get_array().at(0).at("bytes"), (json::array{65}));
  EXPECT_TRUE(object.at("pause").is_null());
}

TEST_F(InspectionObject, SaysWhetherThereAreLogitsHoweverManyTokensWereAskedFor) {
  seen_.next.clear();
  EXPECT_EQ(of({Scope::kUse}).at("has_logits"), true);
  EXPECT_EQ(of({Scope::kUse}).at("entropy"), 1.5);
  seen_.has_logits = false;
  seen_.next_entropy = 0;
  EXPECT_EQ(of({Scope::kUse}).at("has_logits"), false);
  EXPECT_TRUE(of({Scope::kUse}).at("entropy").is_null()) << "0 would be a certainty";
}

}  // namespace
}  // namespace fermata::api
