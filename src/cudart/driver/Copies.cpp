// Copies: of rows and slices, pitched memory, and hints about where memory is.
#include "cudart/driver/Driver.h"

extern "C" {
cudaError_t cudaMallocPitch(void **, std::size_t *, std::size_t, std::size_t);
cudaError_t cudaHostGetFlags(unsigned *, void *);
cudaError_t cudaStreamAddCallback(cudaStream_t,
                                  void (*)(cudaStream_t, cudaError_t, void *),
                                  void *, unsigned);
cudaError_t cudaDeviceGetGraphMemAttribute(int, int, void *);
cudaError_t cudaDeviceSetGraphMemAttribute(int, int, void *);
}

using namespace kiln::cudart;

namespace {
enum class MemoryType : unsigned { host = 1, device = 2, array = 3, unified = 4 };

/// CUDA_MEMCPY2D and CUDA_MEMCPY3D name a place so, each in its own order.
struct Place {
  MemoryType type;
  const void *host;
  CUdeviceptr device;
  std::size_t x, y, z, pitch, height;

  std::uint64_t address() const {
    std::uint64_t base =
        type == MemoryType::host ? addressOf(host) : device;
    return base + x + (z * height + y) * pitch;
  }
};

struct Copy2D {
  std::size_t fromX, fromY;
  MemoryType fromType;
  const void *fromHost;
  CUdeviceptr fromDevice;
  void *fromArray;
  std::size_t fromPitch;
  std::size_t toX, toY;
  MemoryType toType;
  void *toHost;
  CUdeviceptr toDevice;
  void *toArray;
  std::size_t toPitch;
  std::size_t width, height;
};

struct Copy3D {
  std::size_t fromX, fromY, fromZ, fromLevel;
  MemoryType fromType;
  const void *fromHost;
  CUdeviceptr fromDevice;
  void *fromArray, *fromReserved;
  std::size_t fromPitch, fromHeight;
  std::size_t toX, toY, toZ, toLevel;
  MemoryType toType;
  void *toHost;
  CUdeviceptr toDevice;
  void *toArray, *toReserved;
  std::size_t toPitch, toHeight;
  std::size_t width, height, depth;
};
} // namespace

static CUresult copy(const char *name, Place to, Place from, std::size_t width,
                     std::size_t height, std::size_t depth, cudaStream_t stream,
                     bool isWaiting) {
  if (to.type == MemoryType::array || from.type == MemoryType::array)
    return kilnCudaNotSupported(name);
  // Zero: row by row.
  for (Place *place : {&to, &from}) {
    place->pitch = place->pitch ? place->pitch : width;
    place->height = place->height ? place->height : height;
    if (place->pitch < width || place->height < height ||
        place->type < MemoryType::host || place->type > MemoryType::unified)
      return CUDA_ERROR_INVALID_VALUE;
  }
  CUresult result = driverCall(name, [&] {
    submit(stream, CopyWork{.to = to.address(),
                            .from = from.address(),
                            .toPitch = to.pitch,
                            .fromPitch = from.pitch,
                            .toSlice = to.pitch * to.height,
                            .fromSlice = from.pitch * from.height,
                            .width = width,
                            .height = height,
                            .depth = depth});
    return cudaSuccess;
  });
  return result == cudaSuccess && isWaiting ? cudaStreamSynchronize(stream)
                                            : result;
}

static CUresult copy(const char *name, const Copy2D *how, cudaStream_t stream,
                     bool isWaiting) {
  if (!how)
    return CUDA_ERROR_INVALID_VALUE;
  return copy(name,
              {how->toType, how->toHost, how->toDevice, how->toX, how->toY, 0,
               how->toPitch, 0},
              {how->fromType, how->fromHost, how->fromDevice, how->fromX,
               how->fromY, 0, how->fromPitch, 0},
              how->width, how->height, 1, stream, isWaiting);
}
KILN_CUDA CUresult cuMemcpy2D_v2(const Copy2D *how) {
  return copy("cuMemcpy2D", how, nullptr, true);
}
KILN_CUDA CUresult cuMemcpy2DUnaligned_v2(const Copy2D *how) {
  return copy("cuMemcpy2DUnaligned", how, nullptr, true);
}
KILN_CUDA CUresult cuMemcpy2DAsync_v2(const Copy2D *how, cudaStream_t stream) {
  return copy("cuMemcpy2DAsync", how, stream, false);
}

