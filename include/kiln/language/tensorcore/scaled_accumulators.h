// scaled_accumulators.h: sums of blocks, each multiplied by factors, in registers.
//
// wgmma knows no factors, and adds up 8-bit floats with few bits. So each block
// of K has a sum of its own, which is multiplied by the factors of its rows and
// of its columns and added to those before it in f32 (scaling.h, blocks):
//
//     RegisterTile sums = scaled_accumulators(
//         part, 0, blocks, factors, pipeline,
//         [&](const Slot &slot) { part.mma(slot[a], slot[b].transpose()); });
#pragma once

#include <kiln/base/export.h>
#include <kiln/language/collective/pipeline.h>
#include <kiln/language/tile/register_tile.h>
#include <kiln/language/value/value.h>
#include <kiln/language/tensorcore/wgmma.h>

#include <functional>

namespace KILN_API kiln {

/// Where the factors, f32, are read: one block ahead of their use.
struct BlockFactors {
  /// Of a row of the accumulator, an i32, in a block of K.
  std::function<Value(const Value &block, const Value &row)> of_row;
  /// Of a part of its columns, which are divided into `parts`.
  std::function<Value(const Value &block, int part)> of_part;
  int parts = 1;
};

/// The sums over blocks `begin` to before `end`, at least one, each a slot of
/// `pipeline`; `multiply` overwrites `part` with the products of a slot.
RegisterTile scaled_accumulators(Accumulator &part, At begin, At end,
                         const BlockFactors &factors, Pipeline &pipeline,
                         const std::function<void(const Slot &)> &multiply,
                         Where where = Where::current());

} // namespace kiln
