// MemPools: memory in the order of streams, and the pools that it is of.
#include "cudart/CudaError.h"
#include "cudart/Handles.h"
#include "cudart/MemPool.h"
#include "cudart/runtime/Call.h"
#include "cudart/runtime/GraphTypes.h"

using namespace kiln::cudart;

using cudaMemPool_t = MemPool *;

static MemPool &checked(cudaMemPool_t pool) {
  static_cast<void>(MemPool::standard());
  if (!pool || !Handles::get().has(pool, Handles::Kind::pool))
    throw CudaError(kInvalidValue, "the memory pool is none, or no longer");
  return *pool;
}

KILN_CUDA cudaError_t cudaMallocFromPoolAsync(void **pointer, std::size_t bytes,
                                              cudaMemPool_t pool,
                                              cudaStream_t stream) {
  return call("cudaMallocAsync", [&]() -> cudaError_t {
    if (!pointer)
      return cudaErrorInvalidValue;
    *pointer = nullptr;
    if (bytes == 0)
      return cudaSuccess;
    CudaStream *handle = streamHandleOf(stream);
    if (StreamCapture *capture = StreamCapture::of(handle)) {
      std::uint64_t address = Session::get().holdAddress(bytes);
      capture->add(handle, AllocWork{address, bytes});
      *pointer = reinterpret_cast<void *>(address);
      return cudaSuccess;
    }
    *pointer = reinterpret_cast<void *>(
        Session::get().allocate(bytes, &checked(pool)));
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaMallocFromPoolAsync, _ptsz)

KILN_CUDA cudaError_t cudaMallocAsync(void **pointer, std::size_t bytes,
                                      cudaStream_t stream) {
  return cudaMallocFromPoolAsync(pointer, bytes, MemPool::current(), stream);
}
KILN_CUDA_PER_THREAD(cudaMallocAsync, _ptsz)

KILN_CUDA cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream) {
  return call("cudaFreeAsync", [&]() -> cudaError_t {
    if (pointer)
      submit(stream, FreeWork{addressOf(pointer)});
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaFreeAsync, _ptsz)

/// Of the one device, in its own memory.
static bool isHere(const cudaMemLocation &location) {
  return location.type == 1 && location.id == 0;
}

KILN_CUDA cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool,
                                        const cudaMemPoolProps *properties) {
  return call("cudaMemPoolCreate", [&]() -> cudaError_t {
    constexpr int kPinned = 1;
    if (!pool || !properties || properties->allocType != kPinned)
      return cudaErrorInvalidValue;
    if (!isHere(properties->location))
      return properties->location.type == 1
                 ? static_cast<int>(cudaErrorInvalidDevice)
                 : kilnCudaNotSupported("cudaMemPoolCreate on the host");
    if (properties->handleTypes)
      return kilnCudaNotSupported("cudaMemPoolCreate with shareable handles");
    *pool = new MemPool;
    (*pool)->maxBytes = properties->maxSize;
    Handles::get().add(*pool, Handles::Kind::pool);
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return call("cudaMemPoolDestroy", [&]() -> cudaError_t {
    if (&checked(pool) == &MemPool::standard())
      return cudaErrorInvalidValue;
    if (MemPool::current() == pool)
      MemPool::current() = &MemPool::standard();
    // What was taken from it may be there yet: the numbers stay.
    Handles::get().remove(pool, Handles::Kind::pool);
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, int attribute,
                                              void *value) {
  return call("cudaMemPoolGetAttribute", [&]() -> cudaError_t {
    bool isKnown = value && checked(pool).get(attribute, value);
    return isKnown ? cudaSuccess : cudaErrorInvalidValue;
  });
}
KILN_CUDA cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, int attribute,
                                              void *value) {
  return call("cudaMemPoolSetAttribute", [&]() -> cudaError_t {
    bool isKnown = value && checked(pool).set(attribute, value);
    return isKnown ? cudaSuccess : cudaErrorInvalidValue;
  });
}
KILN_CUDA cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t bytes) {
  return call("cudaMemPoolTrimTo", [&] {
    checked(pool).trim(bytes);
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool,
                                           const cudaMemAccessDesc *list,
                                           std::size_t count) {
  return call("cudaMemPoolSetAccess", [&]() -> cudaError_t {
    constexpr int kReadWrite = 3;
    checked(pool);
    for (std::size_t i = 0; i < count; ++i)
      if (!isHere(list[i].location) || list[i].flags != kReadWrite)
        return cudaErrorInvalidDevice; // the owner's cannot be taken away
    return cudaSuccess;
  });
}
KILN_CUDA cudaError_t cudaMemPoolGetAccess(int *flags, cudaMemPool_t pool,
                                           cudaMemLocation *location) {
  return call("cudaMemPoolGetAccess", [&]() -> cudaError_t {
    checked(pool);
    if (!flags || !location)
      return cudaErrorInvalidValue;
    *flags = isHere(*location) ? 3 : 0;
    return cudaSuccess;
  });
}

/// One device, whose pool it is.
static cudaError_t givePool(cudaMemPool_t *pool, MemPool *which, bool isHere) {
  return call("cudaDeviceGetMemPool", [&]() -> cudaError_t {
    if (!pool)
      return cudaErrorInvalidValue;
    if (!isHere)
      return cudaErrorInvalidDevice;
    *pool = which;
    return cudaSuccess;
  });
}
KILN_CUDA cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool,
                                                  int device) {
  return givePool(pool, &MemPool::standard(), device == 0);
}
KILN_CUDA cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) {
  return givePool(pool, MemPool::current(), device == 0);
}
KILN_CUDA cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return call("cudaDeviceSetMemPool", [&]() -> cudaError_t {
    if (device != 0)
      return cudaErrorInvalidDevice;
    MemPool::current() = &checked(pool);
    return cudaSuccess;
  });
}
#if KILN_CUDART_MAJOR >= 13
KILN_CUDA cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *pool,
                                               cudaMemLocation *location, int) {
  return givePool(pool, &MemPool::standard(), location && isHere(*location));
}
KILN_CUDA cudaError_t cudaMemGetMemPool(cudaMemPool_t *pool,
                                        cudaMemLocation *location, int) {
  return givePool(pool, MemPool::current(), location && isHere(*location));
}
KILN_CUDA cudaError_t cudaMemSetMemPool(cudaMemLocation *location, int,
                                        cudaMemPool_t pool) {
  return cudaDeviceSetMemPool(location && isHere(*location) ? 0 : -1, pool);
}
#endif

// What graphs allocate.

/// By cudaGraphMemAttributeType: what a pool calls it; -1: nothing.
static int poolAttributeOf(int attribute) {
  constexpr int kUsed = 7, kUsedHigh = 8, kReserved = 5, kReservedHigh = 6;
  constexpr int kNames[] = {kUsed, kUsedHigh, kReserved, kReservedHigh};
  return attribute < 0 || attribute > 3 ? -1 : kNames[attribute];
}

static cudaError_t atGraphPool(const char *name, int device, int attribute,
                               const void *value, bool (*body)(int, void *)) {
  return call(name, [&]() -> cudaError_t {
    if (device != 0)
      return cudaErrorInvalidDevice;
    bool isKnown = value && body(poolAttributeOf(attribute),
                                 const_cast<void *>(value));
    return isKnown ? cudaSuccess : cudaErrorInvalidValue;
  });
}
KILN_CUDA cudaError_t cudaDeviceGetGraphMemAttribute(int device, int attribute,
                                                     void *value) {
  return atGraphPool("cudaDeviceGetGraphMemAttribute", device, attribute, value,
                     [](int one, void *to) {
                       return MemPool::graphs().get(one, to);
                     });
}
KILN_CUDA cudaError_t cudaDeviceSetGraphMemAttribute(int device, int attribute,
                                                     void *value) {
  return atGraphPool("cudaDeviceSetGraphMemAttribute", device, attribute, value,
                     [](int one, void *from) {
                       return MemPool::graphs().set(one, from);
                     });
}
KILN_CUDA cudaError_t cudaDeviceGraphMemTrim(int device) {
  if (device != 0)
    return noteError(cudaErrorInvalidDevice);
  MemPool::graphs().trim(0);
  return cudaSuccess;
}