static CUresult copy(const char *name, const Copy3D *how, cudaStream_t stream,
                     bool isWaiting) {
  if (!how)
    return CUDA_ERROR_INVALID_VALUE;
  return copy(name,
              {how->toType, how->toHost, how->toDevice, how->toX, how->toY,
               how->toZ, how->toPitch, how->toHeight},
              {how->fromType, how->fromHost, how->fromDevice, how->fromX,
               how->fromY, how->fromZ, how->fromPitch, how->fromHeight},
              how->width, how->height, how->depth, stream, isWaiting);
}
KILN_CUDA CUresult cuMemcpy3D_v2(const Copy3D *how) {
  return copy("cuMemcpy3D", how, nullptr, true);
}
KILN_CUDA CUresult cuMemcpy3DAsync_v2(const Copy3D *how, cudaStream_t stream) {
  return copy("cuMemcpy3DAsync", how, stream, false);
}

KILN_CUDA CUresult cuMemcpyPeer(CUdeviceptr to, void *, CUdeviceptr from,
                                void *, std::size_t bytes) {
  constexpr int kDeviceToDevice = 3;
  return cudaMemcpy(reinterpret_cast<void *>(to),
                    reinterpret_cast<void *>(from), bytes, kDeviceToDevice);
}
KILN_CUDA CUresult cuMemcpyPeerAsync(CUdeviceptr to, void *, CUdeviceptr from,
                                     void *, std::size_t bytes,
                                     cudaStream_t stream) {
  constexpr int kDeviceToDevice = 3;
  return cudaMemcpyAsync(reinterpret_cast<void *>(to),
                         reinterpret_cast<void *>(from), bytes, kDeviceToDevice,
                         stream);
}

KILN_CUDA CUresult cuMemAllocPitch_v2(CUdeviceptr *address, std::size_t *pitch,
                                      std::size_t width, std::size_t height,
                                      unsigned elementBytes) {
  bool isSize = elementBytes == 4 || elementBytes == 8 || elementBytes == 16;
  if (!address || !pitch || !isSize || width == 0 || height == 0)
    return CUDA_ERROR_INVALID_VALUE;
  return cudaMallocPitch(reinterpret_cast<void **>(address), pitch, width,
                         height);
}

static CUresult fill(const char *name, CUdeviceptr to, std::size_t pitch,
                     std::uint32_t value, unsigned elementBytes,
                     std::size_t width, std::size_t height,
                     cudaStream_t stream) {
  return driverCall(name, [&] {
    if (width > 0)
      submit(stream, FillWork{.to = to,
                              .pitch = pitch,
                              .value = value,
                              .elementBytes = elementBytes,
                              .width = width,
                              .height = height});
    return cudaSuccess;
  });
}
#define KILN_FILL_2D(bits, type)                                               \
  KILN_CUDA CUresult cuMemsetD2D##bits##_v2(                                   \
      CUdeviceptr to, std::size_t pitch, type value, std::size_t width,        \
      std::size_t height) {                                                    \
    return fill("cuMemsetD2D" #bits, to, pitch, value, bits / 8, width,        \
                height, nullptr);                                              \
  }                                                                            \
  KILN_CUDA CUresult cuMemsetD2D##bits##Async(                                 \
      CUdeviceptr to, std::size_t pitch, type value, std::size_t width,        \
      std::size_t height, cudaStream_t stream) {                               \
    return fill("cuMemsetD2D" #bits "Async", to, pitch, value, bits / 8,       \
                width, height, stream);                                        \
  }
KILN_FILL_2D(8, unsigned char)
KILN_FILL_2D(16, unsigned short)
KILN_FILL_2D(32, unsigned)

// Hints, which change nothing here.
KILN_CUDA CUresult cuMemAdvise() { return cudaSuccess; }
KILN_CUDA CUresult cuMemAdvise_v2() { return cudaSuccess; }
KILN_CUDA CUresult cuMemPrefetchAsync() { return cudaSuccess; }
KILN_CUDA CUresult cuMemPrefetchAsync_v2() { return cudaSuccess; }
KILN_CUDA CUresult cuStreamAttachMemAsync() { return cudaSuccess; }

KILN_CUDA CUresult cuMemHostGetFlags(unsigned *flags, void *host) {
  return cudaHostGetFlags(flags, host);
}
KILN_CUDA CUresult cuStreamAddCallback(cudaStream_t stream,
                                       void (*function)(cudaStream_t, CUresult,
                                                        void *),
                                       void *data, unsigned flags) {
  return cudaStreamAddCallback(stream, function, data, flags);
}
KILN_CUDA CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute,
                                                void *value) {
  return cudaDeviceGetGraphMemAttribute(device, attribute, value);
}
KILN_CUDA CUresult cuDeviceSetGraphMemAttribute(CUdevice device, int attribute,
                                                void *value) {
  return cudaDeviceSetGraphMemAttribute(device, attribute, value);
}
