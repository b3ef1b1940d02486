// FakeCudnn: what the fake cuDNN saw, and what it is told to do.
//
// A shared library of its own, like the fake driver beside it; a test reaches
// this state through its symbol `fakeCudnn`.
#pragma once

#include "verify/Cudnn.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace kiln::test {

struct FakeCudnn {
  /// What to do.
  std::string failCall; ///< the symbol that fails
  int ways = 2;         ///< that the heuristics know
  int bad = 0;          ///< of them, the first, that cannot be planned

  /// What was seen.
  struct Object {
    cudnn::cudnnBackendDescriptorType_t type;
    std::map<int, std::vector<std::byte>> attributes;
    bool isFinished = false;

    template <typename T> std::vector<T> get(int name) const {
      const auto &bytes = attributes.at(name);
      std::vector<T> values(bytes.size() / sizeof(T));
      std::copy(bytes.begin(), bytes.end(),
                reinterpret_cast<std::byte *>(values.data()));
      return values;
    }
  };
  struct Tensor {
    std::int64_t uid;
    int type;
    std::vector<std::int64_t> sizes, strides;
    bool isVirtual, isByValue;
  };
  std::vector<std::string> operations; ///< of the last graph, "MUL 5 -> 6"
  std::map<std::int64_t, Tensor> tensors;
  std::map<std::int64_t, void *> pointers; ///< of the last execution
  std::map<std::int64_t, float> numbers;   ///< by value, of those
  void *stream = nullptr;
  int live = 0; ///< objects not yet destroyed
};

} // namespace kiln::test
