// VirtualMemory: addresses that are reserved, memory that is mapped there
// (cuMemAddressReserve, cuMemCreate, cuMemMap).
//
// Both are the host's: a range of addresses that nobody can touch, a file in
// memory for each allocation, which may be mapped at several addresses. What is
// mapped side by side is one buffer to kernels, as programs that grow a tensor
// in place want it. Its bytes count as written.
#include "cudart/driver/Driver.h"
#include "cudart/graph/StreamCapture.h"

#include <algorithm>
#include <map>
#include <memory>
#include <sys/mman.h>
#include <unistd.h>

using namespace kiln::cudart;

namespace {

struct Location {
  int type, id;
};
struct Properties { // CUmemAllocationProp
  int type, handleTypes;
  Location location;
  void *win32;
  unsigned char flags[8];
};
struct Access { // CUmemAccessDesc
  Location location;
  int flags;
};

/// Memory of cuMemCreate: it lives while it has a handle or is mapped.
struct Block {
  int file;
  std::size_t bytes;
  Properties properties;
  std::uint64_t handles = 1;
  ~Block() { ::close(file); }
};

struct Mapping {
  std::shared_ptr<Block> block;
  std::size_t bytes;
  bool isAccessible = false;
};

/// What the process has of all this.
struct Space {
  std::mutex mutex;
  std::map<std::uint64_t, std::size_t> reserved;
  std::map<std::uint64_t, Mapping> mapped;
  std::map<Block *, std::shared_ptr<Block>> blocks; ///< those with handles
  std::map<std::uint64_t, std::size_t> buffers;     ///< as kernels see it
};

constexpr std::size_t kGranularity = 2 << 20;
constexpr int kReadWrite = 3;

} // namespace

static Space &space() {
  static auto *one = new Space; // NOLINT: never destroyed
  return *one;
}

template <typename Work>
static CUresult inSpace(const char *name, const Work &work) {
  return driverCall(name, [&]() -> cudaError_t {
    StreamCapture::checkPermitted();
    std::lock_guard lock(space().mutex);
    return work(space());
  });
}

static bool isRound(std::uint64_t bytes) {
  return bytes && bytes % kGranularity == 0;
}

/// The range that holds so many bytes; null: none does.
static bool isReserved(const Space &all, std::uint64_t address,
                       std::size_t bytes) {
  auto above = all.reserved.upper_bound(address);
  if (above == all.reserved.begin())
    return false;
  auto [base, size] = *std::prev(above);
  return address - base <= size && bytes <= size - (address - base);
}

KILN_CUDA CUresult cuMemGetAllocationGranularity(std::size_t *bytes,
                                                 const Properties *properties,
                                                 int) {
  if (!bytes || !properties)
    return CUDA_ERROR_INVALID_VALUE;
  *bytes = kGranularity;
  return cudaSuccess;
}

KILN_CUDA CUresult cuMemAddressReserve(CUdeviceptr *address, std::size_t bytes,
                                       std::size_t alignment, CUdeviceptr,
                                       unsigned long long flags) {
  return inSpace("cuMemAddressReserve", [&](Space &all) -> CUresult {
    if (!address || !isRound(bytes) || flags || alignment & (alignment - 1))
      return CUDA_ERROR_INVALID_VALUE;
    alignment = std::max(alignment, kGranularity);
    std::size_t room = 0;
    if (__builtin_add_overflow(bytes, alignment, &room))
      return cudaErrorMemoryAllocation;
    void *base = ::mmap(nullptr, room, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
      return cudaErrorMemoryAllocation;
    // What lies before and behind it goes back.
    auto begin = reinterpret_cast<std::uint64_t>(base);
    std::uint64_t first = (begin + alignment - 1) / alignment * alignment;
    if (first > begin)
      ::munmap(base, first - begin);
    if (std::uint64_t end = begin + room; end > first + bytes)
      ::munmap(reinterpret_cast<void *>(first + bytes), end - first - bytes);
    all.reserved[*address = first] = bytes;
    return cudaSuccess;
  });
}

KILN_CUDA CUresult cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
  return inSpace("cuMemAddressFree", [&](Space &all) -> CUresult {
    auto found = all.reserved.find(address);
    auto inside = all.mapped.lower_bound(address);
    if (found == all.reserved.end() || found->second != bytes ||
        (inside != all.mapped.end() && inside->first < address + bytes))
      return CUDA_ERROR_INVALID_VALUE;
    ::munmap(reinterpret_cast<void *>(address), bytes);
    all.reserved.erase(found);
    return cudaSuccess;
  });
}

