// Forked: what the C library calls in the child tells.
#include "cudart/Forked.h"

#include <atomic>
#include <pthread.h>

namespace kiln::cudart {

static std::atomic<bool> isChild = false;

void noteDeviceOpened() {
  pthread_atfork(nullptr, nullptr, [] { isChild = true; });
}

bool isForkedChild() { return isChild; }

} // namespace kiln::cudart
