// kiln.h: everything.
#pragma once

#include <kiln/assemble.h>
#include <kiln/builder.h>
#include <kiln/compile.h>
#include <kiln/control.h>
#include <kiln/device.h>
#include <kiln/device_description.h>
#include <kiln/dim.h>
#include <kiln/environment.h>
#include <kiln/error.h>
#include <kiln/gemm.h>
#include <kiln/kernel.h>
#include <kiln/mbarrier.h>
#include <kiln/memory.h>
#include <kiln/pipeline.h>
#include <kiln/print.h>
#include <kiln/reference.h>
#include <kiln/sim.h>
#include <kiln/tensor_map.h>
#include <kiln/threads.h>
#include <kiln/tma.h>
#include <kiln/types.h>
#include <kiln/value.h>
#include <kiln/wgmma.h>
