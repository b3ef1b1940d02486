// Budget: a scope for each thread.
#include "support/limits/Budget.h"
#include "support/Error.h"
#include "support/InputFile.h"

#include <charconv>
#include <string>
#include <unistd.h>

namespace kiln {

using Clock = std::chrono::steady_clock;

static thread_local const BudgetScope *current = nullptr;

BudgetScope::BudgetScope(const Budget &budget, const char *work)
    : budget_(budget), work_(work), start_(Clock::now()),
      isOutermost_(!current) {
  if (isOutermost_)
    current = this;
}

BudgetScope::~BudgetScope() {
  if (isOutermost_)
    current = nullptr;
}

void checkBudgetNow() {
  const BudgetScope *scope = current;
  if (!scope)
    return;
  const Budget &budget = scope->budget_;
  if (budget.cancel && budget.cancel->load(std::memory_order_relaxed))
    userError("{} was interrupted", scope->work_);
  double elapsedS =
      std::chrono::duration<double>(Clock::now() - scope->start_).count();
  if (budget.limitS > 0 && elapsedS >= budget.limitS)
    userError("{} has taken {:.1f} s and is not done; the limit is {} s "
              "(--time-limit)",
              scope->work_, elapsedS, budget.limitS);
  if (std::uint64_t bytes = budget.memoryBytes ? residentBytes() : 0;
      bytes > budget.memoryBytes)
    userError("{} has taken the memory of this process to {} bytes; the limit "
              "is {} bytes (--memory-limit)",
              scope->work_, bytes, budget.memoryBytes);
}

std::uint64_t residentBytes() {
  static const long pageBytes = sysconf(_SC_PAGESIZE);
  std::string text;
  if (readFile("/proc/self/statm", text, 256) != 0)
    return 0;
  // "size resident shared ..."
  std::size_t at = text.find(' ');
  std::uint64_t pages = 0;
  if (at != std::string::npos)
    std::from_chars(text.data() + at + 1, text.data() + text.size(), pages);
  return pages * static_cast<std::uint64_t>(pageBytes);
}

} // namespace kiln
