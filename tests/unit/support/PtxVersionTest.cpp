// PtxVersion: what needs more than PTX 8.0.
#include "support/text/PtxVersion.h"

#include <gtest/gtest.h>

namespace kiln {

TEST(NeededPtx, TheNewestInstructionCounts) {
  EXPECT_EQ(neededPtxVersion("").version, 0);
  EXPECT_EQ(neededPtxVersion("add.f32 $0, $1, $2;").version, 0);
  EXPECT_EQ(neededPtxVersion("// tcgen05.mma\n add.f32 $0, $1, $2;").version,
            0);
  PtxNeed need = neededPtxVersion("{ .reg .pred p;\n\t@p add.rn.f32x2 $0, $1, "
                                  "$2;\n fence.proxy.tensormap::generic.acquire"
                                  ".gpu [$1], 128; }");
  EXPECT_EQ(need.version, 86);
  EXPECT_EQ(need.what, "add.rn.f32x2");
  EXPECT_EQ(neededPtxVersion("tcgen05.mma.cta_group::1.kind::f16 a;").version,
            86);
  EXPECT_EQ(
      neededPtxVersion("tcgen05.mma.cta_group::1.kind::mxf4nvf4 a;").version,
      87);
  EXPECT_EQ(neededPtxVersion("ld.global.v8.f32 {a}, [b];").version, 88);
}

} // namespace kiln
