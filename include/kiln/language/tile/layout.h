// layout.h: RegisterLayout, which thread holds which element of a tile in which
// register.
//
// A tile that is spread over the registers of many threads is a map
//
//     (thread, register) -> (row, column)
//
// The hardware fixes some of these maps (what a wgmma leaves in its
// accumulator, what it takes as operand A); others are chosen so that memory is
// read in long pieces. All of them are sums of digits: count the threads in
// mixed radix, the fastest digit first, and let each digit move the element by
// a fixed step; the same for the registers. A digit is a mode:
//
//     {extent, row, column}: 0 .. extent - 1, each step so many rows and
//                            columns further
//
// A worked example, the accumulator of a wgmma m64n16. A thread holds 8
// elements:
//
//     threads    4 : (0, 2)    four neighbours hold two columns each
//                8 : (1, 0)    the next eight groups of them a row each
//                4 : (16, 0)   the four warps 16 rows each
//     registers  2 : (0, 1)    two neighbours in a row
//                2 : (8, 0)    then eight rows further down
//                2 : (0, 8)    then eight columns to the right
//
//     thread 37 = 1 + 4 * (1 + 8 * 1)  ->  row 1 + 16, column 2
//     register 6 = 0 + 2 * (1 + 2 * 1) ->  row 8, column 8
//     together: element (25, 10)
//
// Modes that continue one another are one (4 : (0, 2) and then 2 : (0, 8) are
// 8 : (0, 2)), so layouts that put every element in the same place are equal,
// whatever they are called. That is how one sees that an accumulator rounded to
// f16 lies as the next wgmma wants its operand A:
//
//     RegisterLayout::accumulator(64, 64) ==
//         RegisterLayout::wgmma_operand(f16, 64, 64)
//
// Layouts are plain data and know nothing of kernels: RegisterTile
// (register_tile.h) is a tile that has one.
#pragma once

#include <kiln/base/error.h>
#include <kiln/base/export.h>
#include <kiln/base/types.h>
#include <kiln/base/where.h>

#include <string>
#include <vector>

namespace KILN_API kiln {

/// A digit of a thread or register number, and where it moves the element.
struct LayoutMode {
  int extent = 1;
  int row = 0, column = 0; ///< step of the digit

  bool operator==(const LayoutMode &) const = default;
};

/// An element of a tile.
struct TileElement {
  int row = 0, column = 0;

  bool operator==(const TileElement &) const = default;
};

/// A place in the registers of the threads that share a tile.
struct RegisterPlace {
  int thread = 0, reg = 0;

  bool operator==(const RegisterPlace &) const = default;
};

struct RegisterSlice;

class RegisterLayout {
public:
  /// Any layout, the fastest mode first. `name` is for people. Every element
  /// must be held equally often, and by no thread twice; thread modes that move
  /// nothing, {2, 0, 0}, say that so many threads hold copies of one element.
  RegisterLayout(std::string name, int rows, int columns,
                 std::vector<LayoutMode> thread_modes,
                 std::vector<LayoutMode> register_modes,
                 Where where = Where::current());

  // Of a warpgroup, 128 threads (PTX, "Register Fragments and Shared Memory
  // Matrix Layouts").

  /// What wgmma accumulates into: rows a multiple of 64, columns of 8. 64 rows
  /// further down come columns / 2 registers later.
  static RegisterLayout accumulator(int rows, int columns,
                                    Where where = Where::current());
  /// Operand A of wgmma in registers: 64 rows by 32 bytes of k for one
  /// instruction, repeated along k, then along the rows. 32-bit registers hold
  /// neighbours: of f16 and bf16 two, of 8-bit types four, of tf32 one.
  static RegisterLayout wgmma_operand(Type type, int rows, int k,
                                      Where where = Where::current());

  // Of a warp, 32 threads (PTX, "Matrix Fragments for mma.m16n8k16" and its
  // neighbours).

  /// What mma.sync m16n8 accumulates into: rows a multiple of 16, columns of 8.
  static RegisterLayout mma_accumulator(int rows, int columns,
                                        Where where = Where::current());
  /// Operand A, [rows, k]: 16 rows by 32 bytes of k, repeated along k, then
  /// along the rows.
  static RegisterLayout mma_operand_a(Type type, int rows, int k,
                                      Where where = Where::current());
  /// Operand B, [k, columns]: 32 bytes of k by 8 columns, repeated along k,
  /// then along the columns.
  static RegisterLayout mma_operand_b(Type type, int k, int columns,
                                      Where where = Where::current());

  // Of any number of threads.

  /// Row t is held by thread t.
  static RegisterLayout row_per_thread(int threads, int columns,
                                       Where where = Where::current());
  /// Consecutive threads take consecutive vectors of `vector` elements along a
  /// row and go on in the next one: what memory likes best. As many threads
  /// stand side by side as divide the vectors of a row; the rows are a multiple
  /// of what the threads take together.
  static RegisterLayout strided(int threads, int rows, int columns,
                                int vector = 1, Where where = Where::current());

  const std::string &name() const { return name_; }
  int rows() const { return rows_; }
  int columns() const { return columns_; }
  int threads() const;
  /// Elements each thread holds.
  int registers() const;
  /// How many threads hold each element.
  int copies() const { return threads() * registers() / (rows_ * columns_); }
  const std::vector<LayoutMode> &thread_modes() const { return threads_; }
  const std::vector<LayoutMode> &register_modes() const { return registers_; }

  /// The element a thread holds in a register.
  TileElement element(int thread, int reg) const;
  /// Where an element is, by thread; one place unless there are copies.
  std::vector<RegisterPlace> holders(int row, int column) const;

  // Views: every element stays in its register and gets another place in the
  // tile.

  /// [columns, rows].
  RegisterLayout transpose(Where where = Where::current()) const;
  /// The elements in row-major order, in rows of another length. The layout
  /// must be a sum of digits again: a row of one shape divides into rows of
  /// the other.
  RegisterLayout reshape(int rows, int columns,
                         Where where = Where::current()) const;
  /// The tile of `rows` x `columns` that begins at (row, column), of the same
  /// threads. Each thread must hold a part of it, in the same registers.
  RegisterSlice slice(int row, int column, int rows, int columns,
                      Where where = Where::current()) const;
  /// One element per row, [rows, 1]: every thread that holds elements of a row
  /// holds its value. What a reduction of the rows gives.
  RegisterLayout per_row(Where where = Where::current()) const;

  /// For each register of `tile`, the register of this layout that holds the
  /// same element in the same thread, where a side of 1 here stands for every
  /// row or column. Empty: a thread would need what another one holds.
  std::vector<int> registers_for(const RegisterLayout &tile) const;

  /// "accumulator 64x16: threads 4:(0,2) 8:(1,0) 4:(16,0), registers 2:(0,1)
  /// 2:(8,0) 2:(0,8)"
  std::string to_string() const;

  /// The same place for every element, whatever the name.
  bool operator==(const RegisterLayout &other) const;

private:
  void check(const SourceLine &where) const;

  std::string name_;
  int rows_, columns_;
  std::vector<LayoutMode> threads_, registers_;
};

/// A part of a tile, and the registers of the whole that hold it.
struct RegisterSlice {
  RegisterLayout layout;
  std::vector<int> registers;
};

} // namespace kiln
