// Memory: of the device, of the host, and shared by both.
#include "cudart/runtime/Call.h"
#include "support/limits/MappedMemory.h"

using namespace kiln::cudart;
using Kind = Allocation::Kind;

KILN_CUDA cudaError_t cudaMalloc(void **pointer, std::size_t bytes) {
  return callOutsideCapture("cudaMalloc", [&]() -> cudaError_t {
    if (!pointer)
      return cudaErrorInvalidValue;
    *pointer = nullptr;
    if (bytes > 0)
      *pointer = reinterpret_cast<void *>(Session::get().allocate(bytes));
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaFree(void *pointer) {
  return callOutsideCapture("cudaFree", [&]() -> cudaError_t {
    Session &session = Session::get();
    session.device().synchronize();
    if (pointer &&
        !session.free(addressOf(pointer), {Kind::device, Kind::managed}))
      return cudaErrorInvalidValue;
    return cudaSuccess;
  });
}

static cudaError_t allocateHost(const char *name, void **pointer,
                                std::size_t bytes, Kind kind, unsigned flags) {
  return callOutsideCapture(name, [&]() -> cudaError_t {
    if (!pointer)
      return cudaErrorInvalidValue;
    *pointer = Session::get().allocateHost(bytes, kind, flags);
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaMallocManaged(void **pointer, std::size_t bytes,
                                        unsigned flags) {
  return allocateHost("cudaMallocManaged", pointer, bytes, Kind::managed,
                      flags);
}

KILN_CUDA cudaError_t cudaMallocHost(void **pointer, std::size_t bytes) {
  return allocateHost("cudaMallocHost", pointer, bytes, Kind::host, 0);
}

KILN_CUDA cudaError_t cudaHostAlloc(void **pointer, std::size_t bytes,
                                    unsigned flags) {
  return allocateHost("cudaHostAlloc", pointer, bytes, Kind::host, flags);
}

KILN_CUDA cudaError_t cudaFreeHost(void *pointer) {
  return callOutsideCapture("cudaFreeHost", [&]() -> cudaError_t {
    if (pointer && !Session::get().free(addressOf(pointer), {Kind::host}))
      return cudaErrorInvalidValue;
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaHostRegister(void *pointer, std::size_t bytes,
                                       unsigned flags) {
  return callOutsideCapture("cudaHostRegister", [&]() -> cudaError_t {
    bool isThere =
        pointer && bytes > 0 &&
        kiln::mappedBytes(pointer, bytes, kiln::MemoryUse::write) == bytes;
    if (!isThere)
      return cudaErrorInvalidValue;
    if (Session::get().find(addressOf(pointer)))
      return cudaErrorHostMemoryAlreadyRegistered;
    Session::get().registerHost(pointer, bytes, flags);
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaHostUnregister(void *pointer) {
  return callOutsideCapture("cudaHostUnregister", [&]() -> cudaError_t {
    return Session::get().free(addressOf(pointer), {Kind::registered})
               ? cudaSuccess
               : cudaErrorHostMemoryNotRegistered;
  });
}

KILN_CUDA cudaError_t cudaHostGetDevicePointer(void **device, void *host,
                                               unsigned) {
  return call("cudaHostGetDevicePointer", [&]() -> cudaError_t {
    auto found = Session::get().find(addressOf(host));
    if (!found || isOfDevice(found->kind))
      return cudaErrorInvalidValue;
    *device = host;
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaHostGetFlags(unsigned *flags, void *host) {
  return call("cudaHostGetFlags", [&]() -> cudaError_t {
    auto found = Session::get().find(addressOf(host));
    if (!found || isOfDevice(found->kind))
      return cudaErrorInvalidValue;
    *flags = found->flags;
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaPointerGetAttributes(
    cudaPointerAttributes *attributes, const void *pointer) {
  return call("cudaPointerGetAttributes", [&]() -> cudaError_t {
    *attributes = {};
    attributes->device = -1;
    auto found = Session::get().find(addressOf(pointer));
    auto *plain = const_cast<void *>(pointer);
    if (!found) {
      attributes->hostPointer = plain;
      return cudaSuccess;
    }
    attributes->device = 0;
    attributes->type = isOfDevice(found->kind)        ? 2
                       : found->kind == Kind::managed ? 3
                                                      : 1;
    attributes->devicePointer = plain;
    if (!isOfDevice(found->kind))
      attributes->hostPointer = plain;
    return cudaSuccess;
  });
}

/// Rows begin where hardware likes them to.
static constexpr std::size_t kPitchBytes = 512;

KILN_CUDA cudaError_t cudaMallocPitch(void **pointer, std::size_t *pitch,
                                      std::size_t width, std::size_t height) {
  std::size_t bytes = 0;
  if (!pitch || __builtin_add_overflow(width, kPitchBytes - 1, &bytes))
    return noteError(cudaErrorInvalidValue);
  *pitch = bytes / kPitchBytes * kPitchBytes;
  if (__builtin_mul_overflow(*pitch, height, &bytes))
    return noteError(cudaErrorMemoryAllocation);
  return cudaMalloc(pointer, bytes);
}

KILN_CUDA cudaError_t cudaMalloc3D(cudaPitchedPtr *pointer, cudaExtent extent) {
  std::size_t rows = 0;
  if (!pointer || __builtin_mul_overflow(extent.height, extent.depth, &rows))
    return noteError(cudaErrorInvalidValue);
  pointer->xsize = extent.width;
  pointer->ysize = extent.height;
  return cudaMallocPitch(&pointer->ptr, &pointer->pitch, extent.width,
                         rows);
}

KILN_CUDA cudaError_t cudaMemGetInfo(std::size_t *free, std::size_t *total) {
  return call("cudaMemGetInfo", [&] {
    auto bytes =
        static_cast<std::size_t>(Session::get().description().memory_bytes);
    *total = bytes;
    *free = bytes - bytes / 16;
    return cudaSuccess;
  });
}

// Hints about where memory should be: it is in one place.
KILN_CUDA cudaError_t cudaMemAdvise() { return cudaSuccess; }
KILN_CUDA cudaError_t cudaMemPrefetchAsync() { return cudaSuccess; }
KILN_CUDA_PER_THREAD(cudaMemPrefetchAsync, _ptsz)
KILN_CUDA cudaError_t cudaMemAdvise_v2() { return cudaSuccess; }
KILN_CUDA cudaError_t cudaMemPrefetchAsync_v2() { return cudaSuccess; }
KILN_CUDA cudaError_t cudaStreamAttachMemAsync() { return cudaSuccess; }
KILN_CUDA_PER_THREAD(cudaStreamAttachMemAsync, _ptsz)

namespace {
struct ChannelFormat { // cudaChannelFormatDesc
  int x, y, z, w, kind;
};
} // namespace

/// It only fills a structure; arrays, which it is for, are not supported.
KILN_CUDA ChannelFormat cudaCreateChannelDesc(int x, int y, int z, int w,
                                              int kind) {
  return {x, y, z, w, kind};
}
