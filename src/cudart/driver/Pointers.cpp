// Pointers: what an address of the device or of registered memory is.
#include "cudart/driver/Driver.h"

using namespace kiln::cudart;

namespace {
/// CU_POINTER_ATTRIBUTE_*, as far as there is an answer.
enum PointerAttribute : int {
  attributeContext = 1,
  attributeMemoryType = 2,
  attributeDevicePointer = 3,
  attributeHostPointer = 4,
  attributeSyncMemops = 6,
  attributeBufferId = 7,
  attributeIsManaged = 8,
  attributeOrdinal = 9,
  attributeIsIpcCapable = 10,
  attributeRangeStart = 11,
  attributeRangeSize = 12,
  attributeIsMapped = 13,
  attributeHandleTypes = 14,
  attributeIsRdmaCapable = 15,
  attributeAccessFlags = 16,
};
} // namespace

template <typename T> static CUresult give(void *data, T value) {
  *static_cast<T *>(data) = value;
  return cudaSuccess;
}

/// Of memory that the device knows.
static CUresult giveAttribute(void *data, int attribute,
                              const Allocation &allocation,
                              CUdeviceptr address) {
  bool isOfHost = allocation.kind != Allocation::Kind::device;
  bool isManaged = allocation.kind == Allocation::Kind::managed;
  constexpr unsigned kHost = 1, kDevice = 2, kReadWrite = 3;
  switch (attribute) {
  case attributeContext:
    return giveContext(static_cast<void **>(data));
  case attributeMemoryType:
    return give(data, isOfHost && !isManaged ? kHost : kDevice);
  case attributeDevicePointer:
    return give(data, address);
  case attributeHostPointer:
    if (!isOfHost)
      return CUDA_ERROR_INVALID_VALUE;
    return give(data, address);
  case attributeBufferId:
    // As good a number as any: no two allocations begin at one address.
    return give<unsigned long long>(data, allocation.buffer.address());
  case attributeIsManaged:
    return give<unsigned>(data, isManaged);
  case attributeOrdinal:
    return give<int>(data, 0);
  case attributeRangeStart:
    return give<CUdeviceptr>(data, allocation.buffer.address());
  case attributeRangeSize:
    return give<std::size_t>(data, allocation.buffer.bytes());
  case attributeIsMapped:
    return give<unsigned>(data, 1);
  case attributeSyncMemops: // every copy is waited for
    return give<unsigned>(data, 1);
  case attributeIsIpcCapable:
  case attributeHandleTypes:
  case attributeIsRdmaCapable:
    return give<unsigned>(data, 0);
  case attributeAccessFlags:
    return give<unsigned>(data, kReadWrite);
  default:
    return CUDA_ERROR_NOT_SUPPORTED;
  }
}

KILN_CUDA CUresult cuPointerGetAttribute(void *data, int attribute,
                                         CUdeviceptr address) {
  return driverCall("cuPointerGetAttribute", [&]() -> CUresult {
    std::optional<Allocation> found = Session::get().find(address);
    if (!data || !found)
      return CUDA_ERROR_INVALID_VALUE;
    return giveAttribute(data, attribute, *found, address);
  });
}

/// Null, 0 or false, in as many bytes as the attribute has.
static CUresult giveNothing(void *data, int attribute) {
  switch (attribute) {
  case attributeContext:
  case attributeDevicePointer:
  case attributeHostPointer:
  case attributeBufferId:
  case attributeRangeStart:
  case attributeRangeSize:
  case attributeHandleTypes:
    return give<unsigned long long>(data, 0);
  case attributeOrdinal:
    return give<int>(data, -2); // as CUDA: no device
  default:
    return give<unsigned>(data, 0);
  }
}

/// Unlike the function for one, this is no error where the address is unknown.
KILN_CUDA CUresult cuPointerGetAttributes(unsigned count, const int *attributes,
                                          void **data, CUdeviceptr address) {
  return driverCall("cuPointerGetAttributes", [&]() -> CUresult {
    if (count == 0 || !attributes || !data)
      return CUDA_ERROR_INVALID_VALUE;
    std::optional<Allocation> found = Session::get().find(address);
    for (unsigned i = 0; i < count; ++i) {
      CUresult error =
          found ? giveAttribute(data[i], attributes[i], *found, address)
                : giveNothing(data[i], attributes[i]);
      if (error == CUDA_ERROR_INVALID_VALUE) // of memory without a host pointer
        error = giveNothing(data[i], attributes[i]);
      if (error)
        return error;
    }
    return cudaSuccess;
  });
}

KILN_CUDA CUresult cuMemGetAddressRange_v2(CUdeviceptr *base,
                                           std::size_t *bytes,
                                           CUdeviceptr address) {
  return driverCall("cuMemGetAddressRange", [&]() -> CUresult {
    std::optional<Allocation> found = Session::get().find(address);
    if (!found)
      return CUDA_ERROR_NOT_FOUND;
    if (base)
      *base = found->buffer.address();
    if (bytes)
      *bytes = found->buffer.bytes();
    return cudaSuccess;
  });
}
KILN_CUDA_PLAIN(cuMemGetAddressRange, _v2)
