// TensorMapImage: a tensor map as 128 bytes of a kernel's parameters.
//
// The driver's format is opaque and the hardware's own; the simulator has one
// of its own, made from the same description, and refuses any other bytes.
#pragma once

#include "kiln/tensor_map.h"

#include <array>
#include <cstdint>
#include <optional>

namespace kiln::sim {

inline constexpr std::size_t kTensorMapBytes = 128;

std::array<std::uint8_t, kTensorMapBytes> encode(const TensorMap &map);
/// Nothing where the bytes are no tensor map.
std::optional<TensorMap> decode(const std::uint8_t *bytes);

} // namespace kiln::sim
