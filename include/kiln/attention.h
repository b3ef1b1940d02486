// attention.h: the name that programs include; what it declares is in kiln/kernels/attention.h.
#pragma once

#include <kiln/kernels/attention.h>
