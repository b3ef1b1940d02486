// Lesson 1: saxpy. Adds arguments: tensors, a scalar, and a size that is known
// only at launch.
//
//     y += alpha * x      for matrices of [rows, 32] floats
//
// One CTA takes one row and one thread one column, so that each thread reads
// two numbers and writes one:
//
//              thread 0   1   2  ...  31
//     CTA 0        y00  y01  y02 ... y0,31
//     CTA 1        y10  y11  y12 ... y1,31
//     ...
#include "lessons.h"

#include <kiln/run/run.h>

#include <random>
#include <vector>

using namespace kiln;

namespace lessons {

static constexpr int kColumns = 32;

// The kernel. Arguments are declared in the order in which the caller will pass
// them: rows, x, y, alpha.
//
// `rows` is a Dim: a size that is either a number or, as here, an argument. It
// can stand wherever a size is wanted: in the shape of a tensor, in the grid,
// and inside the kernel as a Value. The columns are a plain number, and are
// compiled in. Whoever launches the kernel need not know which is which: the
// contract says that the grid has `rows` CTAs, and the launch works it out.
//
// x(i, j) stands for an element. It is read where a Value is wanted and written
// where it is assigned. A tensor that is assigned to is an output, and `run`
// will copy it back.
Module saxpy() {
  KernelBuilder kb("saxpy", {.threads = kColumns});
  Dim rows = kb.dim("rows");
  Tensor x = kb.tensor("x", f32, {rows, kColumns});
  Tensor y = kb.tensor("y", f32, {rows, kColumns});
  Value alpha = kb.scalar("alpha", f32);
  kb.grid(rows);

  Value i = block_id();
  Value j = thread_id();
  y(i, j) = y(i, j) + alpha * x(i, j);
  return kb.module();
}

// The launcher. `run` takes host arrays: it copies them to the device, launches
// and copies back what the kernel writes. An array smaller than its shape is
// refused, with both sizes, before anything is launched; what the simulator
// finds wrong is thrown.
int launch_saxpy(const Kernel &kernel) {
  const int rows = 256;
  const float alpha = 2;
  std::mt19937 random(1);
  std::uniform_int_distribution<int> digits(-99, 99);
  std::vector<float> x(rows * kColumns), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = digits(random);
    y[i] = digits(random);
  }
  std::vector<float> before = y;
  auto device = open_device();
  run(*device, kernel, rows, x, y, alpha);
  for (std::size_t i = 0; i < y.size(); ++i) {
    float expected = before[i] + alpha * x[i];
    if (y[i] == expected)
      continue;
    std::printf("y[%zu] is %g and should be %g\n", i, y[i], expected);
    return static_cast<int>(ExitStatus::wrong);
  }
  std::printf("All %zu numbers are right.\n", y.size());
  return 0;
}

} // namespace lessons

int main() try {
  Kernel kernel = compile(lessons::saxpy());
  lessons::describe(kernel);
  return lessons::launch_saxpy(kernel);
} catch (const Error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_status());
}

// To take away:
//
// - A kernel states its arguments once; grid, shapes and checks follow.
// - A Dim may be a number or an argument. Compiled-in sizes fold into
//   addresses and loop bounds; runtime sizes save a compilation per size.
// - Types are never converted silently: alpha * x(i, j) is f32 times f32, and
//   anything else would be refused with the line that wrote it.