KILN_CUDA CUresult cuMemCreate(Block **handle, std::size_t bytes,
                               const Properties *properties,
                               unsigned long long flags) {
  return inSpace("cuMemCreate", [&](Space &all) -> CUresult {
    constexpr int kPinned = 1, kDevice = 1;
    if (!handle || !properties || flags || !isRound(bytes) ||
        properties->type != kPinned)
      return CUDA_ERROR_INVALID_VALUE;
    if (properties->location.type != kDevice || properties->handleTypes)
      return kilnCudaNotSupported("cuMemCreate on the host, or shareable");
    if (properties->location.id != 0)
      return CUDA_ERROR_INVALID_DEVICE;
    int file = ::memfd_create("kiln-device-memory", MFD_CLOEXEC);
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) {
      ::close(file);
      return cudaErrorMemoryAllocation;
    }
    std::shared_ptr<Block> block(new Block{file, bytes, *properties});
    all.blocks[block.get()] = block;
    *handle = block.get();
    return cudaSuccess;
  });
}

KILN_CUDA CUresult cuMemRelease(Block *handle) {
  return inSpace("cuMemRelease", [&](Space &all) -> CUresult {
    auto found = all.blocks.find(handle);
    if (found == all.blocks.end())
      return CUDA_ERROR_INVALID_VALUE;
    if (--found->second->handles == 0)
      all.blocks.erase(found);
    return cudaSuccess;
  });
}

/// Let kernels see what is mapped and accessible now; what lies side by side is
/// one buffer.
static void showMapped(Space &all) {
  std::map<std::uint64_t, std::size_t> wanted;
  for (const auto &[address, mapping] : all.mapped) {
    if (!mapping.isAccessible)
      continue;
    auto last = wanted.empty() ? wanted.end() : std::prev(wanted.end());
    if (last != wanted.end() && last->first + last->second == address &&
        isReserved(all, last->first, last->second + mapping.bytes))
      last->second += mapping.bytes;
    else
      wanted[address] = mapping.bytes;
  }
  Session &session = Session::get();
  for (const auto &[address, bytes] : all.buffers)
    if (auto found = wanted.find(address);
        found == wanted.end() || found->second != bytes)
      session.free(address, {Allocation::Kind::mapped});
  for (const auto &[address, bytes] : wanted)
    if (!session.isAllocated(address))
      session.addMapped(reinterpret_cast<void *>(address), bytes);
  all.buffers = std::move(wanted);
}

KILN_CUDA CUresult cuMemMap(CUdeviceptr address, std::size_t bytes,
                            std::size_t offset, Block *handle,
                            unsigned long long flags) {
  return inSpace("cuMemMap", [&](Space &all) -> CUresult {
    auto found = all.blocks.find(handle);
    if (found == all.blocks.end() || flags || offset || !isRound(bytes) ||
        address % kGranularity || bytes != found->second->bytes ||
        !isReserved(all, address, bytes))
      return CUDA_ERROR_INVALID_VALUE;
    auto above = all.mapped.lower_bound(address);
    bool isTaken = above != all.mapped.end() && above->first < address + bytes;
    if (above != all.mapped.begin()) {
      auto &[base, below] = *std::prev(above);
      isTaken |= base + below.bytes > address;
    }
    if (isTaken)
      return CUDA_ERROR_INVALID_VALUE;
    if (::mmap(reinterpret_cast<void *>(address), bytes,
               PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
               found->second->file, 0) == MAP_FAILED)
      return cudaErrorMemoryAllocation;
    all.mapped[address] = {found->second, bytes};
    return cudaSuccess;
  });
}

