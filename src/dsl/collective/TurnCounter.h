// TurnCounter: a word that counts arrivals, and tells when all are there. The
// first of them adds what makes the sum 2^31, the others 1: with the last one
// the upper bit, the turn, changes, and the rest is 0 again for the next time.
#pragma once

#include "kiln/language/memory/atomics.h"
#include "kiln/language/value/control.h"

namespace kiln {

inline constexpr std::int64_t kTurn = std::int64_t{1} << 31;

/// What one of `count` adds.
inline Value turnStep(const Value &isFirst, const Value &count) {
  return select(isFirst, constant(u32, kTurn) - (count - 1), constant(u32, 1));
}

/// Wait until the turn is another than `before` had, and acquire what came
/// before the arrivals.
inline void waitForTurn(const Element &counter, const Value &before) {
  while_(
      [&] {
        Value now = atomic_load(counter, {.order = MemoryOrder::acquire});
        return ((now ^ before) & constant(u32, kTurn)) == 0;
      },
      [] {});
}

} // namespace kiln
