// HoistedWaits: waits for wgmma that ptxas moved up.
//
// A wait that stands behind arithmetic lets that run beside the products.
// ptxas sees no reason why it should not come first, and then they run one
// after the other, without a word.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct HoistedWait {
  int ptxLine;      ///< of the wgmma.wait_group
  int instructions; ///< of arithmetic before it in PTX, behind it in SASS

  bool operator==(const HoistedWait &) const = default;
};

/// Whether the PTX has a wait with arithmetic between it and the products.
bool hasWaitsBehindArithmetic(std::string_view ptx);

/// Of machine code as `nvdisasm --print-line-info-ptx` prints it. A few
/// instructions that have been moved are none.
std::vector<HoistedWait> findHoistedWaits(std::string_view ptx,
                                          std::string_view sass);

/// As ptxas would have said it of a file.
std::string describeAsPtxas(const HoistedWait &wait, std::string_view file);

} // namespace kiln
