// Npy: how NumPy's .npy files begin.
#pragma once

#include "kiln/base/export.h"
#include "kiln/base/types.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace KILN_API kiln {

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

/// "<f4": how a .npy file names the type. NumPy has no bf16 and no fp8: files
/// hold their bits as uint16 and uint8.
std::string npyDescr(Type type);
/// "(3, 4)", "(3,)", "()": as Python writes a tuple.
std::string npyTuple(const std::vector<std::uint64_t> &shape);
/// Everything before the elements, which follow in C order.
std::string npyHeader(Type type, const std::vector<std::uint64_t> &shape);

} // namespace kiln
