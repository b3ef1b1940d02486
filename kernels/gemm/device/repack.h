// repack: copies of matrices whose rows TMA cannot take, in a workspace where
// it can. All CTAs make them together, before anything is multiplied.
#pragma once

#include <kiln/language/collective/grid_work.h>

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
  /// Counters and shared memory for at most so many CTAs, and a first part of
  /// the work; outside of roles, as `run` is.
  void begin(KernelBuilder &kb, const Dim &ctas);
  /// Copy all of them, of which there is one at least, by all `warps` of the
  /// CTAs, and wait for that; then the next launch may begin, if it `launches`
  /// one.
  void run(int warps, bool launches) const;
  bool is_empty() const { return copies_.empty(); }

private:
  struct Copy {
    Tensor from, to;
  };
  std::vector<Copy> copies_;
  std::optional<GridWork> work_;
};

} // namespace kiln::gemm_kernel
