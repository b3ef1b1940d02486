// MatrixForms: the rows against what ptxas takes, and what they are asked.
#include "isa/MatrixForms.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

namespace kiln::isa {

TEST(MatrixForms, RowsAreFound) {
  const MatrixForm *form = findMatrixForm("mma", "", "e4m3", "e5m2");
  ASSERT_TRUE(form);
  EXPECT_TRUE(form->hasShape("m16n8k32") && form->hasSum("f16"));
  EXPECT_FALSE(form->hasShape("m16n8k64") || form->hasSum("s32"));
  EXPECT_FALSE(findMatrixForm("mma", "", "f16", "bf16"));
  EXPECT_FALSE(findMatrixForm("mma", "", "e2m1", "e2m1"));
  form = findMatrixForm("mma", "mxf4nvf4", "e2m1", "e2m1");
  ASSERT_TRUE(form);
  EXPECT_TRUE(form->hasScales("ue4m3", 4) && form->hasScales("ue8m0", 2));
  EXPECT_FALSE(form->hasScales("ue8m0", 4) || form->hasScales("ue4m3", 2));
}

TEST(MatrixForms, Sizes) {
  std::optional<MatrixSizes> sizes = readMatrixSizes("m16n8k128");
  ASSERT_TRUE(sizes);
  EXPECT_EQ(sizes->m * 1000000 + sizes->n * 1000 + sizes->k, 16008128);
  for (const char *word : {"", "m16n8", "m16n8k", "m16n8k4x", "n8m16k4",
                           "m0n8k4", "m-1n8k4", "m99999999999n8k4"})
    EXPECT_FALSE(readMatrixSizes(word)) << word;
  for (auto [columns, isInteger, isThere] :
       {std::tuple(8, true, true), {24, true, true}, {40, true, false},
        {40, false, true}, {256, true, true}, {264, false, false}})
    EXPECT_EQ(isWgmmaWidth(columns, isInteger), isThere) << columns;
}

TEST(MatrixForms, OperandsOfTheLanguage) {
  EXPECT_EQ(matrixOperands("wgmma"),
            "f16, bf16, tf32, e4m3, e5m2, i8 and u8");
  EXPECT_EQ(matrixOperands("tcgen05"),
            "f16, bf16, tf32, e4m3, e5m2, e2m3, e3m2, e2m1, i8 and u8");
  EXPECT_EQ(ptxName(Type::i8), "s8");
  EXPECT_EQ(ptxName(Type::e2m1), "e2m1");
}

/// Every shape of a row stands in some form that ptxas takes.
TEST(MatrixForms, AreAmongThoseThatPtxasTakes) {
  std::ifstream file(KILN_SOURCE_DIR "/tests/unit/isa/ptx_forms.txt");
  std::stringstream text;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("mma") || line.starts_with("wmma") ||
        line.starts_with("wgmma"))
      text << line.substr(0, line.find(' ')) << "\n";
  for (const MatrixForm &form : matrixForms()) {
    if (form.instruction == "tcgen05" || form.instruction.starts_with("wgmma"))
      continue; // whose shapes are many, or in a descriptor
    std::istringstream shapes{std::string(form.shapes)};
    for (std::string shape; shapes >> shape;) {
      EXPECT_TRUE(readMatrixSizes(shape)) << shape;
      EXPECT_NE(text.str().find(shape), std::string::npos) << shape;
    }
  }
}

} // namespace kiln::isa
