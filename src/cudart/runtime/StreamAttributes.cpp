// StreamAttributes: hints about a stream, which are kept and told again.
//
// They say where data should be cached, how the host waits, and who goes first.
// Nothing that a kernel computes depends on them.
#include "cudart/runtime/Call.h"

#include <algorithm>
#include <cstring>

using namespace kiln::cudart;

using AttributeValue = std::array<std::byte, 64>;

/// Window of the L2 cache, how the host waits, priority, memory
/// synchronization domains and their map, and traffic over NVLink.
static constexpr int kPriority = 8;
static constexpr int kAttributes[] = {1, 3, kPriority, 9, 10, 16};

/// Those of the stream, or of the default one. Throws InvalidHandle.
static std::map<int, AttributeValue> &attributesOf(cudaStream_t stream) {
  static std::map<int, AttributeValue> ofDefault;
  CudaStream *handle = streamHandleOf(stream);
  return handle ? handle->attributes : ofDefault;
}

static std::mutex &attributesMutex() {
  static std::mutex mutex;
  return mutex;
}

static bool isAttribute(int attribute) {
  return std::find(std::begin(kAttributes), std::end(kAttributes), attribute) !=
         std::end(kAttributes);
}

KILN_CUDA cudaError_t cudaStreamSetAttribute(cudaStream_t stream, int attribute,
                                             const void *value) {
  return call("cudaStreamSetAttribute", [&]() -> cudaError_t {
    if (!value || !isAttribute(attribute))
      return cudaErrorInvalidValue;
    std::lock_guard lock(attributesMutex());
    std::memcpy(attributesOf(stream)[attribute].data(), value,
                sizeof(AttributeValue));
    if (attribute == kPriority && reinterpret_cast<std::uintptr_t>(stream) > 2)
      std::memcpy(&stream->priority, value, sizeof(stream->priority));
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaStreamSetAttribute, _ptsz)

KILN_CUDA cudaError_t cudaStreamGetAttribute(cudaStream_t stream, int attribute,
                                             void *value) {
  return call("cudaStreamGetAttribute", [&]() -> cudaError_t {
    if (!value || !isAttribute(attribute))
      return cudaErrorInvalidValue;
    std::lock_guard lock(attributesMutex());
    const auto &attributes = attributesOf(stream);
    auto found = attributes.find(attribute);
    AttributeValue kept{};
    if (found != attributes.end())
      kept = found->second;
    else if (attribute == kPriority &&
             reinterpret_cast<std::uintptr_t>(stream) > 2)
      std::memcpy(kept.data(), &stream->priority, sizeof(stream->priority));
    std::memcpy(value, kept.data(), sizeof(kept));
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaStreamGetAttribute, _ptsz)

KILN_CUDA cudaError_t cudaStreamCopyAttributes(cudaStream_t to,
                                               cudaStream_t from) {
  return call("cudaStreamCopyAttributes", [&] {
    std::lock_guard lock(attributesMutex());
    attributesOf(to) = attributesOf(from);
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaStreamCopyAttributes, _ptsz)

/// There is no cache whose lines could persist.
KILN_CUDA cudaError_t cudaCtxResetPersistingL2Cache() {
  return call("cudaCtxResetPersistingL2Cache", [] { return cudaSuccess; });
}
