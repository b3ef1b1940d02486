// ClusterLaunch: clusterlaunchcontrol, of the table of TMA instructions.
#pragma once

#include "sim/program/InstructionSet.h"

namespace kiln::sim {

Instruction clusterLaunchControl();

} // namespace kiln::sim
