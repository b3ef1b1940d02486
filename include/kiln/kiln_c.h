// kiln_c.h: the name that programs include; what it declares is in kiln/c/kiln_c.h.
#pragma once

#include <kiln/c/kiln_c.h>
