// Budget: what a phase of work may take, and whether anybody still wants it.
//
//     BudgetScope scope({.limitS = 5, .cancel = &cancelled}, "reading the PTX");
//     for (...) checkBudget();
//
// A launch looks at its own limits (sim/machine/Machine.h); this is for what
// comes before it and behind it, whose loops are as long as a stranger's text.
#pragma once

#include "kiln/base/export.h"

#include <atomic>
#include <chrono>
#include <cstdint>

namespace KILN_API kiln {

struct Budget {
  double limitS = 0;             ///< 0: none
  std::uint64_t memoryBytes = 0; ///< of this process; 0: no limit
  const std::atomic<bool> *cancel = nullptr;
};

/// The work of this thread from here to the end of the scope; within another
/// scope the outer one counts.
class BudgetScope {
public:
  /// `work`: "reading the PTX"
  BudgetScope(const Budget &budget, const char *work);
  ~BudgetScope();
  BudgetScope(const BudgetScope &) = delete;
  BudgetScope &operator=(const BudgetScope &) = delete;

private:
  friend void checkBudgetNow();
  Budget budget_;
  const char *work_;
  std::chrono::steady_clock::time_point start_;
  bool isOutermost_;
};

/// Throws UserError where the time is up, the memory is taken or the work is
/// cancelled.
void checkBudgetNow();

/// The same, now and then; cheap enough for each instruction of a program.
inline void checkBudget() {
  static thread_local unsigned calls = 0;
  constexpr unsigned kSeldom = 64;
  if (++calls % kSeldom == 0)
    checkBudgetNow();
}

/// Memory of this process that lies in the machine's (VmRSS); 0: not known.
std::uint64_t residentBytes();

} // namespace kiln
