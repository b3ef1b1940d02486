// TensorMapImage: a tensor map as 128 bytes of a kernel's parameters.
//
// The driver's format is opaque and the hardware's own; the simulator has one
// of its own, made from the same description, and refuses any other bytes.
#pragma once

#include "kiln/language/memory/tensor_map.h"

#include <array>
#include <cstdint>
#include <optional>

namespace kiln::sim {

inline constexpr std::size_t kTensorMapBytes = 128;

std::array<std::uint8_t, kTensorMapBytes> encode(const TensorMap &map);
/// Nothing where the bytes are no tensor map.
std::optional<TensorMap> decode(const std::uint8_t *bytes);

/// The fields that tensormap.replace names.
enum class TensorMapField : std::uint8_t {
  globalAddress,
  rank,
  boxDim,
  globalDim,
  globalStride,
  elementStride,
  elemtype,
  interleaveLayout,
  swizzleMode,
  fillMode,
  swizzleAtomicity,
};
/// Change one field of a map, or of zeros that are to become one, as PTX
/// encodes its values. False where the bytes are neither, or there is no such
/// value or index.
bool replace(std::uint8_t *bytes, TensorMapField field, std::uint64_t index,
             std::uint64_t value);

} // namespace kiln::sim
