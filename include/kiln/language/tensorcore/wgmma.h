// wgmma.h: the tensor core of Hopper, and the accumulator it writes.
//
// A warpgroup multiplies an [M, K] tile, of shared memory or of its registers,
// by a [K, N] tile of shared memory into registers. The multiplication is
// asynchronous: it is issued, committed to a group, and waited for; in between
// neither its registers nor its shared memory may be touched.
//
//     Accumulator acc(f32, 128, 128);
//     acc.mma(a, b);              // fence, instructions, commit
//     acc.wait(0);
//     RegisterTile d = acc.tile();
//
// The same by its single steps, to put other things between them:
//
//     wgmma_fence();
//     acc.issue(a, b);            // the instructions alone
//     wgmma_commit();
//
// Groups are numbered in the order they are committed, whatever they add to. A
// wait lands every accumulator whose last group it covers, so that one can be
// read while another is in flight:
//
//     s.mma(q, k);
//     acc.mma(p, v);
//     wgmma_wait(1);              // all but the newest group
//     RegisterTile scores = s.tile();
//     ...                         // acc is in flight meanwhile
//     wgmma_wait(0);
//
// That is followed along branches and loops while the kernel is built: an
// accumulator that may be in flight where it is used, be it by the loop's
// previous turn, is refused.
//
// For targets that have mma.sync alone (sm_80, sm_86, sm_89, sm_120a, sm_121a)
// the same source builds too: each warp multiplies its 16 of every 64 rows,
// with ldmatrix and mma.sync. The registers of an accumulator hold the same
// elements. A product is finished when it has been issued; fence, commit and
// wait become nothing.
#pragma once

#include <kiln/base/export.h>
#include <kiln/language/memory/memory.h>
#include <kiln/language/tile/register_tile.h>
#include <kiln/language/value/value.h>
#include <kiln/language/value/vector.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace KILN_API kiln {

/// What becomes of elements on their way out: `values` are neighbours in a row
/// of the tensor, the first one at (row, column); the result is as many.
using ElementMap = std::function<Values(const Values &values, const Value &row,
                                        const Value &column)>;

/// Orders registers that threads wrote, accumulators and A operands, before the
/// multiplications that follow (wgmma.fence.sync.aligned).
void wgmma_fence(Where where = Where::current());
/// Makes a group of the multiplications issued since the last one
/// (wgmma.commit_group.sync.aligned).
void wgmma_commit(Where where = Where::current());
struct WaitOptions {
  /// Wait when this tile has been computed. The assembler moves a wait up in
  /// front of arithmetic that needs nothing of it, and what was to overlap the
  /// product follows it instead; behind this it stays. The fewer registers the
  /// tile has the better: a row's sum depends on all its elements.
  const RegisterTile *after = nullptr;
};
/// Wait until at most `groups` of the committed groups are in flight
/// (wgmma.wait_group.sync.aligned), 0 to 7. No use of the accumulators that
/// land by it can move above it.
void wgmma_wait(int groups, const WaitOptions &options = {},
                Where where = Where::current());

/// What one multiplication does besides a * b + accumulator.
struct MmaOptions {
  bool negate_a = false, negate_b = false; ///< of floats
  bool saturate = false; ///< of integers: stay at the largest (.satfinite)
  /// An i1: add to the accumulator, or overwrite it. Left out: overwrite after
  /// construction and reset(), else add.
  std::optional<Value> add = {};
};

class Accumulator {
public:
  /// `rows` x `columns` in the registers of one warpgroup: rows a multiple of
  /// 64. It is covered by instructions of `instruction_n` columns: a multiple
  /// of 8 from 8 to 256 (of i8 and u8: 8, 24 and multiples of 16); 0: all
  /// columns. f32 for float operands, f16 for f16, e4m3 and e5m2 (two to a
  /// register), i32 for i8 and u8. Its first mma overwrites what it holds
  /// (scale-d = 0), so nothing is zeroed.
  Accumulator(Type type, int rows, int columns, int instruction_n = 0,
              Where where = Where::current());
  ~Accumulator();
  Accumulator(const Accumulator &) = delete;

  /// accumulator += a * b, with a [rows, K] and b [K, columns]. Which operand
  /// is K-major follows from how it is stored: an a stored [rows, K] is, one
  /// stored [K, rows] and seen through transpose() is not; f16 and bf16 can be
  /// either. Issues the instructions and commits them as one group; does not
  /// wait. Without a swizzle a tile has panels of 16 bytes (TileLayout::panel).
  ///
  /// Becomes wgmma.fence, one wgmma.mma_async per 64 rows, instruction_n
  /// columns and 32 bytes of K, wgmma.commit_group; or, for each 8 columns of a
  /// warp's 16 rows, mma.sync.aligned.m16n8k16.
  void mma(const SharedTile &a, const SharedTile &b,
           const MmaOptions &options = {}, Where where = Where::current());
  /// The instructions alone, between wgmma_fence and wgmma_commit.
  void issue(const SharedTile &a, const SharedTile &b,
             const MmaOptions &options = {}, Where where = Where::current());
  /// The same with a in the registers of the warpgroup, laid out as
  /// RegisterLayout::wgmma_operand(type, rows, K); they must not change until
  /// the wait. Its issue fences by itself, for what was just computed.
  void mma(const RegisterTile &a, const SharedTile &b,
           const MmaOptions &options = {}, Where where = Where::current());
  void issue(const RegisterTile &a, const SharedTile &b,
             const MmaOptions &options = {}, Where where = Where::current());
  /// wgmma_wait, above which no use of these registers can move either, landed
  /// or not.
  void wait(int groups, const WaitOptions &options = {},
            Where where = Where::current());
  /// Start over: the next mma overwrites.
  void reset(Where where = Where::current());
  /// Start from what `tile` holds: the next mma adds to it. The tile has the
  /// accumulator's type and layout().
  void start_from(const RegisterTile &tile, Where where = Where::current());
  /// What it holds. Refused while a multiplication is in flight: wait first.
  RegisterTile tile(Where where = Where::current()) const;
  /// RegisterLayout::accumulator(rows(), columns())
  RegisterLayout layout() const;

  /// Write to `tensor`, of 2 dimensions or a view with 2, at `origin` (row,
  /// column) in the tensor's type, each element passed through `map` first,
  /// leaving out what lies outside it. Waits for what is in flight.
  void store(const Tensor &tensor, const std::vector<At> &origin,
             const StoreOptions &options = {}, const ElementMap &map = {},
             Where where = Where::current());

  /// The element of the tile that the thread holds at `index`, 0 .. elements()
  /// - 1. Refused while a multiplication is in flight: wait first.
  Value element(int index, Where where = Where::current());
  /// Where in the tile that element lies, as layout() has it.
  Value fragment_row(int index, Where where = Where::current()) const;
  Value fragment_column(int index, Where where = Where::current()) const;

  /// A multiplication may be writing it: on some path to here none was waited
  /// for since.
  bool is_in_flight(Where where = Where::current()) const;
  Type type() const;
  int rows() const;
  int columns() const;
  int instruction_n() const;
  /// Elements a thread holds of it.
  int elements() const { return rows() * columns() / 128; }
  /// Registers they take: one each, or one for two of f16.
  int registers() const { return elements() * size_bytes(type()) / 4; }

  /// The compiler's side of it.
  struct State;

private:
  std::shared_ptr<State> state_;
};

} // namespace kiln
