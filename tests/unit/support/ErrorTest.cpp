// Error: what a caller that prints what() shows.
#include "support/Error.h"

#include <gmock/gmock.h>

using namespace kiln;
using testing::EndsWith;
using testing::StartsWith;

TEST(Error, UserErrorSaysTheMessage) {
  UserError error("a box is too wide");
  EXPECT_STREQ(error.what(), "a box is too wide");
  EXPECT_EQ(error.exit_status(), ExitStatus::refused);
  EXPECT_FALSE(error.where().is_known());
}

TEST(Error, UserErrorWithAPlaceBeginsWithIt) {
  UserError error(SourceLine("gemm.cpp", 12), "a box is too wide");
  EXPECT_STREQ(error.what(), "gemm.cpp:12: a box is too wide");
  EXPECT_EQ(error.message(), "a box is too wide");
  EXPECT_EQ(error.where().line, 12u);
}

TEST(Error, RuntimeErrorIsTheMachines) {
  RuntimeError error("cuInit failed");
  EXPECT_STREQ(error.what(), "cuInit failed");
  EXPECT_EQ(error.exit_status(), ExitStatus::machine);
}

TEST(Error, InternalErrorEndsWithWhatToSend) {
  InternalError error("a phi has no edge");
  EXPECT_EQ(error.exit_status(), ExitStatus::internal);
  EXPECT_EQ(error.message(), "a phi has no edge");
  EXPECT_THAT(error.what(), StartsWith("a phi has no edge\n"));
  EXPECT_THAT(error.what(),
              EndsWith("Please report it with the command that led here, the "
                       "output of `kiln --version`, and the kernel source or "
                       "PTX."));
}

TEST(Error, HelpersFormat) {
  try {
    userErrorAt(SourceLine("a.cpp", 3), "{} of {}", 1, 2);
    FAIL();
  } catch (const UserError &error) {
    EXPECT_STREQ(error.what(), "a.cpp:3: 1 of 2");
  }
  EXPECT_THROW(runtimeError("{}", 1), RuntimeError);
  EXPECT_THROW(internalError("{}", 1), InternalError);
}
