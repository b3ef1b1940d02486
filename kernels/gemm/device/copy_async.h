// copy_async: a tile of a matrix, copied by all threads of a CTA in the
// background.
#pragma once

#include <kiln/language/memory/memory.h>

namespace kiln::gemm_kernel {

/// Copy the tile at (row, column) of a matrix whose rows begin on 16 bytes, in
/// pieces of as many (cp.async); zeros where it reaches beyond the matrix. The
/// `threads` of the CTA call, and commit.
void copy_async(const SharedTile &to, const Tensor &from, const Value &row,
                const Value &column, int threads);

} // namespace kiln::gemm_kernel
