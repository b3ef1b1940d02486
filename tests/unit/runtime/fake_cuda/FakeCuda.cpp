// FakeCuda: the part of the CUDA driver that Kiln uses, on host memory.
//
// It runs no kernel: it writes down what it was asked to do, checks what a test
// cannot see (a current context, live handles), and fails the call it is told
// to. With FAKE_CUDA_OLD it is a driver that lacks cuLaunchKernelEx.
#include "unit/runtime/fake_cuda/FakeCuda.h"

#include <cstring>

using namespace kiln::cuda;
using kiln::test::FakeCuda;

/// The state that tests read and set.
extern "C" FakeCuda *fakeCuda() {
  static FakeCuda state;
  return &state;
}

/// Note the call; the result it is told to have.
static CUresult enter(const char *symbol) {
  FakeCuda &fake = *fakeCuda();
  fake.calls.push_back(symbol);
  return fake.failCall == symbol ? fake.failResult : CUDA_SUCCESS;
}

/// The same for calls that need a current context.
static CUresult enterInContext(const char *symbol) {
  CUresult result = enter(symbol);
  if (result == CUDA_SUCCESS && fakeCuda()->contextDepth == 0)
    return static_cast<CUresult>(201); // CUDA_ERROR_INVALID_CONTEXT
  return result;
}

#define ENTER                                                                  \
  if (CUresult result = enter(__func__); result != CUDA_SUCCESS)               \
  return result
#define ENTER_IN_CONTEXT                                                       \
  if (CUresult result = enterInContext(__func__); result != CUDA_SUCCESS)      \
  return result

