// device.h: the name that programs include; what it declares is in kiln/run/run.h
// and kiln/run/open_device.h.
#pragma once

#include <kiln/run/open_device.h>
#include <kiln/run/run.h>
