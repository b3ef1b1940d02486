// PtxVersion: a table of what came behind PTX 8.0.
#include "support/text/PtxVersion.h"
#include "support/text/PtxText.h"

#include <algorithm>

namespace kiln {

namespace {
struct Row {
  std::string_view opcode; ///< how the instruction begins
  std::string_view part;   ///< and what it has somewhere; empty: anything
  int version;
};
} // namespace

static constexpr Row kRows[] = {
    {"multimem.", "", 81},
    {"atom.", ".v", 81},
    {"red.", ".v", 81},
    {"wgmma.mma_async.sp", "", 82},
    {"fence.proxy.tensormap", "", 83},
    {"tensormap.", "", 83},
    {"atom.", ".b128", 83},
    {"ld.", ".b128", 83},
    {"st.", ".b128", 83},
    {"mma.", ".e4m3", 84},
    {"mma.", ".e5m2", 84},
    {"tcgen05.", "", 86},
    {"clusterlaunchcontrol.", "", 86},
    {"st.bulk", "", 86},
    {"add.", ".f32x2", 86},
    {"sub.", ".f32x2", 86},
    {"mul.", ".f32x2", 86},
    {"fma.", ".f32x2", 86},
    {"redux.", ".f32", 86},
    {"cvt.", ".e2m1x2", 86},
    {"cvt.", ".e2m3x2", 86},
    {"cvt.", ".e3m2x2", 86},
    {"cvt.", ".ue8m0x2", 86},
    {"ldmatrix.", ".m16n16", 86},
    {"ldmatrix.", ".m8n16", 86},
    {"stmatrix.", ".m16n8", 86},
    {"cp.async.bulk.", ".cp_mask", 86},
    {"cp.async.bulk.", ".tile::gather4", 86},
    {"cp.async.bulk.", ".tile::scatter4", 86},
    {"cp.async.bulk.", ".im2col::w", 86},
    {"cp.async.bulk.", ".cta_group::", 86},
    {"fence.", ".sync_restrict", 86},
    {"mma.", ".kind::", 87},
    {"tcgen05.", ".kind::mxf4nvf4", 87},
    {"cvt.rs.", "", 87},
    {"ld.", ".v8", 88},
    {"st.", ".v8", 88},
};

PtxNeed neededPtxVersion(std::string_view text) {
  std::string blanked = blankCommentsAndStrings(text);
  PtxNeed need;
  std::string_view rest = blanked;
  while (!rest.empty()) {
    std::size_t end = std::min(rest.find_first_of(";{}\n"), rest.size());
    std::string_view statement = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    auto skipBlanks = [&] {
      std::size_t first = statement.find_first_not_of(" \t");
      statement.remove_prefix(std::min(first, statement.size()));
    };
    skipBlanks();
    if (statement.starts_with('@')) { // a guard
      statement.remove_prefix(
          std::min(statement.find_first_of(" \t"), statement.size()));
      skipBlanks();
    }
    std::string_view opcode =
        statement.substr(0, statement.find_first_of(" \t"));
    for (const Row &row : kRows)
      if (row.version > need.version && opcode.starts_with(row.opcode) &&
          opcode.find(row.part) != std::string_view::npos)
        need = {row.version, std::string(opcode)};
  }
  return need;
}

} // namespace kiln
