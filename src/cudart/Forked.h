// Forked: a child of a process that has opened the device.
//
// It has the memory of its parent and one of its threads; the others, which may
// hold any lock, are not there. As with CUDA, nothing works in it.
#pragma once

namespace kiln::cudart {

/// From now on children of this process know that they are such.
void noteDeviceOpened();
bool isForkedChild();

} // namespace kiln::cudart
