#include "server/metrics.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "api/desk_fixture.h"

namespace fermata {
namespace {

using api::Dossier;

class MetricsTest : public api::DeskTest {
 protected:
  double value(const std::string& name) const {
    std::istringstream lines(metrics_.text());
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(name + " ")) return std::stod(line.substr(name.size()));
    ADD_FAILURE() << "there is no " << name;
    return 0;
  }

  Metrics metrics_{desk_, [] { return std::uint64_t{0}; }};
};

// The io thread hears of several pauses and resumes at once, when the last of them is past.
TEST_F(MetricsTest, APauseIsCountedFromTheLogHoweverFarTheRecordingIs) {
  const std::shared_ptr<Dossier> dossier = open(call());
  until([&] { return dossier->recording.log().size() > 5; });
  constexpr int kPauses = 20;
  for (int i = 0; i < kPauses; ++i) {
    ASSERT_TRUE(await(core_.pause(dossier->core_id)).has_value());
    if (i + 1 < kPauses) {
      ASSERT_TRUE(await(core_.resume(dossier->core_id)).has_value());
    }
  }
  until([&] { return dossier->recording.tickets().size() == kPauses; });
  EXPECT_EQ(value("fermata_pauses_total{reason=\"user\",class=\"user\"}"), kPauses);
  EXPECT_EQ(value("fermata_paused_seconds_count"), kPauses - 1);
  EXPECT_GT(value("fermata_paused_seconds_sum"), 0) << "a pause before it began would take time away";
  const double n_gaps = value("fermata_inter_token_seconds_count");
  ASSERT_TRUE(run(desk_.cancel(dossier, EndReason::kCancelled)).has_value());
  EXPECT_EQ(value("fermata_paused_seconds_count"), kPauses);
  EXPECT_EQ(value("fermata_inter_token_seconds_count"), n_gaps);
  // Each pause that lies between two tokens takes one gap away.
  const auto n_tokens = static_cast<double>(dossier->recording.text().rows.size());
  EXPECT_LE(n_gaps, n_tokens - 1);
  EXPECT_GE(n_gaps, n_tokens - 1 - kPauses);
}

TEST_F(MetricsTest, APauseThatIsPausedAnewEnds) {
  const std::shared_ptr<Dossier> dossier = open(call());
  until([&] { return dossier->recording.log().size() > 5; });
  ASSERT_TRUE(await(core_.pause(dossier->core_id, WaitReason::kSlowReader)).has_value());
  ASSERT_TRUE(await(core_.pause(dossier->core_id, WaitReason::kUser)).has_value());
  until([&] { return dossier->recording.tickets().size() == 2; });
  EXPECT_EQ(value("fermata_pauses_total{reason=\"slow_reader\",class=\"resource\"}"), 1);
  EXPECT_EQ(value("fermata_pauses_total{reason=\"user\",class=\"user\"}"), 1);
  EXPECT_EQ(value("fermata_paused_seconds_count"), 1);
}

TEST_F(MetricsTest, LinesThatTheLogLostAreThoseOfTheLog) {
  const Metrics metrics(desk_, [] { return std::uint64_t{7}; });
  EXPECT_NE(metrics.text().find("\nfermata_log_lines_lost_total 7"), std::string::npos);
}

}  // namespace
}  // namespace fermata
