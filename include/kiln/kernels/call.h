// call.h: a product or attention in one call.
//
//     auto device = open_cuda();
//     gemm(device, stream, {.m = 4096, .n = 4096, .k = 4096},
//          {.a = a, .b = b, .d = d});
//
// The first call of a problem picks a schedule and compiles its kernel, or
// takes it from the cache on disk; later ones find it in memory. A call whose
// problem and buffers are those of an earlier one is the driver's launch and a
// look-up: what a launch needs has been packed then. Nothing waits: errors of
// the kernel surface at the next call of the device that does. After a first
// call, calls can be captured in a CUDA graph.
//
// Workspaces, which few kernels need (rows that TMA cannot take), are kept for
// each stream: such a graph is launched in the stream of the first call, or
// while nothing runs there.
//
// From any number of threads. What was packed holds on to its device no longer
// than somebody else does.
#pragma once

#include <kiln/kernels/attention.h>
#include <kiln/run/device.h>
#include <kiln/base/export.h>
#include <kiln/kernels/gemm.h>
#include <kiln/kernels/grouped_gemm.h>

#include <memory>

namespace KILN_API kiln {

struct GemmArguments {
  Buffer a, b, d;
  Buffer a_scales = {}, b_scales = {}; ///< where the problem has a scaling
  Buffer c = {};                       ///< where the problem has beta
  Buffer bias = {};                    ///< where the problem has one
  double alpha = 1, beta = 0;
};
/// D = act(alpha * A * B + beta * C + bias). Throws UserError where a size of
/// the problem is not a number, or an argument does not fit.
void gemm(const std::shared_ptr<Device> &device, const Stream &stream,
          const GemmProblem &problem, const GemmArguments &arguments);

struct AttentionArguments {
  Buffer q, k, v, o, lse;
  Buffer query_offsets = {}, key_offsets = {}; ///< of packed sequences
};
void attention(const std::shared_ptr<Device> &device, const Stream &stream,
               const AttentionProblem &problem,
               const AttentionArguments &arguments);

struct GroupedGemmArguments {
  Buffer a, b, d;
  Buffer rows;                         ///< offsets; masked: counts
  Buffer a_scales = {}, b_scales = {}; ///< where the problem has them
};
void grouped_gemm(const std::shared_ptr<Device> &device, const Stream &stream,
                  const GroupedGemmProblem &problem,
                  const GroupedGemmArguments &arguments);

} // namespace kiln
