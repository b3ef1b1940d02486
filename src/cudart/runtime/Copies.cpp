// Copies: between any two places, in one, two and three dimensions, and sets.
#include "cudart/runtime/Call.h"

using namespace kiln::cudart;

/// Whether a copy of that kind is one between these two places.
static bool isDirection(cudaMemcpyKind kind, const void *to, const void *from) {
  if (kind < 0 || kind > 4)
    return false;
  auto isDevice = [](const void *pointer) {
    auto found = Session::get().find(addressOf(pointer));
    return found && found->kind == Allocation::Kind::device;
  };
  bool toDevice = kind == 1 || kind == 3, fromDevice = kind == 2 || kind == 3;
  if (kind == 4)
    return true;
  // Memory that both share may be called either.
  return (toDevice || !isDevice(to)) && (fromDevice || !isDevice(from));
}

/// Copy rows; a copy in one dimension is one row.
static void copyRows(void *to, std::size_t toPitch, const void *from,
                     std::size_t fromPitch, std::size_t width,
                     std::size_t height, const kiln::Stream &stream) {
  kiln::Device &device = Session::get().device();
  if (width == 0)
    return;
  for (std::size_t row = 0; row < height; ++row)
    device.enqueue_copy(addressOf(to) + row * toPitch,
                        addressOf(from) + row * fromPitch, width, stream);
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
    copyRows(to, toPitch, from, fromPitch, width, height, streamOf(stream));
    if (!isAsync)
      Session::get().device().synchronize(streamOf(stream));
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaMemcpy(void *to, const void *from, std::size_t bytes,
                                 cudaMemcpyKind kind) {
  return copy2D("cudaMemcpy", to, bytes, from, bytes, bytes, 1, kind, nullptr,
                false);
}
KILN_CUDA_ALSO(cudaMemcpy, _ptds)

KILN_CUDA cudaError_t cudaMemcpyAsync(void *to, const void *from,
                                      std::size_t bytes, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
  return copy2D("cudaMemcpyAsync", to, bytes, from, bytes, bytes, 1, kind,
                stream, true);
}
KILN_CUDA_ALSO(cudaMemcpyAsync, _ptsz)

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
KILN_CUDA_ALSO(cudaMemcpy2D, _ptds)

KILN_CUDA cudaError_t cudaMemcpy2DAsync(void *to, std::size_t toPitch,
                                        const void *from, std::size_t fromPitch,
                                        std::size_t width, std::size_t height,
                                        cudaMemcpyKind kind,
                                        cudaStream_t stream) {
  return copy2D("cudaMemcpy2DAsync", to, toPitch, from, fromPitch, width,
                height, kind, stream, true);
}
KILN_CUDA_ALSO(cudaMemcpy2DAsync, _ptsz)

KILN_CUDA cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *copy,
                                        cudaStream_t stream) {
  return call("cudaMemcpy3DAsync", [&]() -> cudaError_t {
    if (copy->srcArray || copy->dstArray)
      return cudaErrorNotSupported;
    auto at = [](const cudaPitchedPtr &base, const cudaPos &position,
                 std::size_t slice) {
      return static_cast<char *>(base.ptr) + position.x +
             base.pitch * (position.y + base.ysize * (position.z + slice));
    };
    for (std::size_t slice = 0; slice < copy->extent.depth; ++slice)
      copyRows(at(copy->dstPtr, copy->dstPos, slice), copy->dstPtr.pitch,
               at(copy->srcPtr, copy->srcPos, slice), copy->srcPtr.pitch,
               copy->extent.width, copy->extent.height, streamOf(stream));
    return cudaSuccess;
  });
}
KILN_CUDA_ALSO(cudaMemcpy3DAsync, _ptsz)

