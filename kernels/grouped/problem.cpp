// problem: the rows of a grouped GEMM.
#include <kiln/kernels/grouped_gemm.h>

namespace kiln {

std::int64_t GroupedGemmProblem::stored_rows() const {
  return layout == GroupLayout::masked ? std::int64_t{rows} * groups : rows;
}

int GroupedGemmProblem::row_numbers() const {
  return layout == GroupLayout::masked ? groups : groups + 1;
}

} // namespace kiln
