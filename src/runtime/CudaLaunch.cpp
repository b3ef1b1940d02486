// CudaLaunch: check a launch and put its parameters into the driver's form.
#include "runtime/CudaLaunch.h"

#include "kiln/language/memory/tensor_map_bytes.h"
#include "support/Error.h"

#include <cstring>

namespace kiln {

using namespace cuda;

/// The size of a parameter as it is handed over, and what to call it.
static std::pair<std::size_t, std::string>
describe(const LaunchParameter &parameter) {
  if (std::holds_alternative<Buffer>(parameter.value))
    return {sizeof(CUdeviceptr), "a buffer"};
  if (auto *scalar = std::get_if<Scalar>(&parameter.value))
    return {size_bytes(scalar->type),
            fmt::format("a scalar {}", kiln::name(scalar->type))};
  if (std::holds_alternative<TensorMap>(parameter.value))
    return {sizeof(CUtensorMap), "a tensor map"};
  return {std::get<std::vector<std::byte>>(parameter.value).size(),
          "raw bytes"};
}

void checkParameters(const LaunchDescription &launch, const CudaEntry &entry) {
  const std::vector<ScannedParameter> &declared = entry.parameters();
  if (declared.size() != launch.parameters.size())
    userError("{} takes {} parameters, {} were given", entry.name(),
              declared.size(), launch.parameters.size());
  for (std::size_t i = 0; i < declared.size(); ++i) {
    auto [bytes, kind] = describe(launch.parameters[i]);
    if (declared[i].bytes != 0 &&
        bytes != static_cast<std::size_t>(declared[i].bytes))
      userError("parameter {} of {} is {} of {} bytes, but {} of {} bytes was "
                "given",
                i, entry.name(), declared[i].type, declared[i].bytes, kind,
                bytes);
  }
}

/// TMA moves bits; a type matters to it where elements are reduced or filled
/// with NaN, and 8-bit floats are bytes to it.
static CUtensorMapDataType tensorMapType(Type type) {
  switch (type) {
  case Type::i1:
  case Type::i8:
  case Type::u8:
  case Type::e4m3:
  case Type::e5m2:
  case Type::ue8m0:
  case Type::ue4m3:
    return CU_TENSOR_MAP_DATA_TYPE_UINT8;
  case Type::i16:
  case Type::u16:
    return CU_TENSOR_MAP_DATA_TYPE_UINT16;
  case Type::i32:
    return CU_TENSOR_MAP_DATA_TYPE_INT32;
  case Type::u32:
    return CU_TENSOR_MAP_DATA_TYPE_UINT32;
  case Type::i64:
    return CU_TENSOR_MAP_DATA_TYPE_INT64;
  case Type::u64:
  case Type::index:
    return CU_TENSOR_MAP_DATA_TYPE_UINT64;
  case Type::f16:
    return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  case Type::bf16:
    return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  case Type::tf32:
    return CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
  case Type::f32:
    return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  case Type::f64:
    return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
  case Type::e2m1:
    return CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B;
  case Type::e2m3: // refused by `check`
  case Type::e3m2:
    break;
  }
  internalError("type {} has no tensor map type", static_cast<int>(type));
}

/// The type of a map; elements that are padded have numbers of their own.
static CUtensorMapDataType typeOf(const TensorMap &map) {
  if (!map.is_padded)
    return tensorMapType(map.type);
  constexpr int kFourBits = 14, kSixBits = 15;
  return static_cast<CUtensorMapDataType>(
      map.type == Type::e2m1 ? kFourBits : kSixBits);
}

/// The place of a width in the driver's enums, where 0 means none and each
/// value after `first` doubles the bytes of the one before.
static int widthRank(int bytes, int first) {
  int rank = 0;
  for (; bytes >= first; bytes /= 2)
    ++rank;
  return rank;
}

/// The 128 bytes the TMA unit reads, after Kiln's own check of the map.
static CUtensorMap encode(const CudaDriver &driver, const TensorMap &map,
                          const std::string &what) {
  check(map, what);
  if (map.im2col)
    userError("{} is a map of pixels, which the simulator has and this device "
              "of Kiln does not make",
              what);
  CUtensorMap encoded{};
  // The driver refuses a null pointer also where rank 1 leaves no strides.
  std::vector<std::uint64_t> strides = map.strides_bytes;
  strides.resize(map.dims.size());
  driver.call(
      driver.cuTensorMapEncodeTiled,
      [&] { return fmt::format("encoding {}", what); }, &encoded,
      typeOf(map), static_cast<std::uint32_t>(map.dims.size()),
      reinterpret_cast<void *>(map.address), map.dims.data(), strides.data(),
      map.box.data(), map.element_strides.data(),
      static_cast<CUtensorMapInterleave>(
          widthRank(static_cast<int>(map.interleave), 16)),
      static_cast<CUtensorMapSwizzle>(
          widthRank(static_cast<int>(map.swizzle), 32) +
          static_cast<int>(map.atom)),
      static_cast<CUtensorMapL2promotion>(
          widthRank(static_cast<int>(map.l2), 64)),
      map.oob == OobFill::nan
          ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
          : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return encoded;
}

namespace {
/// A context of the first GPU, current while this lives. Which one does not
/// matter to who only encodes a map; the driver wants any.
class AnyContext {
public:
  explicit AnyContext(const CudaDriver &driver) : driver_(driver) {
    constexpr const char *kWhy = "encoding a tensor map";
    driver.call(driver.cuDeviceGet, kWhy, &device_, 0);
    driver.call(driver.cuDevicePrimaryCtxRetain, kWhy, &context_, device_);
    isCurrent_ = driver.cuCtxPushCurrent.function(context_) == CUDA_SUCCESS;
  }
  AnyContext(const AnyContext &) = delete;
  ~AnyContext() {
    if (isCurrent_)
      driver_.cuCtxPopCurrent.function(&context_);
    driver_.cuDevicePrimaryCtxRelease.function(device_);
  }

private:
  const CudaDriver &driver_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  bool isCurrent_ = false;
};
} // namespace

std::array<std::byte, 128> encodeAlone(const CudaDriver &driver,
                                       const TensorMap &map) {
  AnyContext context(driver);
  CUtensorMap encoded = encode(driver, map, "the tensor map of a memref");
  std::array<std::byte, 128> bytes{};
  static_assert(sizeof(encoded) == bytes.size());
  std::memcpy(bytes.data(), &encoded, bytes.size());
  return bytes;
}

std::array<std::byte, 128> cuda_tensor_map(const TensorMap &map) {
  return encodeAlone(*CudaDriver::ofProcess(), map);
}

PackedParameters packParameters(const CudaDriver &driver,
                                const LaunchDescription &launch,
                                const std::string &name) {
  PackedParameters packed;
  for (const LaunchParameter &parameter : launch.parameters) {
    if (auto *buffer = std::get_if<Buffer>(&parameter.value)) {
      packed.pointers.push_back(&packed.words.emplace_back(buffer->address()));
    } else if (auto *scalar = std::get_if<Scalar>(&parameter.value)) {
      packed.pointers.push_back(&packed.words.emplace_back(scalar->bits));
    } else if (auto *map = std::get_if<TensorMap>(&parameter.value)) {
      std::string what = fmt::format("the tensor map in parameter {} of {}",
                                     packed.pointers.size(), name);
      packed.pointers.push_back(
          &packed.maps.emplace_back(encode(driver, *map, what)));
    } else {
      auto &bytes = std::get<std::vector<std::byte>>(parameter.value);
      packed.pointers.push_back(const_cast<std::byte *>(bytes.data()));
    }
  }
  return packed;
}

} // namespace kiln
