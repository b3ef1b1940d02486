// CudnnGraph: attention as a graph of cuDNN's operations.
#pragma once

#include "verify/Cudnn.h"

#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace kiln {

/// One of cuDNN's objects.
class CudnnDescriptor {
public:
  CudnnDescriptor(const CudnnLibrary &library,
                  cudnn::cudnnBackendDescriptorType_t type)
      : library_(library) {
    library_.check(library_.cudnnBackendCreateDescriptor(type, &raw_),
                   "cudnnBackendCreateDescriptor", "describing attention");
  }
  CudnnDescriptor(CudnnDescriptor &&other) noexcept
      : library_(other.library_), raw_(std::exchange(other.raw_, nullptr)) {}
  ~CudnnDescriptor() {
    if (raw_)
      library_.cudnnBackendDestroyDescriptor(raw_);
  }

  template <typename T>
  CudnnDescriptor &set(cudnn::cudnnBackendAttributeName_t name,
                       cudnn::cudnnBackendAttributeType_t type, const T *values,
                       std::size_t count) {
    library_.check(
        library_.cudnnBackendSetAttribute(
            raw_, name, type, static_cast<std::int64_t>(count), values),
        "cudnnBackendSetAttribute", "describing attention");
    return *this;
  }
  template <typename T>
  CudnnDescriptor &set(cudnn::cudnnBackendAttributeName_t name,
                       cudnn::cudnnBackendAttributeType_t type,
                       const T &value) {
    return set(name, type, &value, 1);
  }
  CudnnDescriptor &set(cudnn::cudnnBackendAttributeName_t name,
                       const CudnnDescriptor &other) {
    return set(name, cudnn::CUDNN_TYPE_BACKEND_DESCRIPTOR, other.raw_);
  }
  cudnn::cudnnStatus_t tryFinish() {
    return library_.cudnnBackendFinalize(raw_);
  }
  CudnnDescriptor &finish() {
    library_.check(tryFinish(), "cudnnBackendFinalize", "describing attention");
    return *this;
  }
  cudnn::cudnnBackendDescriptor_t raw() const { return raw_; }

private:
  const CudnnLibrary &library_;
  cudnn::cudnnBackendDescriptor_t raw_ = nullptr;
};

/// The numbers of the tensors that a plan is given.
enum CudnnUid : std::int64_t {
  kQ = 1,
  kK,
  kV,
  kO,
  kScale,
  kMasked,
  kKeys,
  kQueries
};

/// A graph, and what must live as long.
struct CudnnGraph {
  std::vector<CudnnDescriptor> tensors = {}, operations = {};
  std::deque<CudnnDescriptor> parts = {}; ///< of operations
  std::optional<CudnnDescriptor> graph = {};
};

/// The operations of one attention, in the order in which cuDNN knows them.
CudnnGraph describeAttention(const CudnnLibrary &library,
                             cudnn::cudnnHandle_t handle,
                             const CudnnAttention &attention);

} // namespace kiln
