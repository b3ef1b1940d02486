// gemm_sets: the memory of a product, on the host and so often on a device that
// the L2 cache holds nothing of what the next launch needs.
#pragma once

#include "gemm_matrices.h"

#include <kiln/measure/cublas.h>
#include <kiln/measure/measure.h>

#include <memory>

namespace kiln::cli {

class GemmSets {
public:
  /// Normally distributed numbers, as weights and activations are. `gemm` has
  /// its sizes and factors.
  GemmSets(Device &device, const ReferenceGemm &gemm, bool has_c,
           std::uint64_t seed);

  /// One launch of a kernel on each set. It must outlive them.
  Contender contender(std::string name, const Kernel &kernel) const;
  Contender contender(std::string name,
                      const std::shared_ptr<CublasPlan> &plan) const;
  /// Run a contender on the first set and compare what it wrote.
  Comparison verify(const Contender &contender);

  const ReferenceGemm &gemm() const { return gemm_; }
  int count() const { return static_cast<int>(sets_.size()); }
  double operations() const;
  /// Of A, B, C and D.
  double bytes() const;

private:
  Device &device_;
  GemmMatrices host_;
  ReferenceGemm gemm_;
  std::vector<GemmBuffers> sets_;
};

} // namespace kiln::cli
