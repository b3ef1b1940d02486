// PtxVersion: which are written, and their names.
#include "isa/PtxVersion.h"

#include <gtest/gtest.h>

namespace kiln::isa {

TEST(PtxVersion, Names) {
  EXPECT_EQ(ptxVersionText(86), "8.6");
  EXPECT_EQ(newestPtxVersion(), 94);
  EXPECT_TRUE(isWritablePtxVersion(90));
  for (int version : {0, 78, 89, 91, 99})
    EXPECT_FALSE(isWritablePtxVersion(version)) << version;
  EXPECT_EQ(writablePtxVersions(),
            "8.0, 8.1, 8.2, 8.3, 8.4, 8.5, 8.6, 8.7, 8.8, 9.0");
}

} // namespace kiln::isa
