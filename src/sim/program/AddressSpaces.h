// AddressSpaces: where each state space lies among the generic addresses.
//
// By the bits above 40:
//
//     1  shared memory    [15:0 CTA of the cluster][24 bits]
//     2  kernel parameters
//     3  local memory of the thread
//     4  functions, which can be called and not read
//     112 and up: global buffers
//
// Memory of the host that kernels share lies at its own address: in any other
// window.
#pragma once

#include "ptx/Ast.h"

#include <cstdint>

namespace kiln::sim {

inline constexpr int kWindowShift = 40;
inline constexpr std::uint64_t kSharedWindow = std::uint64_t(1) << kWindowShift;
inline constexpr std::uint64_t kParamWindow = std::uint64_t(2) << kWindowShift;
inline constexpr std::uint64_t kLocalWindow = std::uint64_t(3) << kWindowShift;
inline constexpr std::uint64_t kCodeWindow = std::uint64_t(4) << kWindowShift;
inline constexpr std::uint64_t kGlobalBase = std::uint64_t(112) << kWindowShift;
/// Where the CTA's rank in its cluster stands in a shared address: a CTA's own
/// addresses carry it too, so that clearing bit 24 reaches the even CTA of a
/// pair.
inline constexpr int kRankShift = 24;
/// The first KiB belongs to the system on sm_90.
inline constexpr std::uint32_t kFirstSharedAddress = 1024;

/// Whether a generic address is one of global memory.
constexpr bool isGlobalAddress(std::uint64_t address) {
  std::uint64_t window = address >> kWindowShift;
  return window == 0 || window > kCodeWindow >> kWindowShift;
}

/// Whether `bytes` from `offset` on lie within the first `size`. Every address
/// of a kernel is checked by this; nothing is added, so that nothing wraps.
constexpr bool isInside(std::uint64_t offset, std::uint64_t bytes,
                        std::uint64_t size) {
  return bytes <= size && offset <= size - bytes;
}

/// State spaces as instructions name them; generic is decided per lane.
enum class Space : std::uint8_t { generic, global, shared, local, param };

/// The space of an instruction's modifiers: .shared, .shared::cta,
/// .shared::cluster, .global, .const, .local, .param, or none.
Space spaceOf(const ptx::Instruction &instruction);

} // namespace kiln::sim
