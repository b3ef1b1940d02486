// repack: copies of matrices whose rows TMA cannot take, in a workspace where
// it can. All CTAs make them together, before anything is multiplied.
#pragma once

#include <kiln/grid_barrier.h>

#include <optional>
#include <string>
#include <vector>

namespace kiln::gemm_kernel {

/// Elements of a row of so many in the workspace.
Dim repacked_stride(Type type, const Dim &columns);

class Repack {
public:
  /// Declare the workspace for a copy of `from`: (batch,) rows, columns.
  Tensor add(KernelBuilder &kb, const std::string &name, const Tensor &from);
  /// Copy all of them, by all `warps` of a CTA, and wait for all CTAs; outside
  /// of roles.
  void run(int warps) const;

private:
  struct Copy {
    Tensor from, to;
  };
  std::vector<Copy> copies_;
  std::optional<GridBarrier> barrier_;
};

} // namespace kiln::gemm_kernel
