// softmax.h: the softmax of each row of a matrix.
//
//     Y[i, j] = exp(X[i, j] - max_i) / sum over j of exp(X[i, j] - max_i)
//
// A matrix is read once and written once; the kernel is as fast as memory.
//
//     Kernel kernel = compile(build_softmax({.rows = 8192, .columns = 4096}));
//     run(device, kernel, x, y);
#pragma once

#include <kiln/run/compile.h>
#include <kiln/base/dim.h>
#include <kiln/base/export.h>
#include <kiln/base/types.h>

namespace KILN_API kiln {

struct SoftmaxProblem {
  Dim rows = 8192;        ///< a number or a runtime argument
  int columns = 4096;     ///< up to 6144; rows of a multiple of 16 bytes
  Type type = Type::bf16; ///< bf16, f16 or f32
};

/// Arguments: x, y, then the rows where they are given at launch. Throws
/// UserError where the problem is none that it solves.
Module build_softmax(const SoftmaxProblem &problem);

} // namespace kiln
