// register_tile.h: RegisterTile, a tile spread over the registers of threads.
//
// What a warp, a warpgroup or a CTA works on together: each thread holds some
// of the elements, its RegisterLayout says which. A tile is a variable: it can
// be changed inside loops and branches, and costs the registers it ends up in.
//
//     RegisterTile sum(f32, RegisterLayout::accumulator(64, 32), 0);
//     for_range(0, n, [&](Value i) {
//       for (int r = 0; r < sum.registers(); ++r)
//         sum.set(r, sum.element(r) + x(sum.row(r), sum.column(r) + i * 32));
//     });
//
// A C++ `for` over the registers unrolls: there is no array in the kernel. f16
// and bf16 lie two to a register of the machine, also where a tile is carried
// from turn to turn.
#pragma once

#include <kiln/base/export.h>
#include <kiln/language/tile/layout.h>
#include <kiln/language/memory/memory.h>
#include <kiln/language/value/value.h>

#include <vector>

namespace KILN_API kiln {

class RegisterTile {
public:
  /// Holds nothing yet. The threads of the layout are consecutive ones of the
  /// CTA, thread_id() % layout.threads(): a warp, a warpgroup, a CTA.
  RegisterTile(Type type, RegisterLayout layout,
               Where where = Where::current());
  /// Every element is `fill`.
  RegisterTile(Type type, RegisterLayout layout, At fill);
  /// One value per register, of one type.
  RegisterTile(const RegisterLayout &layout, const std::vector<Value> &values,
               Where where = Where::current());

  /// A tile of its own with the same values.
  RegisterTile(const RegisterTile &other, Where where = Where::current());
  RegisterTile(RegisterTile &&other) noexcept = default;
  /// Take over the values of a tile of the same type and layout. Assigning a
  /// temporary too: a tile changed inside a loop is changed after it.
  RegisterTile &operator=(const RegisterTile &other);

  Type type() const { return type_; }
  const RegisterLayout &layout() const { return layout_; }
  int rows() const { return layout_.rows(); }
  int columns() const { return layout_.columns(); }
  int registers() const { return layout_.registers(); }

  /// What the calling thread holds in register `index`, 0 .. registers() - 1.
  Value element(int index, Where where = Where::current()) const;
  void set(int index, At value);
  /// All of them.
  std::vector<Value> values(Where where = Where::current()) const;
  void fill(At value);

  /// Where in the tile that element lies, of the calling thread; i32.
  Value row(int index, Where where = Where::current()) const;
  Value column(int index, Where where = Where::current()) const;

  // Views. A tile of its own, whose elements are in the same registers.

  RegisterTile transpose(Where where = Where::current()) const;
  /// The elements in row-major order, in rows of another length
  /// (RegisterLayout::reshape).
  RegisterTile reshape(int rows, int columns,
                       Where where = Where::current()) const;
  /// The part of `rows` x `columns` from (row, column) on, of which every
  /// thread must hold some (RegisterLayout::slice):
  ///
  ///     for (int k = 0; k < 64; k += 16)
  ///       use(p.slice(0, k, 64, 16));        // operands of a wgmma each
  RegisterTile slice(int row, int column, int rows, int columns,
                     Where where = Where::current()) const;

  // Memory. Neighbours that a thread holds go in one instruction where the
  // memory is aligned for it (st.shared.v2.b32). Of copies of an element the
  // first one is stored.

  /// Write to a shared tile of the same shape and type.
  void store(const SharedTile &to, Where where = Where::current()) const;
  /// Write to a tensor of the same type at `origin` (row, column), leaving out
  /// what lies outside it.
  void store(const Tensor &to, const std::vector<At> &origin,
             const StoreOptions &options = {},
             Where where = Where::current()) const;

private:
  Type type_;
  RegisterLayout layout_;
  Where where_; ///< for what an assignment has to say
  const void *kernel_ = nullptr;
  std::vector<void *> slots_; ///< one variable per register, or per pair
};

struct LoadOptions {
  /// The whole tile lies inside the tensor: nothing is compared.
  bool is_inside = false;
  /// The origin's column is a multiple of this; the more, the more neighbours
  /// are loaded together.
  int column_multiple = 1;
  /// What elements outside the tensor are.
  At fill = 0;
};

/// A tile read from a shared tile of the layout's shape.
RegisterTile load_tile(const RegisterLayout &layout, const SharedTile &from,
                       Where where = Where::current());
/// A tile read from a tensor at `origin` (row, column).
RegisterTile load_tile(const RegisterLayout &layout, const Tensor &from,
                       const std::vector<At> &origin,
                       const LoadOptions &options = {},
                       Where where = Where::current());

} // namespace kiln
