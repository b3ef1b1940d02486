// MemoryNeed: the handlers of the C++ library and of LLVM.
#include "lower/MemoryNeed.h"

#include "llvm/Support/ErrorHandling.h"

#include <exception>
#include <new>
#include <string_view>
#include <unistd.h>

namespace kiln {

static thread_local int needs = 0;
static std::new_handler handlerBefore = nullptr;

[[noreturn]] static void endProcess() {
  constexpr std::string_view kText =
      "kiln: error: there is not enough memory for the compiler\n";
  if (::write(STDERR_FILENO, kText.data(), kText.size()) < 0)
    std::terminate(); // nobody reads it
  std::terminate();
}

static void handleNoMemory() {
  if (needs > 0)
    endProcess();
  if (!handlerBefore)
    throw std::bad_alloc();
  handlerBefore();
}

MemoryNeed::MemoryNeed() {
  static const bool isInstalled = [] {
    handlerBefore = std::set_new_handler(handleNoMemory);
    // LLVM asks malloc, too.
    llvm::install_bad_alloc_error_handler(
        [](void *, const char *, bool) { endProcess(); });
    return true;
  }();
  static_cast<void>(isInstalled);
  ++needs;
}

MemoryNeed::~MemoryNeed() { --needs; }

} // namespace kiln
