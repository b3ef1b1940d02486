// Memory: of the device, of the host, and shared by both.
#include "mgpu/Call.h"

using namespace kiln;
using namespace kiln::mgpu;
using Kind = cudart::Allocation::Kind;

static std::uint64_t addressOf(const void *pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

KILN_MGPU void mgpuSetDefaultDevice(std::int32_t device) {
  attempt("mgpuSetDefaultDevice", [&] {
    if (device != 0)
      userError("there is no device {}; Kiln has one, number 0", device);
  });
}

KILN_MGPU void *mgpuMemAlloc(std::uint64_t bytes, MgpuStream *,
                             bool isHostShared) {
  if (bytes == 0)
    return nullptr;
  auto *memory = attempt<void *>("mgpuMemAlloc", nullptr, [&]() -> void * {
    if (isHostShared)
      return session().allocateHost(bytes, Kind::managed, 0);
    return reinterpret_cast<void *>(session().allocate(bytes));
  });
  // The host's next step is to use it.
  if (!memory && isHostShared)
    end();
  return memory;
}

KILN_MGPU void mgpuMemFree(void *memory, MgpuStream *) {
  attempt("mgpuMemFree", [&] {
    if (!memory)
      return;
    session().device().synchronize();
    if (!session().free(addressOf(memory), {Kind::device, Kind::managed}))
      userError("{} is not the address of memory that mgpuMemAlloc gave",
                memory);
  });
}

/// Refuse an address that a failed allocation has left.
static void checkAddress(const void *address, std::size_t bytes) {
  if (!address)
    userError("{} bytes at address 0 are not memory", bytes);
}

KILN_MGPU void mgpuMemcpy(void *to, void *from, std::size_t bytes,
                          MgpuStream *stream) {
  attempt("mgpuMemcpy", [&] {
    if (bytes == 0 || isBroken())
      return;
    checkAddress(to, bytes);
    checkAddress(from, bytes);
    session().device().enqueue_copy(addressOf(to), addressOf(from), bytes,
                                    streamOf(stream));
  });
}

static void fill(const char *name, void *to, std::uint32_t value,
                 int elementBytes, std::size_t count, MgpuStream *stream) {
  attempt(name, [&] {
    if (count == 0 || isBroken())
      return;
    checkAddress(to, count * static_cast<std::size_t>(elementBytes));
    session().device().enqueue_fill(addressOf(to), value, elementBytes, count,
                                    streamOf(stream));
  });
}

KILN_MGPU void mgpuMemset32(void *to, std::uint32_t value, std::size_t count,
                            MgpuStream *stream) {
  fill("mgpuMemset32", to, value, 4, count, stream);
}

KILN_MGPU void mgpuMemset16(void *to, std::uint16_t value, std::size_t count,
                            MgpuStream *stream) {
  fill("mgpuMemset16", to, value, 2, count, stream);
}

KILN_MGPU void mgpuMemHostRegisterMemRef(std::int64_t rank, Memref *memref,
                                         std::int64_t elementBytes) {
  attempt("mgpuMemHostRegisterMemRef", [&] {
    std::int64_t dense = 1;
    for (std::int64_t axis = rank; axis-- > 0;) {
      if (memref->size(axis) != 1 && memref->stride(rank, axis) != dense)
        userError("the memref is not dense: dimension {} has a stride of {} "
                  "elements instead of {}; register the whole of it",
                  axis, memref->stride(rank, axis), dense);
      dense *= memref->size(axis);
    }
    if (dense > 0)
      session().registerHost(memref->aligned + memref->offset * elementBytes,
                             static_cast<std::size_t>(dense * elementBytes), 0);
  });
}

KILN_MGPU void mgpuMemHostUnregisterMemRef(std::int64_t rank, Memref *memref,
                                           std::int64_t elementBytes) {
  attempt("mgpuMemHostUnregisterMemRef", [&] {
    for (std::int64_t axis = 0; axis < rank; ++axis)
      if (memref->size(axis) == 0)
        return;
    session().device().synchronize();
    void *data = memref->aligned + memref->offset * elementBytes;
    if (!session().free(addressOf(data), {Kind::registered}))
      userError("the memory at {} is not registered", data);
  });
}
