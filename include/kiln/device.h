// device.h: the name that programs include; what it declares is in kiln/run/run.h.
#pragma once

#include <kiln/run/run.h>
