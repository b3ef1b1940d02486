// repack: rows of one length into rows of another.
#include "repack.h"

#include <kiln/language/value/control.h>
#include <kiln/language/tile/copy.h>
#include <kiln/language/threads/threads.h>

namespace kiln::gemm_kernel {

/// What a warp copies at once: enough loads in flight to hide their time.
static constexpr int kPieceRows = 8, kPieceRowBytes = 512;

Dim repacked_stride(Type type, const Dim &columns) {
  constexpr int kLineBytes = 128;
  int line = static_cast<int>(elements_in(type, kLineBytes));
  return ceil_div(columns, line) * line;
}

Tensor Repack::add(KernelBuilder &kb, const std::string &name,
                   const Tensor &from) {
  const std::vector<Dim> &shape = from.shape();
  const Dim &rows = shape[shape.size() - 2];
  Dim stride = repacked_stride(from.type(), shape.back());
  std::vector<Dim> strides{stride, 1};
  if (shape.size() == 3)
    strides.insert(strides.begin(), rows * stride);
  Tensor to = kb.workspace(name, from.type(), shape, strides);
  copies_.push_back({from, to});
  return to;
}

/// The `part`-th of as many parts as there are CTAs: their warps take the
/// pieces of a matrix in turns.
static void copy_part(const Value &part, int warps, const Tensor &from,
                      const Tensor &to) {
  const std::vector<Dim> &shape = from.shape();
  int columns = kPieceRowBytes / size_bytes(from.type());
  Dim across = ceil_div(shape.back(), columns);
  Dim down = ceil_div(shape[shape.size() - 2], kPieceRows);
  Dim batch = shape.size() == 3 ? shape[0] : Dim(1);
  Value first = part * warps + warp_id();
  for_range(first, batch * down * across, grid_size() * warps,
            [&](const Value &piece) {
              Value line = piece / across;
              Value column = (piece - line * across) * columns;
              Value row = line % down * kPieceRows;
              auto part = [&](Tensor matrix) {
                if (shape.size() == 3)
                  matrix = matrix.index(0, line / down);
                return matrix.slice(0, row, kPieceRows)
                    .slice(1, column, columns, columns);
              };
              copy(CopyScope::warp, part(to), part(from));
            });
}

void Repack::begin(KernelBuilder &kb, const Dim &ctas) {
  if (copies_.empty())
    return;
  work_.emplace(kb, ctas);
  work_->begin();
}

void Repack::run(int warps, bool launches) const {
  work_->run([&](const Value &part) {
    for (const Copy &one : copies_)
      copy_part(part, warps, one.from, one.to);
  });
  work_->finish(launches);
}

} // namespace kiln::gemm_kernel
