// Copies: between any two places, in one, two and three dimensions, and sets.
#include "cudart/CudaError.h"
#include "cudart/runtime/Call.h"

using namespace kiln::cudart;

/// Whether a copy of that kind is one between these two places.
static bool isDirection(cudaMemcpyKind kind, const void *to, const void *from) {
  if (kind < 0 || kind > 4)
    return false;
  auto isDevice = [](const void *pointer) {
    auto found = Session::get().find(addressOf(pointer));
    return found && isOfDevice(found->kind);
  };
  bool toDevice = kind == 1 || kind == 3, fromDevice = kind == 2 || kind == 3;
  if (kind == 4)
    return true;
  // Memory that both share may be called either.
  return (toDevice || !isDevice(to)) && (fromDevice || !isDevice(from));
}

static CopyWork copyOf(void *to, std::size_t toPitch, const void *from,
                       std::size_t fromPitch, std::size_t width,
                       std::size_t height) {
  return {.to = addressOf(to),
          .from = addressOf(from),
          .toPitch = toPitch,
          .fromPitch = fromPitch,
          .width = width,
          .height = height};
}

CopyWork kiln::cudart::copyOf(const cudaMemcpy3DParms &copy) {
  if (copy.srcArray || copy.dstArray)
    throw CudaError(kNotSupported, "copies of CUDA arrays are not supported");
  auto at = [](const cudaPitchedPtr &base, const cudaPos &position) {
    return addressOf(base.ptr) + position.x +
           base.pitch * (position.y + base.ysize * position.z);
  };
  return {.to = at(copy.dstPtr, copy.dstPos),
          .from = at(copy.srcPtr, copy.srcPos),
          .toPitch = copy.dstPtr.pitch,
          .fromPitch = copy.srcPtr.pitch,
          .toSlice = copy.dstPtr.pitch * copy.dstPtr.ysize,
          .fromSlice = copy.srcPtr.pitch * copy.srcPtr.ysize,
          .width = copy.extent.width,
          .height = copy.extent.height,
          .depth = copy.extent.depth};
}

/// Put it into the stream; a call that is not asynchronous waits for it.
static void copyInStream(const CopyWork &work,
                         cudaStream_t stream, bool isAsync) {
  if (!isAsync)
    StreamCapture::checkPermitted();
  submit(stream, work);
  if (!isAsync)
    Session::get().device().synchronize(streamOf(stream));
}

