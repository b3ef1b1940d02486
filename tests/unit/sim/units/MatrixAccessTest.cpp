// MatrixAccess: the cells that operands of the tensor core lie in.
#include "sim/units/matrix/MatrixAccess.h"
#include "sim/launch/Launch.h"

#include <gtest/gtest.h>
#include <set>

namespace kiln::sim {

namespace {
/// A CTA with so much shared memory.
class SomeCta {
public:
  explicit SomeCta(std::uint32_t bytes)
      : module_(ptx::parse(".version 8.6\n.target sm_90a\n.address_size 64\n"
                           ".visible .entry k()\n{\nret;\n}\n")),
        launch_(memory_, module_, module_.functions.at(0), config(bytes)),
        cluster_(launch_.machine(), {0, 0, 0}, 0) {}

  const Cta &cta() { return cluster_.cta(0); }

private:
  static LaunchConfig config(std::uint32_t bytes) {
    LaunchConfig config;
    config.block = {32, 1, 1};
    config.dynamicSmemBytes = bytes;
    return config;
  }

  ptx::Module module_;
  GlobalMemory memory_;
  Launch launch_;
  Cluster cluster_;
};
} // namespace

using Cells = std::set<std::uint64_t>;

static Cells listed(const std::vector<PageCells> &places) {
  Cells cells;
  for (const PageCells &place : places)
    for (unsigned i = 0; i < Shadow::kPageCells; ++i)
      if (place.cells >> i & 1) {
        EXPECT_TRUE(cells.insert(place.page * Shadow::kPageCells + i).second)
            << "page " << place.page << " is there twice";
      }
  return cells;
}

/// Element by element.
static Cells expected(const Cta &cta, const std::vector<OperandView> &views) {
  Cells cells;
  for (const OperandView &view : views)
    for (int row = 0; row < view.rows; ++row)
      for (int k = 0; k < view.k; ++k)
        if (std::uint32_t at = view.address(row, k) - kFirstSharedAddress;
            at < cta.shared.size())
          cells.insert(at / Shadow::kCellBytes);
  return cells;
}

TEST(MatrixAccess, CellsAreThoseOfTheElements) {
  SomeCta some(40 << 10);
  const Cta &cta = some.cta();
  for (bool isKMajor : {true, false})
    for (int swizzle : {0, 32, 64, 128})
      for (std::uint32_t stride : {128u, 256u, 1024u, 2048u})
        for (std::uint32_t start : {1024u, 2048u + 64u, 9u << 10, 33u << 10})
          for (int rows : {8, 64, 120}) {
            OperandView view{.start = start,
                             .leading = 512,
                             .stride = stride,
                             .swizzleBytes = swizzle,
                             .isKMajor = isKMajor,
                             .rows = rows,
                             .k = 16};
            OperandView other = view;
            other.start += 32;
            EXPECT_EQ(listed(cellsOf(cta, {view, other})),
                      expected(cta, {view, other}))
                << isKMajor << " " << swizzle << " " << stride << " " << start
                << " " << rows;
          }
}

} // namespace kiln::sim
