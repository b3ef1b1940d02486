// grouped_gemm.h: the name that programs include; what it declares is in kiln/kernels/grouped_gemm.h.
#pragma once

#include <kiln/kernels/grouped_gemm.h>