static cudaError_t copy2D(const char *name, void *to, std::size_t toPitch,
                          const void *from, std::size_t fromPitch,
                          std::size_t width, std::size_t height,
                          cudaMemcpyKind kind, cudaStream_t stream,
                          bool isAsync) {
  return call(name, [&]() -> cudaError_t {
    if (!isDirection(kind, to, from))
      return cudaErrorInvalidMemcpyDirection;
    if (height > 1 && (width > toPitch || width > fromPitch))
      return cudaErrorInvalidPitchValue;
    copyInStream(copyOf(to, toPitch, from, fromPitch, width, height),
                 stream, isAsync);
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaMemcpy(void *to, const void *from, std::size_t bytes,
                                 cudaMemcpyKind kind) {
  return copy2D("cudaMemcpy", to, bytes, from, bytes, bytes, 1, kind, nullptr,
                false);
}
KILN_CUDA_PER_THREAD(cudaMemcpy, _ptds)

KILN_CUDA cudaError_t cudaMemcpyAsync(void *to, const void *from,
                                      std::size_t bytes, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
  return copy2D("cudaMemcpyAsync", to, bytes, from, bytes, bytes, 1, kind,
                stream, true);
}
KILN_CUDA_PER_THREAD(cudaMemcpyAsync, _ptsz)

KILN_CUDA cudaError_t cudaMemcpyPeer(void *to, int, const void *from, int,
                                     std::size_t bytes) {
  return cudaMemcpy(to, from, bytes, 4);
}
KILN_CUDA cudaError_t cudaMemcpyPeerAsync(void *to, int, const void *from, int,
                                          std::size_t bytes,
                                          cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, 4, stream);
}

KILN_CUDA cudaError_t cudaMemcpy2D(void *to, std::size_t toPitch,
                                   const void *from, std::size_t fromPitch,
                                   std::size_t width, std::size_t height,
                                   cudaMemcpyKind kind) {
  return copy2D("cudaMemcpy2D", to, toPitch, from, fromPitch, width, height,
                kind, nullptr, false);
}
KILN_CUDA_PER_THREAD(cudaMemcpy2D, _ptds)

KILN_CUDA cudaError_t cudaMemcpy2DAsync(void *to, std::size_t toPitch,
                                        const void *from, std::size_t fromPitch,
                                        std::size_t width, std::size_t height,
                                        cudaMemcpyKind kind,
                                        cudaStream_t stream) {
  return copy2D("cudaMemcpy2DAsync", to, toPitch, from, fromPitch, width,
                height, kind, stream, true);
}
KILN_CUDA_PER_THREAD(cudaMemcpy2DAsync, _ptsz)

KILN_CUDA cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *copy,
                                        cudaStream_t stream) {
  return call("cudaMemcpy3DAsync", [&]() -> cudaError_t {
    if (!copy)
      return cudaErrorInvalidValue;
    submit(stream, copyOf(*copy));
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaMemcpy3DAsync, _ptsz)

static cudaError_t finish(cudaError_t error) {
  return error != cudaSuccess ? error : callOutsideCapture("a copy", [&] {
    Session::get().device().synchronize(streamOf(nullptr));
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *copy) {
  return finish(cudaMemcpy3DAsync(copy, nullptr));
}
KILN_CUDA_PER_THREAD(cudaMemcpy3D, _ptds)

// Sets.

KILN_CUDA cudaError_t cudaMemsetAsync(void *to, int value, std::size_t bytes,
                                      cudaStream_t stream) {
  return call("cudaMemsetAsync", [&] {
    if (bytes > 0)
      submit(stream, FillWork{.to = addressOf(to),
                              .pitch = bytes,
                              .value = static_cast<std::uint8_t>(value),
                              .width = bytes});
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaMemsetAsync, _ptsz)

KILN_CUDA cudaError_t cudaMemset(void *to, int value, std::size_t bytes) {
  return cudaMemsetAsync(to, value, bytes, nullptr);
}
KILN_CUDA_PER_THREAD(cudaMemset, _ptds)

KILN_CUDA cudaError_t cudaMemset2DAsync(void *to, std::size_t pitch, int value,
                                        std::size_t width, std::size_t height,
                                        cudaStream_t stream) {
  return call("cudaMemset2DAsync", [&]() -> cudaError_t {
    if (height > 1 && width > pitch)
      return cudaErrorInvalidPitchValue;
    submit(stream, FillWork{.to = addressOf(to),
                            .pitch = pitch,
                            .value = static_cast<std::uint8_t>(value),
                            .width = width,
                            .height = height});
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaMemset2DAsync, _ptsz)

KILN_CUDA cudaError_t cudaMemset2D(void *to, std::size_t pitch, int value,
                                   std::size_t width, std::size_t height) {
  return cudaMemset2DAsync(to, pitch, value, width, height, nullptr);
}
KILN_CUDA_PER_THREAD(cudaMemset2D, _ptds)

KILN_CUDA cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value,
                                        cudaExtent extent,
                                        cudaStream_t stream) {
  for (std::size_t slice = 0; slice < extent.depth; ++slice)
    if (cudaError_t error = cudaMemset2DAsync(
            static_cast<char *>(to.ptr) + slice * to.pitch * to.ysize, to.pitch,
            value, extent.width, extent.height, stream))
      return error;
  return cudaSuccess;
}
KILN_CUDA_PER_THREAD(cudaMemset3DAsync, _ptsz)

KILN_CUDA cudaError_t cudaMemset3D(cudaPitchedPtr to, int value,
                                   cudaExtent extent) {
  return cudaMemset3DAsync(to, value, extent, nullptr);
}
KILN_CUDA_PER_THREAD(cudaMemset3D, _ptds)

// Variables.

void *kiln::cudart::findSymbol(const void *symbol, std::size_t *bytes) {
  Variable *variable = Session::get().findVariable(symbol);
  if (!variable)
    return nullptr;
  kiln::Buffer buffer = variable->module->get().variable(variable->name);
  *bytes = buffer.bytes();
  return reinterpret_cast<void *>(buffer.address());
}

KILN_CUDA cudaError_t cudaGetSymbolAddress(void **address, const void *symbol) {
  return call("cudaGetSymbolAddress", [&]() -> cudaError_t {
    std::size_t bytes = 0;
    *address = findSymbol(symbol, &bytes);
    return *address ? cudaSuccess : cudaErrorInvalidSymbol;
  });
}

KILN_CUDA cudaError_t cudaGetSymbolSize(std::size_t *bytes,
                                        const void *symbol) {
  return call("cudaGetSymbolSize", [&]() -> cudaError_t {
    return findSymbol(symbol, bytes) ? cudaSuccess : cudaErrorInvalidSymbol;
  });
}

static cudaError_t copySymbol(const char *name, const void *symbol,
                              std::size_t offset, std::size_t bytes,
                              void *other, bool isTo, cudaStream_t stream,
                              bool isAsync) {
  return call(name, [&]() -> cudaError_t {
    std::size_t size = 0;
    auto *address = static_cast<char *>(findSymbol(symbol, &size));
    if (!address)
      return cudaErrorInvalidSymbol;
    if (offset > size || bytes > size - offset)
      return cudaErrorInvalidValue;
    copyInStream(
                 isTo ? copyOf(address + offset, 0, other, 0, bytes, 1)
                      : copyOf(other, 0, address + offset, 0, bytes, 1),
                 stream, isAsync);
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from,
                                         std::size_t bytes, std::size_t offset,
                                         cudaMemcpyKind) {
  return copySymbol("cudaMemcpyToSymbol", symbol, offset, bytes,
                    const_cast<void *>(from), true, nullptr, false);
}
KILN_CUDA_PER_THREAD(cudaMemcpyToSymbol, _ptds)

KILN_CUDA cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol,
                                           std::size_t bytes,
                                           std::size_t offset, cudaMemcpyKind) {
  return copySymbol("cudaMemcpyFromSymbol", symbol, offset, bytes, to, false,
                    nullptr, false);
}
KILN_CUDA_PER_THREAD(cudaMemcpyFromSymbol, _ptds)

KILN_CUDA cudaError_t cudaMemcpyToSymbolAsync(
    const void *symbol, const void *from, std::size_t bytes, std::size_t offset,
    cudaMemcpyKind, cudaStream_t stream) {
  return copySymbol("cudaMemcpyToSymbolAsync", symbol, offset, bytes,
                    const_cast<void *>(from), true, stream, true);
}
KILN_CUDA_PER_THREAD(cudaMemcpyToSymbolAsync, _ptsz)

KILN_CUDA cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol,
                                                std::size_t bytes,
                                                std::size_t offset,
                                                cudaMemcpyKind,
                                                cudaStream_t stream) {
  return copySymbol("cudaMemcpyFromSymbolAsync", symbol, offset, bytes, to,
                    false, stream, true);
}
KILN_CUDA_PER_THREAD(cudaMemcpyFromSymbolAsync, _ptsz)
