// tensor_memory.h: the tensor core of Blackwell (tcgen05), and the memory it
// adds up in.
//
// Each SM has tensor memory: 128 lanes of up to 512 columns of 32 bits. One
// thread multiplies an [M, K] tile by a [K, N] tile of shared memory into it;
// the four warps of a warpgroup load sums into registers, warp i from the lanes
// 32 i to 32 i + 31.
//
//     TensorMemory memory(kb, 128);
//     TensorTile acc = memory.tile(f32, 128, 128);
//     one_thread([&] {
//       acc.mma(a, b);                 // issued, and not waited for
//       done.arrive_products();        // when it is finished
//     });
//     done.wait(0);
//     tensor_fence_after();
//     RegisterTile sums = acc.load();  // a row in each thread
//
// Two CTAs of a cluster can multiply together (cta_group 2): the even one
// issues, each has half of the rows of A and of the sums, and half of the
// columns of B.
#pragma once

#include <kiln/language/builder.h>
#include <kiln/base/export.h>
#include <kiln/language/memory/memory.h>
#include <kiln/language/tile/register_tile.h>
#include <kiln/language/tensorcore/scaling.h>
#include <kiln/language/value/value.h>

#include <optional>

namespace KILN_API kiln {

/// Factors of the rows of an operand a, or of the columns of b, in tensor
/// memory: one for each of them and each block of K (scaling.h, mx and nv).
class TensorScales {
public:
  Type type() const { return type_; } ///< ue8m0 or ue4m3
  int rows() const { return rows_; }
  int blocks() const { return blocks_; }
  Value address() const { return address_; }

  /// Those of `rows` from `first` on, both multiples of 32.
  TensorScales slice(int first, int rows, Where where = Where::current()) const;

  /// Copy them from shared memory (tcgen05.cp.32x128b.warpx4), in one_thread;
  /// what the same thread multiplies behind it uses them. `from` has their type
  /// and no swizzle, and is as large as their pieces of 512 bytes, which lie in
  /// it as in memory: those of the first 128 rows come first. Of a pair each
  /// CTA's go from its own shared memory to its own tensor memory.
  void copy(const SharedTile &from, Where where = Where::current()) const;

private:
  friend struct Make;
  TensorScales(Value address, Type type, int rows, int blocks, int pitch,
               int cta_group)
      : address_(address), type_(type), rows_(rows), blocks_(blocks),
        pitch_(pitch), cta_group_(cta_group) {}
  friend class TensorTile;

  Value address_;
  Type type_;
  int rows_, blocks_;
  int pitch_; ///< columns from four blocks of K to the next four
  int cta_group_;
};

/// What one multiplication does besides a * b.
struct TensorMmaOptions {
  /// An i1: add to what the tile holds. Left out: overwrite it.
  std::optional<Value> add = {};
  bool negate_a = false, negate_b = false; ///< of floats
  /// Of the rows of a and of the columns of b: both or none; of a pair a's of
  /// this CTA, and b's of all columns in each.
  std::optional<TensorScales> a_scales = {}, b_scales = {};
};

/// How the registers of a warp lie in its lanes of tensor memory: the shapes of
/// tcgen05.ld and st. Each of a warpgroup's warps takes its 32 lanes, or those
/// 16 that hold rows of a tile of 64.
enum class TensorShape : std::uint8_t {
  b32x32,   ///< .32x32b: a row in each thread; of 128 rows
  b16x64,   ///< .16x64b
  b16x128,  ///< .16x128b
  b16x256,  ///< .16x256b: of 64 rows RegisterLayout::accumulator
  b16x32x2, ///< .16x32bx2: half a row in each thread
};

/// A tile in tensor memory: a row in each lane (of 64 rows: in the first 16
/// lanes of each warp's 32).
class TensorTile {
public:
  Type type() const { return type_; }
  int rows() const { return rows_; } ///< of this CTA
  int columns() const { return columns_; }
  int cta_group() const { return cta_group_; }
  /// Lane and column: the 32 bits that instructions take.
  Value address() const { return address_; }

  /// `columns` of it from `first` on.
  TensorTile slice(int first, int columns,
                   Where where = Where::current()) const;

