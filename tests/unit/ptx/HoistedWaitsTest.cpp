// HoistedWaits: the order of SASS beside that of PTX.
#include "ptx/tools/HoistedWaits.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace kiln {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A commit on line 1, `count` instructions behind it, and a wait.
std::string ptxOf(int count, std::string_view instruction) {
  std::string text = "wgmma.commit_group.sync.aligned;\n";
  for (int i = 0; i < count; ++i)
    text += fmt::format("\t{} %r{}, %r1;\n", instruction, i);
  return text + "\twgmma.wait_group.sync.aligned 0;\n";
}

/// Instructions with the lines of PTX they come from.
std::string sassOf(const std::vector<std::pair<int, std::string>> &code) {
  std::string text = "\t.text.gemm:\n";
  int address = 0;
  for (const auto &[line, instruction] : code)
    text += fmt::format("\t//## File \".nv_debug_ptx_txt\", line {}\n"
                        "        /*{:04x}*/                   {} ;\n",
                        line, address += 16, instruction);
  return text;
}

constexpr const char *kWait = "WARPGROUP.DEPBAR.LE gsb0, 0x0";

TEST(HoistedWaits, OnlyArithmeticBesideProductsCounts) {
  EXPECT_TRUE(hasWaitsBehindArithmetic(ptxOf(16, "ex2.approx.ftz.f32")));
  EXPECT_TRUE(hasWaitsBehindArithmetic(ptxOf(20, "@%p1 fma.rn.f32")));
  EXPECT_FALSE(hasWaitsBehindArithmetic(ptxOf(15, "ex2.approx.ftz.f32")));
  EXPECT_FALSE(hasWaitsBehindArithmetic(ptxOf(40, "mov.b32")));
  EXPECT_FALSE(hasWaitsBehindArithmetic(ptxOf(40, "add.s64")));
  EXPECT_FALSE(hasWaitsBehindArithmetic(
      ptxOf(40, "add.f32").substr(sizeof("wgmma.commit_group.sync.aligned;"))))
      << "nothing is in flight";
}

TEST(HoistedWaits, AWaitBeforeWhatStoodBeforeIt) {
  std::string ptx = ptxOf(20, "add.f32"); // lines 2 to 21, the wait on 22
  std::vector<std::pair<int, std::string>> kept, moved = {{22, kWait}};
  for (int i = 0; i < 20; ++i) {
    kept.emplace_back(2 + i, "FADD R1, R2, R3");
    moved.emplace_back(2 + i,
                       i % 2 ? "@!P0 FADD.FTZ R1, R2, R3" : "MUFU.EX2 R1, R2");
  }
  kept.emplace_back(22, kWait);
  EXPECT_THAT(findHoistedWaits(ptx, sassOf(kept)), IsEmpty());
  EXPECT_THAT(findHoistedWaits(ptx, sassOf(moved)),
              ElementsAre(HoistedWait{22, 20}));
  // A few are the scheduler's business.
  moved.resize(16);
  EXPECT_THAT(findHoistedWaits(ptx, sassOf(moved)), IsEmpty());
}

TEST(HoistedWaits, TheNextProductEndsIt) {
  std::string ptx = ptxOf(20, "add.f32");
  for (const char *end : {"HGMMA.64x64x16.F32 R24, gdesc[UR4], R24",
                          "WARPGROUP.DEPBAR.LE gsb0, 0x1"}) {
    std::vector<std::pair<int, std::string>> code = {{22, kWait}, {1, end}};
    for (int i = 0; i < 20; ++i)
      code.emplace_back(2 + i, "FADD R1, R2, R3");
    EXPECT_THAT(findHoistedWaits(ptx, sassOf(code)), IsEmpty()) << end;
  }
  // Lines behind the wait, of a loop's next round, have not been moved.
  std::vector<std::pair<int, std::string>> code = {{22, kWait}};
  for (int i = 0; i < 20; ++i)
    code.emplace_back(30 + i, "FADD R1, R2, R3");
  EXPECT_THAT(findHoistedWaits(ptx, sassOf(code)), IsEmpty());
  EXPECT_THAT(findHoistedWaits(ptx, "not SASS\n/*\n*/ /*"), IsEmpty());
}

} // namespace
} // namespace kiln
