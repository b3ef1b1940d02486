// Work: what a program puts into a stream: now, or as a node of a graph.
//
// Both ways end in `perform`, so that a graph does what its uncaptured twin does.
#pragma once

#include "cudart/Session.h"

#include <variant>

struct CudaEvent;

namespace kiln::cudart {

class Graph;

/// A launch with the values of its parameters.
struct KernelWork {
  KernelWork() = default;
  /// Copies what `launch` points to.
  explicit KernelWork(const Launch &launch);
  KernelWork(const KernelWork &other);
  KernelWork(KernelWork &&) = default;
  KernelWork &operator=(KernelWork other);

  Launch launch; ///< but for its parameters and its stream
  std::vector<std::vector<std::byte>> values;
  std::vector<void *> pointers; ///< to `values`, for whoever asks for them
  const void *handle = nullptr; ///< of the function, as the program has it
  /// Launch attributes by their number, as they were given.
  std::map<int, std::array<char, 64>> attributes;

private:
  void point();
};

/// Rows of slices of bytes.
struct CopyWork {
  std::uint64_t to = 0, from = 0;
  std::size_t toPitch = 0, fromPitch = 0; ///< from row to row
  std::size_t toSlice = 0, fromSlice = 0; ///< from slice to slice
  std::size_t width = 0, height = 1, depth = 1;
};

/// Rows of elements of 1, 2 or 4 bytes.
struct FillWork {
  std::uint64_t to = 0;
  std::size_t pitch = 0; ///< in bytes
  std::uint32_t value = 0;
  unsigned elementBytes = 1;
  std::size_t width = 0, height = 1; ///< in elements
};

struct HostWork {
  void (*function)(void *) = nullptr;
  void *data = nullptr;
};

struct EmptyWork {};

struct EventRecordWork {
  CudaEvent *handle = nullptr;
};

struct EventWaitWork {
  CudaEvent *handle = nullptr;
};

/// A graph in a graph, which the node owns.
struct ChildWork {
  std::shared_ptr<Graph> graph;
};

/// Memory that lies at its address as long as the graph is there, and is the
/// program's from this node on to the one that frees it.
struct AllocWork {
  std::uint64_t address = 0;
  std::size_t bytes = 0;
};

struct FreeWork {
  std::uint64_t address = 0;
};

/// A value of the device that kernels set, and graphs that it chooses from.
struct ConditionalWork {
  enum Kind : std::uint8_t { once, loop, choice };
  std::uint64_t handle = 0;
  Kind kind = once;
  std::vector<std::shared_ptr<Graph>> bodies;
};

using Work =
    std::variant<KernelWork, CopyWork, FillWork, HostWork, ChildWork, EmptyWork,
                 EventWaitWork, EventRecordWork, AllocWork, FreeWork,
                 ConditionalWork>;

/// Put it into a stream, now. Neither children nor conditionals, which are
/// GraphExec's.
void perform(const Work &work, const Stream &stream);

/// Whether this thread is in a function of the host that a stream has called.
bool &isInHostFunction();

} // namespace kiln::cudart
