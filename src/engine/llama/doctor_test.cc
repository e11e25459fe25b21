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
  report.model.weights_bytes = 2 << 20;
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
  const auto says = [&](const std::string& label, const std::string& value) {
    const auto at = text.find("  " + label + " ");
    return at != std::string::npos &&
           text.substr(text.find_first_not_of(' ', at + 3 + label.size())).starts_with(value);
  };
  EXPECT_TRUE(says("alone", "yes\n")) << text;
  EXPECT_TRUE(says("with neighbours", "no\n")) << text;
  EXPECT_TRUE(says("why", "because\n") || text.find("because\n") != std::string::npos) << text;
  EXPECT_TRUE(says("amx used", "no\n")) << text;
  EXPECT_TRUE(says("weights", "2 MiB\n")) << text;
}

TEST(Doctor, TellsTheSameToPeopleAndPrograms) {
  const std::string text = filled().to_text();
  const std::string json = filled().to_json();
  const auto n_fields = std::count(json.begin(), json.end(), ':') - 1 - 5;  // without kv.keys and the names of sections
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), n_fields + 5);
}

TEST(Doctor, StaysWellFormedWhateverTheModelCallsItself) {
  DoctorReport report = filled();
  report.model.name = "na\xFFme\x1b[31m";
  report.model.path = "/\xC3/model.gguf";
  report.model.fields = {{"kv.keys", "\xE2\x82"}};
  const std::string json = report.to_json();
  EXPECT_NE(json.find("\"name\": \"na\xEF\xBF\xBDme\\u001b[31m\""), std::string::npos) << json;
  EXPECT_EQ(json.find_first_of("\xFF\xC3\xE2"), std::string::npos);
  EXPECT_EQ(report.to_text().find('\x1b'), std::string::npos);
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
