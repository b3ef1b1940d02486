// cudnn.h: the same attention by cuDNN, to measure against.
//
//     auto library = open_cudnn(*device);
//     auto plan = library->plan({.heads = 16, .queries = 4096, .keys = 4096});
//     plan->enqueue({q, k, v, o}, stream);
//
// The library is found at run time: no header and no library of CUDA is needed
// to build Kiln.
#pragma once

#include <kiln/run/device.h>
#include <kiln/base/export.h>
#include <kiln/base/types.h>

#include <memory>
#include <string>

namespace KILN_API kiln {

/// One attention, forward, as AttentionProblem has it.
struct CudnnAttention {
  int batch = 1, heads = 1, kv_heads = 1;
  int queries = 1, keys = 1, head_dim = 128;
  Type type = Type::bf16; ///< bf16 or f16
  /// Query i sees the keys up to i + keys - queries.
  bool is_causal = false;
  /// Batch, sequence, heads, head dimension; otherwise heads before sequence.
  bool is_bshd = false;
  float scale = 1; ///< of the scores
};

struct CudnnOperands {
  Buffer q, k, v, o;
};

class CudnnPlan {
public:
  virtual ~CudnnPlan();
  /// Put it into a stream. Throws RuntimeError.
  virtual void enqueue(const CudnnOperands &operands,
                       const Stream &stream = {}) const = 0;
};

class Cudnn {
public:
  virtual ~Cudnn();
  /// "9.19.0"
  virtual std::string version() const = 0;
  /// The first way its heuristics name. Throws UserError where cuDNN does not
  /// do this attention, with the reason.
  virtual std::shared_ptr<CudnnPlan> plan(const CudnnAttention &attention) = 0;
};

/// libcudnn.so.9, where the loader or CUDA_HOME has it. Throws RuntimeError
/// that says what to install where there is none, and UserError where the
/// device is no GPU.
std::shared_ptr<Cudnn> open_cudnn(Device &device);

} // namespace kiln