  /// tile = a * b, or tile + a * b, with a [rows, K] and b [K, columns]; of a
  /// pair of CTAs each gives its rows of a and half the columns of b. Called in
  /// one_thread, of a pair by the even CTA. Which operand is K-major follows
  /// from how it is stored, as for wgmma. The types:
  ///
  ///     f16 bf16               into f32 and f16 (f16 of f16 alone)
  ///     tf32                   into f32
  ///     e4m3 e5m2 e2m3 e3m2    any two of them, into f32 and f16
  ///     i8 u8                  any two of them, into i32; not on sm_103a
  ///
  /// and with factors, K-major, of 128 rows in each CTA, into f32:
  ///
  ///     e4m3 e5m2 e2m3 e3m2    ue8m0 of 32 elements (kind mxf8f6f4)
  ///     e2m1                   ue8m0 of 32 (mxf4), ue4m3 of 16 (mxf4nvf4)
  ///
  /// Sums of f16 are a tile of TensorMemory::half_sums. Becomes one tcgen05.mma
  /// per 32 bytes of K. Products of one thread are done
  /// in their order. What threads wrote to the operands needs fence_async
  /// before they synchronise with this one.
  void mma(const SharedTile &a, const SharedTile &b,
           const TensorMmaOptions &options = {},
           Where where = Where::current()) const;
  /// The same with a in tensor memory: f16 and bf16 two to a column.
  void mma(const TensorTile &a, const SharedTile &b,
           const TensorMmaOptions &options = {},
           Where where = Where::current()) const;

  /// The elements, a row in each thread of the calling warpgroup
  /// (RegisterLayout::row_per_thread); the product was waited for, and
  /// tensor_fence_after stands behind that wait. Waits for its own loads
  /// (tcgen05.ld, tcgen05.wait::ld).
  RegisterTile load(Where where = Where::current()) const;
  /// The same with the registers of another shape.
  RegisterTile load(TensorShape shape, Where where = Where::current()) const;
  /// Where `load` puts the elements.
  RegisterLayout layout(TensorShape shape,
                        Where where = Where::current()) const;
  /// Write `tile`, of this type and shape and laid out as one of load's, and
  /// wait until it is there (tcgen05.st, tcgen05.wait::st).
  void store(const RegisterTile &tile, Where where = Where::current()) const;

private:
  friend struct Make;
  TensorTile(Value address, Type type, int rows, int columns, int cta_group,
             bool is_spread = false)
      : address_(address), type_(type), rows_(rows), columns_(columns),
        cta_group_(cta_group), is_spread_(is_spread) {}

  /// Columns of 32 bits that so many elements of a row take.
  int words(int columns) const;

  Value address_;
  Type type_;
  int rows_, columns_, cta_group_;
  bool is_spread_; ///< elements of 16 bits have a column each
};

/// Tiles side by side.
class TensorTileArray {
public:
  int size() const { return count_; }
  /// A literal index is checked against the size.
  TensorTile operator[](At index) const;

private:
  friend struct Make;
  TensorTileArray(TensorTile first, int count) : first_(first), count_(count) {}

  TensorTile first_;
  int count_;
};

struct TensorMemoryOptions {
  int cta_group = 1; ///< CTAs that multiply together, 1 or 2; of a kernel
  int warp = 0;      ///< of the CTA, that allocates and frees
};

/// Tensor memory of this CTA. It is freed when all threads have come to the end
/// of the kernel; so it cannot leak, nor be freed early or twice.
class TensorMemory {
public:
  /// `columns` of it: a power of two from 32 to 512. Synchronises the CTA, or
  /// the cluster of a pair: all threads must reach it, outside roles.
  TensorMemory(KernelBuilder &kb, int columns,
               const TensorMemoryOptions &options = {},
               Where where = Where::current());
  TensorMemory(const TensorMemory &) = delete;

  int columns() const { return columns_; }
  int cta_group() const { return options_.cta_group; }
  /// A tile from column `first` on: 64 or 128 rows (of a pair 128 in each CTA),
  /// f32 or i32 for sums, 16-bit types for an operand a.
  TensorTile tile(Type type, int rows, int columns, int first = 0,
                  Where where = Where::current()) const;
  /// A tile for sums of f16. They take as much as those of f32, a column each.
  TensorTile half_sums(int rows, int columns, int first = 0,
                       Where where = Where::current()) const;
  /// Factors from column `first` on, ue8m0 or ue4m3: `rows` a multiple of 128,
  /// `blocks` of K a multiple of 4; they take tensor_scale_columns of it.
  TensorScales scales(Type type, int rows, int blocks, int first,
                      Where where = Where::current()) const;
  /// `count` such tiles, one behind the other.
  TensorTileArray tiles(Type type, int rows, int columns, int count,
                        int first = 0, Where where = Where::current()) const;

private:
  Value base_;
  int columns_;
  TensorMemoryOptions options_;
};

inline int tensor_scale_columns(int rows, int blocks) {
  return rows / 32 * (blocks / 4);
}

/// Before a thread tells others, by a barrier, that it has loaded or stored
/// tensor memory (tcgen05.fence::before_thread_sync).
void tensor_fence_before(Where where = Where::current());
/// After it was told so, or that a product is finished
/// (tcgen05.fence::after_thread_sync).
void tensor_fence_after(Where where = Where::current());

} // namespace kiln
