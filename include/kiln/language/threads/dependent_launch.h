// dependent_launch.h: a kernel that begins before the one ahead of it ends.
//
// Launched as a programmatic dependent, a kernel may start while its
// predecessor runs: it sets up barriers and maps, and waits before it touches
// what the predecessor writes. A kernel that waits is launched so: every thread
// that reads or writes global memory of others waits first.
//
//     wait_for_dependencies();   // after the setup, before the first access
//     launch_dependents();       // the next one may set itself up
//
// Between kernels that do neither launches follow one another. The simulator
// reports what is touched before the wait (pdl-wait). Before sm_90 there are no
// dependent launches: launches follow one another, and both calls are nothing.
#pragma once

#include <kiln/base/export.h>
#include <kiln/base/where.h>

namespace KILN_API kiln {

/// Wait until the kernels this one depends on have ended and their writes are
/// visible (griddepcontrol.wait).
void wait_for_dependencies(Where where = Where::current());
/// Let the kernels that depend on this one start, as soon as every CTA has said
/// so or ended (griddepcontrol.launch_dependents).
void launch_dependents(Where where = Where::current());

} // namespace kiln
