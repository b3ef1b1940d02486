// compile.h: the name that programs include; what it declares is in kiln/run/compile.h.
#pragma once

#include <kiln/run/compile.h>