extern "C" {

CUresult cuDriverGetVersion(int *version) {
#ifdef FAKE_CUDA_OLD
  *version = 11040;
#else
  *version = 12020;
#endif
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult result, const char **text) {
  switch (result) {
  case CUDA_ERROR_INVALID_VALUE:
    *text = "CUDA_ERROR_INVALID_VALUE";
    return CUDA_SUCCESS;
  case CUDA_ERROR_OUT_OF_MEMORY:
    *text = "CUDA_ERROR_OUT_OF_MEMORY";
    return CUDA_SUCCESS;
  case CUDA_ERROR_NO_DEVICE:
    *text = "CUDA_ERROR_NO_DEVICE";
    return CUDA_SUCCESS;
  case CUDA_ERROR_ILLEGAL_ADDRESS:
    *text = "CUDA_ERROR_ILLEGAL_ADDRESS";
    return CUDA_SUCCESS;
  case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    *text = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION";
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuGetErrorString(CUresult result, const char **text) {
  if (result != CUDA_ERROR_INVALID_VALUE)
    return CUDA_ERROR_INVALID_VALUE;
  *text = "invalid argument";
  return CUDA_SUCCESS;
}

CUresult cuInit(unsigned) {
  ENTER;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
  ENTER;
  *count = fakeCuda()->devices;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  ENTER;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *text, int bytes, CUdevice) {
  ENTER;
  std::strncpy(text, "Fake GPU", bytes);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                              CUdevice) {
  ENTER;
  static const std::map<int, int> values = {
      {1, 1024},   {13, 1980000}, {16, 132}, {36, 3201000}, {37, 6144},
      {38, 1000},  {39, 2048},    {75, 9},   {76, 0},       {81, 233472},
      {82, 65536}, {97, 232448},  {106, 32}, {111, 1024},   {120, 1}};
  auto own = fakeCuda()->attributes.find(attribute);
  *value = own != fakeCuda()->attributes.end() ? own->second
                                               : values.at(attribute);
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(std::size_t *bytes, CUdevice) {
  ENTER;
  *bytes = 1 << 30;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
  ENTER;
  ++fakeCuda()->contexts;
  *context = reinterpret_cast<CUcontext>(0x10);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  ENTER;
  --fakeCuda()->contexts;
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  ENTER;
  if (fakeCuda()->contexts == 0 || context != reinterpret_cast<CUcontext>(0x10))
    return CUDA_ERROR_INVALID_VALUE;
  ++fakeCuda()->contextDepth;
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *) {
  ENTER;
  --fakeCuda()->contextDepth;
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, std::size_t bytes) {
  ENTER_IN_CONTEXT;
  std::vector<char> block(bytes);
  *address = reinterpret_cast<CUdeviceptr>(block.data());
  fakeCuda()->memory.emplace(*address, std::move(block));
  return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  ENTER_IN_CONTEXT;
  return fakeCuda()->memory.erase(address) ? CUDA_SUCCESS
                                           : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetInfo_v2(std::size_t *free, std::size_t *total) {
  ENTER_IN_CONTEXT;
  *free = 7;
  *total = 1 << 30;
  return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from,
                              std::size_t bytes, CUstream) {
  ENTER_IN_CONTEXT;
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, std::size_t bytes,
                              CUstream) {
  ENTER_IN_CONTEXT;
  std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                       CUstream) {
  ENTER_IN_CONTEXT;
  std::memcpy(reinterpret_cast<void *>(to),
              reinterpret_cast<const void *>(from), bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *, std::size_t, unsigned) {
  ENTER_IN_CONTEXT;
  ++fakeCuda()->registered;
  return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *) {
  ENTER_IN_CONTEXT;
  --fakeCuda()->registered;
  return CUDA_SUCCESS;
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value,
                          std::size_t count, CUstream) {
  ENTER_IN_CONTEXT;
  std::fill_n(reinterpret_cast<unsigned short *>(to), count, value);
  return CUDA_SUCCESS;
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count,
                          CUstream) {
  ENTER_IN_CONTEXT;
  std::fill_n(reinterpret_cast<unsigned *>(to), count, value);
  return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) {
  ENTER_IN_CONTEXT;
  return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char byte, std::size_t bytes,
                         CUstream) {
  ENTER_IN_CONTEXT;
  std::memset(reinterpret_cast<void *>(to), byte, bytes);
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned) {
  ENTER_IN_CONTEXT;
  *stream = reinterpret_cast<CUstream>(0x20l + ++fakeCuda()->streams);
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream) {
  ENTER_IN_CONTEXT;
  --fakeCuda()->streams;
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream) {
  ENTER_IN_CONTEXT;
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned) {
  ENTER_IN_CONTEXT;
  *event = reinterpret_cast<CUevent>(0x30l + ++fakeCuda()->events);
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent) {
  ENTER_IN_CONTEXT;
  --fakeCuda()->events;
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent, CUstream) {
  ENTER_IN_CONTEXT;
  return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent) {
  ENTER_IN_CONTEXT;
  return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent, CUevent) {
  ENTER_IN_CONTEXT;
  *milliseconds = 0.25f;
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                            CUjit_option *options, void **values) {
  FakeCuda &fake = *fakeCuda();
  CUresult result = enterInContext(__func__);
  for (unsigned i = 0; i < count; ++i)
    if (result != CUDA_SUCCESS && options[i] == CU_JIT_ERROR_LOG_BUFFER)
      std::strcpy(static_cast<char *>(values[i]), fake.jitLog.c_str());
  if (result != CUDA_SUCCESS)
    return result;
  fake.moduleTexts.push_back(static_cast<const char *>(image));
  ++fake.modules;
  *module = reinterpret_cast<CUmodule>(fake.moduleTexts.size());
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule) {
  ENTER_IN_CONTEXT;
  --fakeCuda()->modules;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule, const char *) {
  ENTER_IN_CONTEXT;
  *function = reinterpret_cast<CUfunction>(0x40);
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute attribute,
                            int value) {
  ENTER_IN_CONTEXT;
  fakeCuda()->functionAttributes[attribute] = value;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int *count, CUfunction,
                                      const CUlaunchConfig *config) {
  ENTER_IN_CONTEXT;
  // Groups of 16 multiprocessors, of 132.
  *count = static_cast<int>(16 / config->attrs->value.clusterDim.x * 8);
  return CUDA_SUCCESS;
}

#ifndef FAKE_CUDA_OLD
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction,
                          void **parameters, void **) {
  ENTER_IN_CONTEXT;
  FakeCuda &fake = *fakeCuda();
  FakeCuda::Launch launch{
      *config, {config->attrs, config->attrs + config->numAttrs}, {}};
  for (std::size_t i = 0; i < fake.parameterBytes.size(); ++i) {
    auto *bytes = static_cast<const std::byte *>(parameters[i]);
    launch.parameters.emplace_back(bytes, bytes + fake.parameterBytes[i]);
  }
  fake.launches.push_back(std::move(launch));
  return CUDA_SUCCESS;
}
#endif

CUresult cuTensorMapEncodeTiled(
    CUtensorMap *map, CUtensorMapDataType type, std::uint32_t rank,
    void *address, const std::uint64_t *dims, const std::uint64_t *strides,
    const std::uint32_t *box, const std::uint32_t *elementStrides,
    CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion l2, CUtensorMapFloatOOBfill oob) {
  ENTER_IN_CONTEXT;
  if (reinterpret_cast<std::uintptr_t>(map) % 64 != 0)
    return CUDA_ERROR_INVALID_VALUE;
  fakeCuda()->tensorMaps.push_back({type,
                                    address,
                                    {dims, dims + rank},
                                    {strides, strides + rank - 1},
                                    {box, box + rank},
                                    {elementStrides, elementStrides + rank},
                                    interleave,
                                    swizzle,
                                    l2,
                                    oob});
  std::memset(map, 0x5a, sizeof(*map));
  return CUDA_SUCCESS;
}

} // extern "C"

// The fake has the very signatures that Kiln calls.
#ifndef FAKE_CUDA_OLD
namespace kiln {
#define CHECK_SIGNATURE(call, symbol, ...)                                     \
  static_assert(                                                               \
      std::is_same_v<decltype(&::symbol), CudaCall<__VA_ARGS__>::Function>);
KILN_CUDA_SYMBOLS(CHECK_SIGNATURE)
} // namespace kiln
#endif
