// Tcgen05Product: one multiplication of the tensor core into tensor memory.
#pragma once

#include "sim/units/matrix/Tcgen05.h"
#include "sim/units/matrix/Tcgen05Descriptor.h"

namespace kiln::sim {

/// What a tcgen05.mma says.
struct TensorProduct {
  TensorForm form;
  AddressOperand d, tensorA, metadata, scaleA, scaleB;
  Reg descriptorA, descriptorB, instruction;
  std::vector<Reg> disabled; ///< lanes of D that stay as they are: masks
  Pred isAdded;
  int shiftD = 0; ///< D is multiplied by 2^-shift first
};

/// The same with the values of the thread that has issued it.
struct IssuedProduct {
  const TensorProduct *product = nullptr;
  TensorShape shape;
  std::vector<Cta *> ctas;
  TensorAddress d, tensorA, metadata, scaleA, scaleB;
  OperandView viewA, viewB; ///< in each of the CTAs
  std::vector<std::uint32_t> disabled;
  bool isAdded = false;
};

/// How the rows and columns of an accumulator lie in a CTA's tensor memory.
class AccumulatorLayout {
public:
  AccumulatorLayout(const TensorForm &form, const TensorShape &shape);

  TensorAddress at(int row, int column) const {
    return {static_cast<std::uint32_t>(row % chunk_ + row / chunk_ * stride_ +
                                       column / width_ * side_),
            static_cast<std::uint32_t>(column % width_)};
  }
  /// Row is lane and column is column.
  bool isPlain() const { return rows_ == 128; }
  int rows() const { return rows_; }
  /// Everything that it covers from `address` on.
  std::vector<TensorRange> ranges(TensorAddress address) const;
  /// The same for rows of an operand A of so many columns, which each half of
  /// the lanes has for itself.
  std::vector<TensorRange> rowRanges(TensorAddress address,
                                     std::uint32_t columns) const;

private:
  int rows_;
  int chunk_ = 128, stride_ = 128; ///< lanes of rows next to each other
  int width_;                      ///< columns next to each other
  int side_ = 0;                   ///< lanes from one such block to the next
};

/// Columns that operand A takes in tensor memory, or a row of it in bytes / 4.
inline constexpr std::uint32_t kTensorAColumns = 8;

/// Columns that the metadata of a sparse A take.
std::uint32_t metadataColumns(const TensorShape &shape);
/// A sparse A, of which `there` has the elements that are there, as [k][row] of
/// `rows`, spread over all columns; `out` is [k][row] too. Rows whose metadata
/// nobody wrote are noted, with where they were read first.
void spreadRows(Warp &warp, const Op &op, const IssuedProduct &issued, Cta &cta,
                int rows, const float *there, float *out,
                std::vector<bool> &unwritten, std::uint32_t &origin);

/// What `op` of a warp has issued is done.
void multiply(Warp &warp, const Op &op, const IssuedProduct &issued);

} // namespace kiln::sim
