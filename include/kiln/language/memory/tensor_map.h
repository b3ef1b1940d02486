// tensor_map.h: what the TMA unit must know to copy boxes of a tensor.
//
// The fields are those of the driver's cuTensorMapEncodeTiled, with its order:
// the innermost dimension comes first. The rules it checks are checked here
// too, by `check`, so that a wrong map is refused with its values and not with
// CUDA_ERROR_INVALID_VALUE.
#pragma once

#include <kiln/base/dim.h>
#include <kiln/base/export.h>
#include <kiln/base/types.h>

#include <string>
#include <vector>

namespace KILN_API kiln {

/// How 16-byte chunks of a shared-memory tile are permuted, named by the bytes
/// of a row.
enum class Swizzle : std::uint8_t { none = 0, b32 = 32, b64 = 64, b128 = 128 };
enum class Interleave : std::uint8_t { none = 0, b16 = 16, b32 = 32 };
/// Bytes fetched into L2 at a time.
enum class L2Promotion : std::uint16_t {
  none = 0,
  b64 = 64,
  b128 = 128,
  b256 = 256
};
/// What elements outside the tensor read as.
enum class OobFill : std::uint8_t { zeros, nan };

/// A tensor map whose dimensions may depend on launch arguments.
struct TensorMapSpec {
  Type type = Type::f16;
  std::vector<Dim> dims;            ///< elements; innermost first; rank 1-5
  std::vector<Dim> strides_bytes;   ///< of dims[1..]; one fewer than dims
  std::vector<int> box;             ///< elements of one copy
  std::vector<int> element_strides; ///< empty: all 1
  Swizzle swizzle = Swizzle::none;
  Interleave interleave = Interleave::none;
  L2Promotion l2 = L2Promotion::b128;
  OobFill oob = OobFill::zeros;

  bool operator==(const TensorMapSpec &) const = default;
};

/// The same with every number known and an address: ready to encode.
struct TensorMap {
  Type type = Type::f16;
  std::uint64_t address = 0; ///< on the device
  std::vector<std::uint64_t> dims;
  std::vector<std::uint64_t> strides_bytes;
  std::vector<std::uint32_t> box;
  std::vector<std::uint32_t> element_strides;
  Swizzle swizzle = Swizzle::none;
  Interleave interleave = Interleave::none;
  L2Promotion l2 = L2Promotion::b128;
  OobFill oob = OobFill::zeros;
};

/// Throws UserError naming the first rule of the hardware that `map` breaks:
/// rank, box, strides, alignment, swizzle width. `what` names the map.
void check(const TensorMap &map, const std::string &what);

} // namespace kiln
