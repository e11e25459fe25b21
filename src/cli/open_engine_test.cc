#include "cli/open_engine.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace fermata::cli {
namespace {

// Variables of the process, put back afterwards.
class Environment : public testing::Test {
 protected:
  ~Environment() override {
    for (const auto& [name, value] : before_) value ? setenv(name, value->c_str(), 1) : unsetenv(name);
  }
  void set(const char* name, const char* value) {
    const char* before = std::getenv(name);
    before_.emplace_back(name, before ? std::optional<std::string>(before) : std::nullopt);
    setenv(name, value, 1);
  }

 private:
  std::vector<std::pair<const char*, std::optional<std::string>>> before_;
};

TEST_F(Environment, TheFlagNamesTheModelThenTheVariable) {
  EngineFlags flags;
  set("FERMATA_MODEL", "of-variable.gguf");
  EXPECT_EQ(named_model(flags), "of-variable.gguf");
  flags.model = "of-flag.gguf";
  EXPECT_EQ(named_model(flags), "of-flag.gguf");
  EXPECT_EQ(llama_options(flags)->model_path, "of-flag.gguf");
}

TEST_F(Environment, AnEmptyVariableIsAnUnsetOne) {
  set("FERMATA_MODEL", "");
  EXPECT_EQ(named_model({}), std::nullopt);
  EXPECT_EQ(llama_options({})->model_path, default_model_path());
  // Whether or not there is a model beside the build.
  for (const char* variable : {"XDG_DATA_HOME", "HOME"}) {
    set(variable, "");
    const std::string when_empty = default_model_path();
    ::unsetenv(variable);
    EXPECT_EQ(when_empty, default_model_path()) << variable;
    EXPECT_TRUE(when_empty.starts_with("/")) << when_empty;
  }
}

TEST(KvFlag, TakesOneTypeOrTwo) {
  EngineFlags flags;
  flags.kv = "q8_0/f16";
  EXPECT_EQ(llama_options(flags)->k_type, KvType::kQ8_0);
  EXPECT_EQ(llama_options(flags)->v_type, KvType::kF16);
  for (const char* kv : {"", "f32", "f16/", "/f16", "f16/f16/f16", "F16"}) {
    flags.kv = kv;
    const auto options = llama_options(flags);
    ASSERT_FALSE(options) << kv;
    EXPECT_TRUE(options.error().message.starts_with("--kv takes")) << kv;
  }
}

}  // namespace
}  // namespace fermata::cli
