// memory.h: global tensors and shared tiles.
#pragma once

#include <kiln/base/export.h>
#include <kiln/language/memory/tensor_map.h>
#include <kiln/language/value/value.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace KILN_API kiln {

/// What the caches may do with the bytes of one access to global memory. A hint
/// changes speed, never values, and holds for that access alone. In PTX it is a
/// modifier of ld and st.
enum class CacheHint : std::uint8_t {
  none,
  streaming,   ///< .cs: read or written once, evicted first from L1 and L2
  last_use,    ///< .lu: loads only; the line is not needed again
  no_allocate, ///< .L1::no_allocate: leave L1 to others
  evict_first, ///< .L1::evict_first
  evict_last,  ///< .L1::evict_last: keep it in L1 as long as possible
};

/// One element of a tensor or tile: reads where a Value is wanted, writes where
/// it is assigned.
class Element {
public:
  Element(const Element &) = default;
  operator Value() const;
  void operator=(At value) const;
  void operator=(const Element &other) const { *this = At(Value(other)); }

  /// The same with a cache hint, in global memory:
  ///
  ///     Value once = x(i).load(CacheHint::streaming);  // ld.global.cs.b32
  ///     y(i).store(once, CacheHint::no_allocate);
  Value load(CacheHint hint) const;
  void store(At value, CacheHint hint) const;

  Type type() const { return type_; }
  /// For inline_ptx: 64 bits, in the state space the element lies in.
  Value address() const { return address_; }
  /// Which argument of the contract it belongs to, or one of these.
  int argument() const { return argument_; }
  static constexpr int in_shared = -1;     ///< shared memory
  static constexpr int at_an_address = -2; ///< KernelBuilder::tensor_at
  bool is_shared() const { return argument_ == in_shared; }

private:
  friend struct Make;
  Element(Value address, Type type, int argument, Where where)
      : address_(address), type_(type), argument_(argument), where_(where) {}

  Value address_;
  Type type_;
  int argument_;
  Where where_;
};

/// Fetch the line of a tensor's element into L2 and go on; with `into_l1` into
/// L1 too (prefetch.global.L2).
void prefetch(const Element &element, bool into_l1 = false,
              Where where = Where::current());

/// A tensor in global memory, row-major unless strides say otherwise, or a view
/// of one: the same memory with other indices.
class Tensor {
public:
  Type type() const { return type_; }
  const std::vector<Dim> &shape() const { return shape_; }
  const std::vector<Dim> &strides() const { return strides_; } ///< elements
  /// Of the contract; Element::at_an_address: of KernelBuilder::tensor_at.
  int argument() const { return argument_; }
  Value base() const { return base_; }

  Element operator()(At i) const;
  Element operator()(At i, At j) const;
  Element operator()(At i, At j, At k) const;
  Element at(const std::vector<At> &indices) const;

  /// Read `count` consecutive elements of the innermost dimension, from there
  /// on, in one instruction (ld.global.v4.b32): 1, 2, 4, 8 or 16 elements of
  /// at most 16 bytes together, aligned to their size. The contract asks for a
  /// buffer aligned to them; rows must be a multiple of them apart.
  ///
  ///     std::vector<Value> four = x.load_vector({row, 4 * thread_id()}, 4);
  std::vector<Value> load_vector(const std::vector<At> &indices, int count,
                                 CacheHint hint = CacheHint::none) const;
  /// Write `values` in the same way (st.global.v4.b32).
  void store_vector(const std::vector<At> &indices,
                    const std::vector<Value> &values,
                    CacheHint hint = CacheHint::none) const;

  // Views.
  //
  //     Tensor part = x.index(0, batch)          // [batch, m, k] -> [m, k]
  //                    .slice(0, row, 64)        // 64 rows from there on
  //                    .transpose();             // [k, 64]

  /// `extent` indices of a dimension from `start` on, counted from 0 again. It
  /// may reach beyond the tensor: `bound` says how much is there. `multiple`
  /// divides `start`, which is known by itself of literals and Dims.
  Tensor slice(int dimension, At start, Dim extent, int multiple = 1) const;
  /// The same with an extent, an i32, that is known only to the kernel: what
  /// is loaded or stored beyond it is left out.
  Tensor slice(int dimension, At start, const Value &extent,
               int multiple = 1) const;
  /// One index of a dimension, which is gone.
  Tensor index(int dimension, At at, int multiple = 1) const;
  /// The dimensions in another order: dimension i is `order[i]` of this one.
  Tensor permute(const std::vector<int> &order,
                 Where where = Where::current()) const;
  /// Of two dimensions.
  Tensor transpose(Where where = Where::current()) const;
  /// As many elements in another shape; they must lie one behind the other, and
  /// the tensor must not be a slice that could reach beyond its end.
  Tensor reshape(const std::vector<Dim> &shape,
                 Where where = Where::current()) const;

