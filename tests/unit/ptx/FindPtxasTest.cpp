// find_ptxas: the order in which places are asked, and what a wrong one says.
#include "kiln/run/assemble.h"
#include "unit/ptx/FakeTools.h"

#include <gmock/gmock.h>

namespace kiln {

using ::testing::HasSubstr;

using FindPtxas = WithoutToolkit;

TEST_F(FindPtxas, findsNothingWhereThereIsNothing) {
  EXPECT_EQ(find_ptxas(), std::nullopt);
}

TEST_F(FindPtxas, asksEachPlaceInOrder) {
  std::string byPath = writeScript(inFolder("path/ptxas"), "");
  std::string byHome = writeScript(inFolder("cuda/bin/ptxas"), "");
  std::string byKnob = writeScript(inFolder("knob"), "");
  std::string byOption = writeScript(inFolder("option"), "");

  WithVariable path("PATH", ":/nowhere:" + inFolder("path"));
  EXPECT_EQ(find_ptxas(), byPath);
  WithVariable home("CUDA_HOME", inFolder("cuda"));
  EXPECT_EQ(find_ptxas(), byHome);
  WithVariable knob("KILN_PTXAS", byKnob);
  EXPECT_EQ(find_ptxas(), byKnob);
  EXPECT_EQ(find_ptxas({.ptxas = byOption}), byOption);
}

TEST_F(FindPtxas, passesOverAToolkitWithoutPtxas) {
  std::string byPath = writeScript(inFolder("path/ptxas"), "");
  WithVariable path("PATH", inFolder("path"));
  WithVariable home("CUDA_HOME", inFolder("cuda"));
  EXPECT_EQ(find_ptxas(), byPath);
}

TEST_F(FindPtxas, passesOverFoldersAndPlainFiles) {
  std::filesystem::create_directories(inFolder("one/ptxas"));
  std::filesystem::create_directories(inFolder("two"));
  folder.write("two/ptxas", "no program");
  WithVariable path("PATH", inFolder("one") + ":" + inFolder("two"));
  EXPECT_EQ(find_ptxas(), std::nullopt);
}

TEST_F(FindPtxas, doesNotLookFurtherThanAWrittenPath) {
  writeScript(inFolder("path/ptxas"), "");
  WithVariable path("PATH", inFolder("path"));
  EXPECT_EQ(messageOf<UserError>([] { find_ptxas({.ptxas = "/no/ptxas"}); }),
            "AssembleOptions::ptxas names '/no/ptxas' as ptxas, which does not "
            "exist; give the path of a ptxas, or nothing to have it looked for "
            "in CUDA_HOME/bin and on PATH");

  WithVariable knob("KILN_PTXAS", folder.write("plain", "text").string());
  EXPECT_THAT(messageOf<UserError>([] { find_ptxas(); }),
              HasSubstr("KILN_PTXAS names '" + inFolder("plain") +
                        "' as ptxas, which is not an executable file"));
}

TEST_F(FindPtxas, refusesAFolder) {
  EXPECT_THAT(messageOf<UserError>(
                  [&] { find_ptxas({.ptxas = folder.path().string()}); }),
              HasSubstr("is not an executable file"));
}

} // namespace kiln
