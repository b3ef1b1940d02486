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

#include <optional>
#include <string>
#include <vector>

namespace KILN_API kiln {

/// How 16-byte chunks of a shared-memory tile are permuted, named by the bytes
/// of a row.
enum class Swizzle : std::uint8_t { none = 0, b32 = 32, b64 = 64, b128 = 128 };
/// What a swizzle of 128 bytes permutes: chunks of 16, 32 or 64 bytes; with
/// `b32_flip8` the halves of each 16 bytes change places in every other row.
enum class SwizzleAtom : std::uint8_t { b16, b32, b32_flip8, b64 };
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

/// A map of pixels (im2col): which of them are visited, and how many a copy
/// takes.
struct Im2col {
  /// Of each dimension but channels and images, innermost first: where the
  /// bounding box begins, counted from the tensor's first pixel, and where it
  /// ends, counted from its last one.
  std::vector<std::int32_t> lower, upper;
  std::uint32_t channels = 1; ///< of a pixel
  std::uint32_t pixels = 1;   ///< of a copy

  bool operator==(const Im2col &) const = default;
};

/// The same with every number known and an address: ready to encode.
struct TensorMap {
  Type type = Type::f16;
  std::uint64_t address = 0; ///< on the device
  std::vector<std::uint64_t> dims;
  std::vector<std::uint64_t> strides_bytes;
  std::vector<std::uint32_t> box; ///< of pixels: channels, and 1 of the rest
  std::vector<std::uint32_t> element_strides;
  Swizzle swizzle = Swizzle::none;
  Interleave interleave = Interleave::none;
  L2Promotion l2 = L2Promotion::b128;
  OobFill oob = OobFill::zeros;
  SwizzleAtom atom = SwizzleAtom::b16; ///< of a swizzle of 128 bytes
  /// Sixteen elements of 4 or 6 bits take 16 bytes of shared memory each, and
  /// lie packed in global memory.
  bool is_padded = false;
  std::optional<Im2col> im2col; ///< nothing: boxes
};

/// Throws UserError naming the first rule of the hardware that `map` breaks:
/// rank, box, strides, alignment, swizzle width. `what` names the map.
void check(const TensorMap &map, const std::string &what);

} // namespace kiln