  /// How many indices of a dimension lie inside, i32: shape() but for slices.
  Value bound(int dimension, Where where = Where::current()) const;
  /// Whether `size` indices of a dimension from 0 on lie inside, whatever the
  /// arguments are.
  bool surely_holds(int dimension, std::int64_t size) const;
  /// A number that divides `bound`, whatever the arguments are.
  std::int64_t bound_multiple(int dimension) const;
  /// A number that divides the elements before the first one in the buffer; 0:
  /// there are none.
  std::int64_t base_multiple() const { return base_multiple_; }
  bool is_view() const { return is_view_; }

private:
  friend struct Make;
  friend class KernelBuilder;
  Tensor(Value base, Type type, int argument, std::vector<Dim> shape,
         std::vector<Dim> strides)
      : base_(base), type_(type), argument_(argument), shape_(std::move(shape)),
        strides_(std::move(strides)), bounds_(shape_.size()) {}

  /// What a slice knows of its end.
  struct Bound {
    Value value; ///< invalid: the shape
    std::int64_t multiple = 0;
  };
  /// Moved along a dimension.
  Tensor moved(int dimension, const At &by, std::int64_t multiple) const;

  Value base_;
  Type type_;
  int argument_;
  std::vector<Dim> shape_, strides_;
  std::vector<Bound> bounds_; ///< one per dimension
  std::int64_t base_multiple_ = 0;
  bool is_view_ = false;
};

/// The widest swizzle whose width divides rows of so many elements: 128, 64 or
/// 32 bytes, or none.
Swizzle default_swizzle(Type type, int columns);

/// How a tile lies in shared memory: rows of at most the swizzle's width side
/// by side in panels, each panel `rows` high.
///
///     64x128 f16 with a 128-byte swizzle: two panels of 64x64
///     panel 0: rows 0..63, columns 0..63      64 rows x 128 bytes
///     panel 1: rows 0..63, columns 64..127    64 rows x 128 bytes
///
/// One panel is what one TMA copy (one box) writes. Without a swizzle there is
/// one panel, unless `panel` says otherwise: panels of 16 bytes are columns of
/// the core matrices (8 rows of 16 bytes) that wgmma reads without a swizzle.
struct TileLayout {
  Type type = Type::f16;
  int rows = 1, columns = 1;
  Swizzle swizzle = Swizzle::none;
  /// Columns of a panel where there is no swizzle; 0: all.
  int panel = 0;

  /// With the widest swizzle that fits: what TMA, wgmma and threads share best.
  static TileLayout of(Type type, int rows, int columns);

  int panel_columns() const;
  int panels() const { return columns / panel_columns(); }
  int row_bytes() const {
    return static_cast<int>(bytes_of(type, panel_columns()));
  }
  int panel_bytes() const { return rows * row_bytes(); }
  int bytes() const { return panels() * panel_bytes(); }
  /// Where the swizzle's pattern must start: 1024, 512, 256, or 128 for TMA.
  int alignment_bytes() const;
  /// Bytes from one tile of an array to the next.
  int stride_bytes() const;
  /// The byte of element (row, column), swizzled.
  int offset_bytes(int row, int column) const;
  /// "64x128 f16, swizzle 128"; "64x64 f16, panels of 8"
  std::string to_string() const;
  /// Throws UserError where the shape does not fit the swizzle.
  void check(const SourceLine &where) const;
};

/// A tile in shared memory, or a part of one.
class SharedTile {
public:
  SharedTile() = default;

  /// Of the whole tile, as it is stored.
  const TileLayout &layout() const { return layout_; }
  /// Where it begins. A slice has no address of its own, for a swizzle counts
  /// from the beginning of the whole: whole().address(), or that of an element.
  Value address(Where where = Where::current()) const;
  /// Seen as its transpose: [columns, rows]. What is stored does not move.
  SharedTile transpose() const;
  bool is_transposed() const { return is_transposed_; }
  int rows() const { return is_transposed_ ? columns_ : rows_; }
  int columns() const { return is_transposed_ ? rows_ : columns_; }

  /// `rows` x `columns` of it, from (row, column) on. Elements stay where the
  /// whole tile has them, swizzle and all.
  SharedTile slice(At row, At column, int rows, int columns) const;
  /// The elements in row-major order, in rows of another length: of a whole
  /// tile without a swizzle, stored in one panel.
  SharedTile reshape(int rows, int columns,
                     Where where = Where::current()) const;
  /// The tile it is a slice of, as it is stored.
  SharedTile whole() const { return SharedTile(address_, layout_); }
  bool is_whole() const {
    return rows_ == layout_.rows && columns_ == layout_.columns &&
           has_constant_origin();
  }
  /// Where the slice begins in the whole tile as it is stored, but for what is
  /// known only at run time.
  int origin_row() const { return origin_row_; }
  int origin_column() const { return origin_column_; }
  bool has_constant_origin() const {
    return !runtime_row_.is_valid() && !runtime_column_.is_valid();
  }
  /// A number that divides the column at which it begins; 0: it is 0.
  int origin_column_multiple() const {
    return runtime_column_.is_valid() ? 1 : origin_column_;
  }

