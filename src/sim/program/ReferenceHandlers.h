// ReferenceHandlers: handlers that do the same as faster ones, one lane after
// another and with nothing but the instructions of any processor.
//
// They are what a faster handler falls back to, or is compiled from. A program
// can be decoded to run by them alone: whatever the fast ways do, results,
// findings and logical time must be the same.
#pragma once

#include "sim/program/Program.h"

namespace kiln::sim {

/// `fast`, of which `reference` does the same.
Handler withReference(Handler fast, Handler reference);
/// The reference of a handler; itself where it has none.
Handler referenceOf(Handler handler);

} // namespace kiln::sim
