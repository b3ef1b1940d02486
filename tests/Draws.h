// Draws: how often a test draws something random.
#pragma once

#include "Sanitized.h"

#include <algorithm>
#include <cstdlib>

/// `everyday` times KILN_TEST_DRAWS, which the long checks set; under a
/// sanitizer a draw takes ten times as long, and a quarter of them walks the
/// same code.
inline int draws(int everyday) {
  const char *asked = std::getenv("KILN_TEST_DRAWS");
  int all = everyday * std::max(1, asked ? std::atoi(asked) : 1);
#ifdef KILN_SANITIZED
  return (all + 3) / 4;
#else
  return all;
#endif
}
