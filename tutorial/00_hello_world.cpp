// Lesson 0: hello world. The first lesson: a kernel, and how it is run.
//
// A kernel is ordinary C++ that runs once, on the host, and writes down what
// the GPU shall do. A KernelBuilder opens the kernel; from then on the words of
// the language (thread_id, print, for_range, ...) add to it; `module` closes
// it. What comes out is MLIR, and `compile` turns it into PTX.
//
//     your C++  --KernelBuilder-->  Module  --compile-->  Kernel  --run-->
//
// A Kernel carries its launch contract: how many threads, how many CTAs, which
// arguments. So there is no launch configuration to get wrong at the call.
#include "lessons.h"

#include <kiln/run/run.h>

using namespace kiln;

namespace lessons {

// The kernel. The options say how many threads a CTA has, `grid` how many CTAs
// are launched. thread_id() is not a number: it is a Value, an expression that
// each thread will evaluate for itself.
//
// print takes a line with a {} for each value and finds out the types itself.
Module hello_world() {
  KernelBuilder kb("hello_world", {.threads = 4});
  kb.grid(2);
  print("Hello from thread {} of CTA {}", {thread_id(), block_id()});
  return kb.module();
}

} // namespace lessons

// The launcher. `compile` needs no device; `run` does, and passes the arguments
// after the kernel. This one has none. Without a GPU the simulator runs it.
int main() try {
  Kernel kernel = compile(lessons::hello_world());
  lessons::describe(kernel);
  auto device = lessons::open_device();
  run(*device, kernel);
  return 0;
} catch (const Error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_status());
}

// To take away:
//
// - The C++ around a kernel runs while it is built; Values are what runs later.
//   Writing std::printf where print stands would print once, here.
// - Eight threads print eight lines, in no order: nothing orders them.
// - emit(module, Stage::ptx) shows what became of it. Each instruction carries
//   the line of this file that wrote it.