static cudaError_t finish(cudaError_t error) {
  return error != cudaSuccess ? error : call("a copy", [&] {
    Session::get().device().synchronize(streamOf(nullptr));
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *copy) {
  return finish(cudaMemcpy3DAsync(copy, nullptr));
}
KILN_CUDA_ALSO(cudaMemcpy3D, _ptds)

// Sets.

KILN_CUDA cudaError_t cudaMemsetAsync(void *to, int value, std::size_t bytes,
                                      cudaStream_t stream) {
  return call("cudaMemsetAsync", [&] {
    if (bytes > 0)
      Session::get().device().enqueue_fill(addressOf(to),
                                           static_cast<std::uint8_t>(value), 1,
                                           bytes, streamOf(stream));
    return cudaSuccess;
  });
}
KILN_CUDA_ALSO(cudaMemsetAsync, _ptsz)

KILN_CUDA cudaError_t cudaMemset(void *to, int value, std::size_t bytes) {
  return cudaMemsetAsync(to, value, bytes, nullptr);
}
KILN_CUDA_ALSO(cudaMemset, _ptds)

KILN_CUDA cudaError_t cudaMemset2DAsync(void *to, std::size_t pitch, int value,
                                        std::size_t width, std::size_t height,
                                        cudaStream_t stream) {
  for (std::size_t row = 0; row < height; ++row)
    if (cudaError_t error = cudaMemsetAsync(
            static_cast<char *>(to) + row * pitch, value, width, stream))
      return error;
  return cudaSuccess;
}
KILN_CUDA_ALSO(cudaMemset2DAsync, _ptsz)

KILN_CUDA cudaError_t cudaMemset2D(void *to, std::size_t pitch, int value,
                                   std::size_t width, std::size_t height) {
  return cudaMemset2DAsync(to, pitch, value, width, height, nullptr);
}
KILN_CUDA_ALSO(cudaMemset2D, _ptds)

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
KILN_CUDA_ALSO(cudaMemset3DAsync, _ptsz)

KILN_CUDA cudaError_t cudaMemset3D(cudaPitchedPtr to, int value,
                                   cudaExtent extent) {
  return cudaMemset3DAsync(to, value, extent, nullptr);
}
KILN_CUDA_ALSO(cudaMemset3D, _ptds)

// Variables.

/// Where a variable of the program lies; null: it is none.
static void *findSymbol(const void *symbol, std::size_t *bytes) {
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
    if (isTo)
      copyRows(address + offset, 0, other, 0, bytes, 1, streamOf(stream));
    else
      copyRows(other, 0, address + offset, 0, bytes, 1, streamOf(stream));
    if (!isAsync)
      Session::get().device().synchronize(streamOf(stream));
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from,
                                         std::size_t bytes, std::size_t offset,
                                         cudaMemcpyKind) {
  return copySymbol("cudaMemcpyToSymbol", symbol, offset, bytes,
                    const_cast<void *>(from), true, nullptr, false);
}
KILN_CUDA_ALSO(cudaMemcpyToSymbol, _ptds)

KILN_CUDA cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol,
                                           std::size_t bytes,
                                           std::size_t offset, cudaMemcpyKind) {
  return copySymbol("cudaMemcpyFromSymbol", symbol, offset, bytes, to, false,
                    nullptr, false);
}
KILN_CUDA_ALSO(cudaMemcpyFromSymbol, _ptds)

KILN_CUDA cudaError_t cudaMemcpyToSymbolAsync(
    const void *symbol, const void *from, std::size_t bytes, std::size_t offset,
    cudaMemcpyKind, cudaStream_t stream) {
  return copySymbol("cudaMemcpyToSymbolAsync", symbol, offset, bytes,
                    const_cast<void *>(from), true, stream, true);
}
KILN_CUDA_ALSO(cudaMemcpyToSymbolAsync, _ptsz)

KILN_CUDA cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol,
                                                std::size_t bytes,
                                                std::size_t offset,
                                                cudaMemcpyKind,
                                                cudaStream_t stream) {
  return copySymbol("cudaMemcpyFromSymbolAsync", symbol, offset, bytes, to,
                    false, stream, true);
}
KILN_CUDA_ALSO(cudaMemcpyFromSymbolAsync, _ptsz)
