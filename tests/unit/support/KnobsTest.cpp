// Knobs: what is read from the environment, and what is refused.
#include "support/Knobs.h"

#include "ErrorText.h"

#include <cstdlib>

using namespace kiln;

namespace {

/// Sets a variable and puts back what was there.
class SetVariable {
public:
  SetVariable(const char *name, const char *text) : name_(name) {
    if (const char *old = std::getenv(name))
      old_ = old;
    if (text)
      ::setenv(name, text, 1);
    else
      ::unsetenv(name);
  }
  ~SetVariable() {
    if (old_)
      ::setenv(name_, old_->c_str(), 1);
    else
      ::unsetenv(name_);
  }

private:
  const char *name_;
  std::optional<std::string> old_;
};

} // namespace

TEST(Knobs, TableHoldsEachKnobOnce) {
  int count = 0;
  for (const KnobInfo &entry : allKnobs()) {
    EXPECT_EQ(static_cast<int>(entry.knob), count++);
    EXPECT_STREQ(info(entry.knob).variable, entry.variable);
    EXPECT_STRNE(entry.meaning, "");
    EXPECT_STRNE(entry.fallback, "");
  }
  EXPECT_EQ(count, static_cast<int>(Knob::status) + 1);
}

TEST(Knobs, MissingFromTheTableIsADefect) {
  EXPECT_EQ(errorText<InternalError>([] { info(static_cast<Knob>(77)); }),
            "knob 77 is not in the table");
}

TEST(Knobs, UnsetAndEmptyAreNothing) {
  SetVariable unset("KILN_PTXAS", nullptr);
  EXPECT_EQ(value(Knob::ptxas), std::nullopt);
  SetVariable empty("KILN_PTXAS", "");
  EXPECT_EQ(value(Knob::ptxas), std::nullopt);
  SetVariable set("KILN_PTXAS", "bin/ptxas");
  EXPECT_EQ(value(Knob::ptxas), "bin/ptxas");
}

TEST(Knobs, CudaPathStandsInForCudaHome) {
  SetVariable path("CUDA_PATH", "second");
  SetVariable unset("CUDA_HOME", nullptr);
  EXPECT_EQ(value(Knob::cudaHome), "second");
  SetVariable set("CUDA_HOME", "first");
  EXPECT_EQ(value(Knob::cudaHome), "first");
}

TEST(Knobs, Numbers) {
  SetVariable unset("KILN_CACHE_LIMIT_MB", nullptr);
  EXPECT_EQ(numberValue(Knob::cacheLimitMb), std::nullopt);
  SetVariable set("KILN_CACHE_LIMIT_MB", "12");
  EXPECT_EQ(numberValue(Knob::cacheLimitMb), 12u);
  for (const char *text : {"-1", "12x", "1.5", "99999999999999999999"}) {
    SetVariable wrong("KILN_CACHE_LIMIT_MB", text);
    EXPECT_EQ(errorText([] { numberValue(Knob::cacheLimitMb); }),
              "KILN_CACHE_LIMIT_MB is \"" + std::string(text) +
                  "\"; it must be a whole number from 0 on");
  }
}

TEST(Knobs, Switches) {
  SetVariable unset("KILN_CACHE", nullptr);
  EXPECT_EQ(switchValue(Knob::cache), std::nullopt);
  for (const char *text : {"on", "1", "true", "yes"}) {
    SetVariable set("KILN_CACHE", text);
    EXPECT_EQ(switchValue(Knob::cache), true);
  }
  for (const char *text : {"off", "0", "false", "no"}) {
    SetVariable set("KILN_CACHE", text);
    EXPECT_EQ(switchValue(Knob::cache), false);
  }
  SetVariable wrong("KILN_CACHE", "maybe");
  EXPECT_EQ(errorText([] { switchValue(Knob::cache); }),
            "KILN_CACHE is \"maybe\"; it must be on, 1, true or yes, or off, "
            "0, false or no");
}
