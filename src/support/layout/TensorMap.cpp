// TensorMap: the rules of cuTensorMapEncodeTiled, each with its numbers.
//
// The driver answers a wrong map with CUDA_ERROR_INVALID_VALUE and the
// simulator would have to guess, so both ask here first.
#include "kiln/run/device_description.h"
#include "kiln/language/memory/tensor_map.h"

#include "support/Error.h"

namespace kiln {

static constexpr std::uint64_t kMaxDim = std::uint64_t{1} << 32;
static constexpr std::uint64_t kStrideLimitBytes = std::uint64_t{1} << 40;
static constexpr std::uint32_t kMaxBox = DeviceDescription::max_box_elements;
static constexpr std::uint32_t kMaxElementStride = 8;
static constexpr std::uint64_t kChunkBytes = 16;

/// The vectors must agree on the rank before any rule can speak of a dimension.
static void checkRank(const TensorMap &map, const std::string &what) {
  std::size_t rank = map.dims.size();
  if (rank < 1 || rank > 5)
    userError("{} has rank {}; a tensor map has rank 1 to 5", what, rank);
  if (map.strides_bytes.size() != rank - 1)
    userError("{} has {} strides for rank {}; it needs {}, one for each "
              "dimension but the innermost",
              what, map.strides_bytes.size(), rank, rank - 1);
  if (map.box.size() != rank)
    userError("{} has a box of rank {} for a tensor of rank {}; they must be "
              "the same",
              what, map.box.size(), rank);
  if (map.element_strides.size() != rank)
    userError("{} has {} element strides for rank {}; it needs one for each "
              "dimension",
              what, map.element_strides.size(), rank);
}

/// What every dimension must satisfy on its own.
static void checkDimensions(const TensorMap &map, const std::string &what) {
  for (std::size_t i = 0; i < map.dims.size(); ++i) {
    if (map.dims[i] < 1 || map.dims[i] > kMaxDim)
      userError("{} has {} elements in dimension {}; 1 to 2^32 are possible",
                what, map.dims[i], i);
    if (map.box[i] < 1 || map.box[i] > kMaxBox)
      userError("{} has a box of {} elements in dimension {}; 1 to {} are "
                "possible",
                what, map.box[i], i, kMaxBox);
    if (map.element_strides[i] < 1 ||
        map.element_strides[i] > kMaxElementStride)
      userError("{} has element stride {} in dimension {}; 1 to {} are "
                "possible",
                what, map.element_strides[i], i, kMaxElementStride);
  }
}

/// Addresses and strides are multiples of 16 bytes, of 32 where channels are
/// interleaved by 32.
static void checkAlignment(const TensorMap &map, const std::string &what) {
  std::uint64_t granule =
      map.interleave == Interleave::b32 ? 2 * kChunkBytes : kChunkBytes;
  if (map.address % granule != 0)
    userError("{} begins at address {:#x}; it must be a multiple of {} bytes",
              what, map.address, granule);
  for (std::size_t i = 0; i < map.strides_bytes.size(); ++i) {
    std::uint64_t stride = map.strides_bytes[i];
    if (stride % granule != 0)
      userError("{} has a stride of {} bytes in dimension {}; it must be a "
                "multiple of {} bytes: pad the rows to {}",
                what, stride, i + 1, granule, (stride / granule + 1) * granule);
    if (stride >= kStrideLimitBytes)
      userError("{} has a stride of {} bytes in dimension {}; it must be less "
                "than 2^40",
                what, stride, i + 1);
  }
}

/// Without interleaving, a row of the box is whole 16-byte chunks and no wider
/// than the swizzle that permutes them.
static void checkBoxRow(const TensorMap &map, const std::string &what) {
  auto rowBytes = static_cast<std::uint64_t>(
      map.is_padded ? map.box[0] : bytes_of(map.type, map.box[0]));
  if (rowBytes % kChunkBytes != 0)
    userError("{} has a box {} elements of {} wide, {} bytes; the width must "
              "be a multiple of {} bytes, {} elements",
              what, map.box[0], name(map.type), rowBytes, kChunkBytes,
              elements_in(map.type, kChunkBytes));
  auto swizzleBytes = static_cast<std::uint64_t>(map.swizzle);
  if (swizzleBytes != 0 && rowBytes > swizzleBytes)
    userError("{} has a box {} elements of {} wide, {} bytes; with a swizzle "
              "of {} bytes at most {} elements are possible",
              what, map.box[0], name(map.type), rowBytes, swizzleBytes,
              elements_in(map.type, static_cast<std::int64_t>(swizzleBytes)));
}

/// Two of e2m1 share a byte, and a row begins and ends with whole ones; the
/// hardware has no map of elements of 6 bits that lie as Kiln's do.
static void checkSubbytes(const TensorMap &map, const std::string &what) {
  if (map.type == Type::e2m1 && map.dims[0] % 2 != 0)
    userError("{} has rows of {} elements of e2m1; the number must be even",
              what, map.dims[0]);
  if (is_subbyte(map.type) && map.type != Type::e2m1 && !map.is_padded)
    userError("{} is of {}; of the elements below 8 bits maps have e2m1, and "
              "others are copied as u8",
              what, name(map.type));
}

/// Padded elements come in lines of 128, at multiples of 32 bytes.
static void checkPadding(const TensorMap &map, const std::string &what) {
  constexpr std::uint64_t kLine = 128, kGranule = 32;
  if (!is_subbyte(map.type))
    userError("{} is padded and of {}; elements of 4 and 6 bits are padded",
              what, name(map.type));
  if (map.box[0] != kLine || map.dims[0] % kLine != 0)
    userError("{} has padded rows of {} elements and a box of {}; the rows are "
              "multiples of {} and the box is {} wide",
              what, map.dims[0], map.box[0], kLine, kLine);
  if (map.address % kGranule != 0)
    userError("{} begins at address {:#x}; with padded elements it must be a "
              "multiple of {} bytes",
              what, map.address, kGranule);
  for (std::uint64_t stride : map.strides_bytes)
    if (stride % kGranule != 0)
      userError("{} has a stride of {} bytes; with padded elements it must be "
                "a multiple of {} bytes",
                what, stride, kGranule);
}

/// A bounding box of pixels, in the bits that the hardware has for it.
static void checkPixels(const TensorMap &map, const std::string &what) {
  constexpr std::uint32_t kMaxPixels = 1024;
  std::size_t rank = map.dims.size();
  const Im2col &im2col = *map.im2col;
  if (rank < 3 || im2col.lower.size() != rank - 2 ||
      im2col.upper.size() != rank - 2)
    userError("{} has rank {} and bounding boxes of {} and {} dimensions; "
              "pixels have rank 3 to 5 and two dimensions fewer",
              what, rank, im2col.lower.size(), im2col.upper.size());
  std::int32_t limit = rank == 3 ? 32768 : rank == 4 ? 128 : 16;
  for (const auto *corner : {&im2col.lower, &im2col.upper})
    for (std::int32_t at : *corner)
      if (at < -limit || at >= limit)
        userError("{} has a corner at {}; of rank {} they are {} to {}", what,
                  at, rank, -limit, limit - 1);
  if (im2col.pixels < 1 || im2col.pixels > kMaxPixels)
    userError("{} has {} pixels in a column; 1 to {} are possible", what,
              im2col.pixels, kMaxPixels);
}

/// Interleaved layouts keep the channels in a dimension of their own.
static void checkInterleave(const TensorMap &map, const std::string &what) {
  auto bytes = static_cast<int>(map.interleave);
  if (map.dims.size() < 3)
    userError("{} is interleaved by {} bytes and has rank {}; an interleaved "
              "tensor has rank 3 to 5",
              what, bytes, map.dims.size());
  if (map.interleave == Interleave::b32 && map.swizzle != Swizzle::b32)
    userError("{} is interleaved by 32 bytes with a swizzle of {} bytes; it "
              "needs a swizzle of 32 bytes",
              what, static_cast<int>(map.swizzle));
}

/// The driver knows f8 as bytes, which have no NaN to fill with.
static bool canFillNan(Type type) {
  return is_float(type) && size_bytes(type) > 1;
}

void check(const TensorMap &map, const std::string &what) {
  checkRank(map, what);
  checkDimensions(map, what);
  checkAlignment(map, what);
  checkSubbytes(map, what);
  if (map.is_padded)
    checkPadding(map, what);
  if (map.im2col)
    checkPixels(map, what);
  if (map.atom != SwizzleAtom::b16 && map.swizzle != Swizzle::b128)
    userError("{} has a swizzle of {} bytes in chunks that only one of 128 "
              "bytes has",
              what, static_cast<int>(map.swizzle));
  if (map.interleave == Interleave::none)
    checkBoxRow(map, what);
  else
    checkInterleave(map, what);
  if (map.oob == OobFill::nan && !canFillNan(map.type))
    userError("{} fills with NaN outside a tensor of {}; NaN is possible for "
              "f16, bf16, tf32, f32 and f64, zeros for every type",
              what, name(map.type));
}

} // namespace kiln
