// sim.h: the name that programs include; what it declares is in kiln/check/sim.h.
#pragma once

#include <kiln/check/sim.h>