/// Every mapping in a range, which must be whole ones without gaps.
static std::vector<std::uint64_t> mappingsIn(const Space &all,
                                             std::uint64_t address,
                                             std::size_t bytes) {
  std::vector<std::uint64_t> found;
  std::uint64_t at = address;
  while (at < address + bytes) {
    auto one = all.mapped.find(at);
    if (one == all.mapped.end() || one->second.bytes > address + bytes - at)
      return {};
    found.push_back(at);
    at += one->second.bytes;
  }
  return found;
}

KILN_CUDA CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  return inSpace("cuMemUnmap", [&](Space &all) -> CUresult {
    std::vector<std::uint64_t> mappings = mappingsIn(all, address, bytes);
    if (mappings.empty())
      return CUDA_ERROR_INVALID_VALUE;
    Session::get().device().synchronize();
    auto blocks = all.mapped; // they live until nobody sees them
    for (std::uint64_t one : mappings)
      all.mapped.erase(one);
    showMapped(all);
    ::mmap(reinterpret_cast<void *>(address), bytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return cudaSuccess;
  });
}

KILN_CUDA CUresult cuMemSetAccess(CUdeviceptr address, std::size_t bytes,
                                  const Access *list, std::size_t count) {
  return inSpace("cuMemSetAccess", [&](Space &all) -> CUresult {
    std::vector<std::uint64_t> mappings = mappingsIn(all, address, bytes);
    if (mappings.empty() || !list || count == 0)
      return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < count; ++i) {
      if (list[i].location.type != 1 || list[i].location.id != 0)
        return CUDA_ERROR_INVALID_DEVICE;
      if (list[i].flags != 0 && list[i].flags != kReadWrite)
        return kilnCudaNotSupported("cuMemSetAccess for reading alone");
      for (std::uint64_t one : mappings)
        all.mapped[one].isAccessible = list[i].flags == kReadWrite;
    }
    showMapped(all);
    return cudaSuccess;
  });
}

/// The mapping that an address is in; null: it is in none.
static const Mapping *mappingAt(const Space &all, std::uint64_t address) {
  auto above = all.mapped.upper_bound(address);
  if (above == all.mapped.begin())
    return nullptr;
  const auto &[base, mapping] = *std::prev(above);
  return address - base < mapping.bytes ? &mapping : nullptr;
}

KILN_CUDA CUresult cuMemGetAccess(unsigned long long *flags,
                                  const Location *location,
                                  CUdeviceptr address) {
  return inSpace("cuMemGetAccess", [&](Space &all) -> CUresult {
    const Mapping *mapping = mappingAt(all, address);
    if (!flags || !location || !mapping)
      return CUDA_ERROR_INVALID_VALUE;
    *flags = mapping->isAccessible && location->type == 1 && location->id == 0
                 ? kReadWrite
                 : 0;
    return cudaSuccess;
  });
}

KILN_CUDA CUresult cuMemGetAllocationPropertiesFromHandle(
    Properties *properties, Block *handle) {
  return inSpace("cuMemGetAllocationPropertiesFromHandle",
                 [&](Space &all) -> CUresult {
                   if (!properties || !all.blocks.contains(handle))
                     return CUDA_ERROR_INVALID_VALUE;
                   *properties = handle->properties;
                   return cudaSuccess;
                 });
}

KILN_CUDA CUresult cuMemRetainAllocationHandle(Block **handle, void *address) {
  return inSpace("cuMemRetainAllocationHandle", [&](Space &all) -> CUresult {
    const Mapping *mapping =
        mappingAt(all, reinterpret_cast<std::uint64_t>(address));
    if (!handle || !mapping)
      return CUDA_ERROR_INVALID_VALUE;
    // It may have lost its last handle.
    *handle = mapping->block.get();
    if (!all.blocks.try_emplace(*handle, mapping->block).second)
      ++mapping->block->handles;
    else
      mapping->block->handles = 1;
    return cudaSuccess;
  });
}
