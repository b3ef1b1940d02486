// kernel.h: the name that programs include; what it declares is in kiln/run/kernel.h.
#pragma once

#include <kiln/run/kernel.h>
