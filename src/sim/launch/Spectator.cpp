// Spectator: the one of this thread.
#include "sim/launch/Spectator.h"

namespace kiln::sim {

static thread_local Spectator *ofThisThread = nullptr;

Spectator *Spectator::current() { return ofThisThread; }

SpectatorScope::SpectatorScope(Spectator &spectator) {
  ofThisThread = &spectator;
}

SpectatorScope::~SpectatorScope() { ofThisThread = nullptr; }

} // namespace kiln::sim
