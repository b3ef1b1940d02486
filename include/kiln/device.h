// device.h: the name that programs include; what it declares is in kiln/run/device.h.
#pragma once

#include <kiln/run/device.h>
