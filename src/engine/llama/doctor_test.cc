#include "engine/llama/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace fermata {
namespace {

DoctorReport filled() {
  DoctorReport report;
  report.machine.cpu_name = "A \"fast\"\tCPU\\";
  report.machine.features = {"AVX2", "FMA"};
  report.machine.attention = "AVX2";
  report.machine.amx_present = true;
  report.model.loaded = true;
  report.model.name = "small";
  report.model.fingerprint = "abc";
  report.model.fields = {{"kv.keys", "f16"}};
  report.model.exactness = {true, false, "because"};
  return report;
}

TEST(Doctor, WritesJsonThatEscapesAndNests) {
  const std::string json = filled().to_json();
  EXPECT_NE(json.find(R"("cpu": "A \"fast\"\u0009CPU\\")"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("kernels": ["AVX2", "FMA"])"), std::string::npos) << json;
  EXPECT_NE(json.find("\"fingerprint_fields\": {\n      \"kv.keys\": \"f16\"\n    }"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("with_neighbours": false)"), std::string::npos) << json;
  EXPECT_EQ(std::count(json.begin(), json.end(), '{'), std::count(json.begin(), json.end(), '}'));
  EXPECT_EQ(json.find(",\n}"), std::string::npos);
  EXPECT_EQ(json.find("{,"), std::string::npos);
}

TEST(Doctor, TellsPeopleWhatIsExactAndWhy) {
  const std::string text = filled().to_text();
  EXPECT_NE(text.find("alone: yes, with neighbours: no"), std::string::npos) << text;
  EXPECT_NE(text.find("because"), std::string::npos);
  EXPECT_NE(text.find("AMX          present, not used"), std::string::npos);
}

TEST(Doctor, ExaminesThisMachineWithoutAModel) {
  const DoctorReport report = examine_machine();
  EXPECT_FALSE(report.model.loaded);
  EXPECT_GT(report.machine.memory_bytes, 0u);
  EXPECT_GE(report.machine.n_cores, 1);
  EXPECT_FALSE(report.machine.features.empty());
  EXPECT_EQ(report.to_json().find("\"model\""), std::string::npos);
  EXPECT_EQ(report.to_text().find("fingerprint"), std::string::npos);
}

}  // namespace
}  // namespace fermata