  Element operator()(At row, At column) const;

  /// `count` neighbours in a row in one instruction (ld.shared.v4.b32): 1, 2,
  /// 4, 8 or 16 elements of at most 16 bytes together; `column` is a multiple
  /// of `count`. Swizzles move pieces of 16 bytes, so neighbours stay
  /// neighbours; those of a transposed tile are not.
  std::vector<Value> load_vector(At row, At column, int count) const;
  void store_vector(At row, At column, const std::vector<Value> &values) const;

private:
  friend struct Make;
  SharedTile(Value address, TileLayout layout)
      : address_(address), layout_(layout), rows_(layout.rows),
        columns_(layout.columns) {}

  Value address_; ///< in shared memory
  TileLayout layout_;
  bool is_transposed_ = false;
  // Of the part, in rows and columns as they are stored.
  int rows_ = 1, columns_ = 1;
  int origin_row_ = 0, origin_column_ = 0;
  Value runtime_row_, runtime_column_; ///< added to the origin where valid
};

/// Tiles of one layout, one behind the other in shared memory: the slots of a
/// ring.
class SharedTileArray {
public:
  SharedTileArray() = default;

  int size() const { return count_; }
  /// Of each tile.
  const TileLayout &layout() const { return layout_; }
  /// A literal index is checked against the size.
  SharedTile operator[](At index) const;

private:
  friend struct Make;
  SharedTileArray(Value address, TileLayout layout, int count)
      : address_(address), layout_(layout), count_(count) {}

  Value address_;
  TileLayout layout_;
  int count_ = 0;
};

/// How a tile in registers is written to a tensor.
struct StoreOptions {
  /// The whole tile lies inside the tensor: nothing is compared.
  bool is_inside = false;
  /// The origin's column is a multiple of this; with an even one neighbours
  /// are stored together.
  int column_multiple = 1;
};

/// What a tensor map parameter copies: a tile, in as many boxes as its swizzle
/// asks for.
struct TmaOptions {
  /// Elements along each dimension of the tensor, outermost first. In shared
  /// memory the last one are columns and all others rows, planes stacked, 256
  /// at most: a tile {2, 8, 64} of a rank-3 tensor is a 16x64 TileLayout.
  std::vector<int> tile;
  Swizzle swizzle = Swizzle::none;
  L2Promotion l2 = L2Promotion::b128;
  OobFill oob = OobFill::zeros;
  Interleave interleave = Interleave::none; ///< of tensors of rank 3 to 5
  /// The tile takes every n-th element, per dimension as in `tile`: 1 to 8, the
  /// innermost 1. Empty: every element.
  std::vector<int> element_strides = {};
  int panel = 0; ///< TileLayout::panel
};

/// What TmaTensor::at changes beside the address; what is empty stays. A map
/// that skips elements (TmaOptions::element_strides) keeps its steps.
struct TensorMapChange {
  /// i32, outermost first, one per dimension.
  std::vector<At> shape = {};
  /// Elements from one to the next, i64, outermost first, of all dimensions but
  /// the innermost; each a multiple of 16 bytes.
  std::vector<At> strides = {};
};

/// A tensor the TMA unit copies: a tensor map among the kernel's parameters.
class TmaTensor {
public:
  const TileLayout &tile() const { return tile_; }
  /// Bytes one load of the tile signals, whatever lies outside the tensor.
  int tile_bytes() const { return tile_.bytes(); }
  int rank() const { return rank_; }
  const std::string &name() const { return name_; }
  /// Of the contract; Element::at_an_address: of `at`.
  int argument() const { return argument_; }
  Value map() const { return map_; }
  /// A map made in the kernel: of this type, tile and rank, for the tensor at
  /// `address`, a u64 and a multiple of 16. `room` is the first of 128 bytes of
  /// global memory, aligned to 128, that nobody else uses before the copies
  /// through the map have landed. All threads of a warp call it together, and
  /// they may use the map; others that wait for them (a barrier) may too.
  ///
  ///     Tensor rooms = kb.tensor("rooms", Type::u8, {experts, 128});
  ///     TmaTensor one = weights.at(pointers(e), rooms(e, 0));
  ///
  /// Becomes tensormap.replace between fence.proxy.tensormap pairs.
  TmaTensor at(At address, const Element &room,
               const TensorMapChange &change = {},
               Where where = Where::current()) const;
  /// The same with a policy of L2 for its copies (tma.h, l2_policy).
  TmaTensor with_policy(const Value &policy,
                        Where where = Where::current()) const;
  /// Not valid where there is none.
  Value policy() const { return policy_; }

private:
  friend struct Make;
  TmaTensor(Value map, TileLayout tile, int rank, std::string name,
            int argument)
      : map_(map), tile_(tile), rank_(rank), name_(std::move(name)),
        argument_(argument) {}

  Value map_, policy_;
  TileLayout tile_;
  int rank_;
  std::string name_;
  int argument_;
};

} // namespace kiln
