// wgmma.h: the tensor core of Hopper, and the accumulator it writes.
//
// A warpgroup multiplies an [M, K] tile by a [K, N] tile of shared memory into
// registers. The multiplication is asynchronous: it is issued, committed to a
// group, and waited for; in between neither its registers nor its shared memory
// may be touched. Accumulator keeps that order by itself: reading it waits.
#pragma once

#include <kiln/memory.h>
#include <kiln/value.h>

#include <vector>

namespace kiln {

struct StoreOptions {
  /// The whole tile lies inside the tensor: nothing is compared.
  bool is_inside = false;
  /// The origin's column is a multiple of this; with an even one neighbours
  /// are stored together.
  int column_multiple = 1;
};

class Accumulator {
public:
  /// `rows` x `columns` in the registers of one warpgroup: rows a multiple of
  /// 64, columns of 8 up to 256. f32 for float operands, i32 for i8 and u8. Its
  /// first mma overwrites what it holds (scale-d = 0), so nothing is zeroed.
  Accumulator(Type type, int rows, int columns,
              std::source_location where = std::source_location::current());
  Accumulator(const Accumulator &) = delete;

  /// accumulator += a * b, with a [rows, K] and b [K, columns]. Which operand
  /// is K-major follows from how it is stored: an a stored [rows, K] is, one
  /// stored [K, rows] and seen through transpose() is not. Issues the
  /// instructions and commits them as one group; does not wait.
  ///
  /// Becomes wgmma.fence, one wgmma.mma_async per 64 rows and 32 bytes of K,
  /// wgmma.commit_group.
  void mma(const SharedTile &a, const SharedTile &b,
           std::source_location where = std::source_location::current());
  /// Wait until at most `groups` of the committed groups are in flight
  /// (wgmma.wait_group). No use of the registers can move above it.
  void wait(int groups,
            std::source_location where = std::source_location::current());
  /// Start over: the next mma overwrites.
  void reset(std::source_location where = std::source_location::current());

  /// Write to `tensor` at `origin` (row, column) in the tensor's type, leaving
  /// out what lies outside it. Waits for what is in flight.
  void store(const Tensor &tensor, const std::vector<At> &origin,
             const StoreOptions &options = {},
             std::source_location where = std::source_location::current());

  /// What the thread holds in register `index`, 0 .. registers() - 1. Waits for
  /// what is in flight.
  Value element(int index,
                std::source_location where = std::source_location::current());
  /// Where in the tile that element lies, for thread t of the warpgroup (PTX,
  /// "Register Fragments and Shared Memory Matrix Layouts"): in 64 rows,
  ///
  ///     row    = 16 * (t / 32) + t % 32 / 4 + 8 * (index / 2 % 2)
  ///     column = 8 * (index / 4) + 2 * (t % 4) + index % 2
  ///
  /// so that registers 2i and 2i + 1 are neighbours in a row; 64 rows further
  /// down come columns() / 2 registers later.
  Value fragment_row(int index, std::source_location where =
                                    std::source_location::current()) const;
  Value fragment_column(int index, std::source_location where =
                                       std::source_location::current()) const;

  Type type() const { return type_; }
  int rows() const { return rows_; }
  int columns() const { return columns_; }
  /// Registers a thread holds of it.
  int registers() const { return rows_ * columns_ / 128; }

private:
  Type type_;
  int rows_, columns_;
  std::vector<void *> slots_; ///< one variable per register
  void *added_ = nullptr;     ///< variable: the next mma adds
  const void *kernel_ = nullptr;
  bool is_in_flight_ = false;
};

} // namespace kiln
