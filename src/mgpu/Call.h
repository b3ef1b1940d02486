// Call: what every mgpu function does around its work.
//
// MLIR's runtime functions return no error, and a program that was lowered asks
// for none. So what goes wrong is told at once and counted, the program goes on
// without it, and the process exits with a status that says so.
#pragma once

#include "cudart/Session.h"
#include "support/Error.h"

#define KILN_MGPU extern "C" __attribute__((visibility("default")))

namespace kiln::mgpu {

using cudart::Session;

/// The session of this process, on any device of Kiln's.
Session &session();

/// Tell an error that was thrown while `name` worked.
void failed(const char *name, std::exception_ptr thrown);

/// Whether the process ends, and with it whatever device there was: programs
/// unload their modules then, last of all.
bool isEnding();

/// Whether an error has ended a launch: as on a GPU, nothing runs after that.
bool isBroken();

/// Do the work of a function; what it returns, or `otherwise` where it failed.
template <typename Result, typename Work>
Result attempt(const char *name, Result otherwise, const Work &work) {
  try {
    return work();
  } catch (...) {
    failed(name, std::current_exception());
    return otherwise;
  }
}

template <typename Work> void attempt(const char *name, const Work &work) {
  attempt(name, 0, [&] {
    work();
    return 0;
  });
}

/// End the program where it could only crash.
[[noreturn]] void end();

/// A memref as MLIR lays it out in memory, of any rank.
struct Memref {
  char *allocated;
  char *aligned;
  std::int64_t offset;
  std::int64_t numbers[]; ///< sizes, then strides

  std::int64_t size(std::int64_t axis) const { return numbers[axis]; }
  std::int64_t stride(std::int64_t rank, std::int64_t axis) const {
    return numbers[rank + axis];
  }
};

} // namespace kiln::mgpu

/// A stream and an event as programs hold them.
struct MgpuStream {
  kiln::Stream stream;
};
struct MgpuEvent {
  kiln::Event event;
};

namespace kiln::mgpu {
inline Stream streamOf(const MgpuStream *stream) {
  return stream ? stream->stream : Stream();
}
} // namespace kiln::mgpu
