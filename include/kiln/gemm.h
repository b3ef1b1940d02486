// gemm.h: the name that programs include; what it declares is in kiln/kernels/gemm.h.
#pragma once

#include <kiln/kernels/gemm.h>
