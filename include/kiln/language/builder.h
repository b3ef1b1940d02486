// builder.h: KernelBuilder, where a kernel begins and ends.
//
// Between its construction and `build`, the free functions of the language
// (for_range, thread_id, ...) add to this kernel; the builder is found through
// the thread, so eight threads can build eight kernels.
//
//     Kernel saxpy(Dim rows, Dim columns) {
//       KernelBuilder kb("saxpy", {.threads = 128});
//       auto x = kb.tensor("x", f32, {rows, columns});
//       auto y = kb.tensor("y", f32, {rows, columns});
//       Value alpha = kb.scalar("alpha", f32);
//       kb.grid(rows);
//       Value i = block_id();
//       for_range(thread_id(), columns, 128, [&](Value j) {
//         y(i, j) = y(i, j) + alpha * x(i, j);
//       });
//       return kb.build();
//     }
#pragma once

#include <kiln/run/compile.h>
#include <kiln/base/export.h>
#include <kiln/run/kernel.h>
#include <kiln/language/memory/mbarrier.h>
#include <kiln/language/memory/memory.h>
#include <kiln/language/threads/threads.h>
#include <kiln/language/value/value.h>
#include <kiln/base/where.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace KILN_API kiln {

/// CTAs that run together, along each axis of the grid.
struct ClusterShape {
  int x = 1, y = 1, z = 1;
};

struct KernelOptions {
  int threads = 0;    ///< along x; 0: from warpgroups
  int warpgroups = 0; ///< of 128 threads
  int ctas_per_sm = 1;
  ClusterShape cluster = {}; ///< the grid must be a multiple of it
  /// "sm_90a" or "sm_100a". What it lacks is refused where it is used.
  std::string target = "sm_90a";
  bool debug_print =
      false; ///< build the prints that are PrintOptions::is_debug
  /// Arithmetic of f32 takes and gives subnormal numbers as 0 (.ftz): sums,
  /// products, the functions of math.h.
  bool ftz = false;
};

/// Where a piece of shared memory lies; by default behind what is there.
struct SharedOptions {
  /// Bytes from the start of the CTA's shared memory.
  std::optional<int> offset = {};
  /// Begin where that tile begins and lie over it and what follows it: for
  /// what does not live at the same time, as an epilogue's tile and the slots
  /// of a pipeline that has been drained. Nothing may lie over mbarriers.
  std::optional<SharedTile> over = {};
  /// What findings, the ledger of a deadlock and the timeline call it; empty:
  /// "tile".
  std::string name = {};
};

class KernelBuilder {
public:
  KernelBuilder(std::string name, const KernelOptions &options,
                Where where = Where::current());
  ~KernelBuilder();
  KernelBuilder(const KernelBuilder &) = delete;

  // Arguments, in the order the caller passes them.

  /// A problem dimension given at launch: an i32 argument.
  Dim dim(const std::string &name, Where where = Where::current());
  Value scalar(const std::string &name, Type type,
               Where where = Where::current());
  /// A tensor read and written through its pointer. `strides` in elements,
  /// outermost first; empty: row-major.
  Tensor tensor(const std::string &name, Type type, std::vector<Dim> shape,
                std::vector<Dim> strides = {}, Where where = Where::current());
  /// A tensor that is no argument: it begins at `address`, a u64 the kernel has
  /// loaded or computed. The address is a multiple of `alignment` bytes, from
  /// one element to 16, which decides how wide it is read. An extent that only
  /// the kernel knows is Tensor::slice's.
  ///
  ///     Tensor rows = kb.tensor_at(pointers(e), Type::bf16, {m, 4096});
  Tensor tensor_at(At address, Type type, std::vector<Dim> shape,
                   std::vector<Dim> strides = {}, int alignment = 16,
                   Where where = Where::current());
  /// Memory of the kernel's own, of constant shape, declared after all that the
  /// caller passes: zero before the first launch, and as the last one left it
  /// afterwards (ArgumentSpec::is_workspace).
  Tensor workspace(const std::string &name, Type type, std::vector<Dim> shape,
                   std::vector<Dim> strides = {},
                   Where where = Where::current());
  /// A tensor copied by TMA, rank 1 to 5. `strides` as above.
  TmaTensor tensor_map(const std::string &name, Type type,
                       const std::vector<Dim> &shape, const TmaOptions &options,
                       std::vector<Dim> strides = {},
                       Where where = Where::current());
  /// The same memory as `tensor`, copied by TMA too.
  TmaTensor tensor_map(const Tensor &tensor, const TmaOptions &options,
                       Where where = Where::current());

  /// How many CTAs are launched.
  void grid(Dim x, Dim y = 1, Dim z = 1);

  // Shared memory: carved from one block whose size is part of the contract;
  // each piece is aligned as its layout asks.

  SharedTile shared(const TileLayout &layout, const SharedOptions &options = {},
                    Where where = Where::current());
  /// `count` tiles one behind the other; [] picks one by a Value.
  SharedTileArray shared_array(const TileLayout &layout, int count,
                               const SharedOptions &options = {},
                               Where where = Where::current());
  /// Bytes of shared memory so far.
  int shared_bytes() const;
  /// `count` mbarriers; findings call them `name`, or "mbarrier".
  MbarrierArray mbarriers(int count, const std::string &name = {},
                          Where where = Where::current());
  /// `count` of the CTA's 15 named barriers, at which `threads` threads meet:
  /// a multiple of 32. No others are handed out twice, those of sync_warpgroup
  /// included.
  NamedBarrierArray named_barriers(int count, int threads,
                                   Where where = Where::current());

  /// The kernel as MLIR, checked. Ends the kernel: a builder builds once.
  Module module(Where where = Where::current());
  /// The same, compiled.
  Kernel build(const CompileOptions &options = {},
               Where where = Where::current());

  /// The compiler's side of it.
  class State;
  State &state() { return *state_; }

private:
  std::unique_ptr<State> state_;
};

} // namespace kiln
