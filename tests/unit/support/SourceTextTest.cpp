// SourceText: which files PTX names as its sources.
#include "support/text/SourceText.h"

#include <gmock/gmock.h>

using namespace kiln;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(SourceText, NamesTheSourcesOfPtx) {
  EXPECT_THAT(namedSources(".file 1 \"b.cu\"\n.file 2 \"/a/h.cuh\", 17, 20\n"
                           "add.u32 r, r, 1; .file 3 \"b.cu\""),
              ElementsAre("/a/h.cuh", "b.cu"));
}

TEST(SourceText, NamesNoOtherFiles) {
  EXPECT_THAT(namedSources(".file 1 \"/etc/passwd\"\n.file 2 \"key.pem\"\n"
                           ".file 3\n\"next.cu\"\n.file \"open.cu"),
              ElementsAre("open.cu"));
  EXPECT_THAT(namedSources(""), IsEmpty());
}
