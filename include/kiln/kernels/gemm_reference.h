// gemm_reference.h: a GemmProblem as the reference computes it.
//
//     ReferenceGemm reference = reference_of(problem);
//     reference.a = a.data(), reference.b = b.data();
//     Comparison result = compare_gemm(reference, d.data());
#pragma once

#include <kiln/base/export.h>
#include <kiln/kernels/gemm.h>
#include <kiln/measure/reference.h>

namespace KILN_API kiln {

/// The problem with every number known; its memory, and alpha and beta, are the
/// caller's to fill in. Throws UserError where a dimension is known only at
/// launch.
ReferenceGemm reference_of(const GemmProblem &problem);

} // namespace kiln
