// Print: options that name nobody, and formats of prints that are not built.
#include "Refused.h"

using namespace errors;

TEST(PrintErrors, Threads) {
  KernelBuilder kb("k", {.threads = 32});
  for (int thread : {-2, 32})
    refused(
        __LINE__, [&] { print("here", {}, {.thread = thread}); },
        fmt::format("print is asked of thread {} of a CTA of 32; 0 to 31 are "
                    "there, and -1 is all of them",
                    thread));
}

TEST(PrintErrors, Predicates) {
  KernelBuilder kb("k", {.threads = 32});
  refused(
      __LINE__, [&] { print("here", {}, {.predicate = thread_id()}); },
      "expected a value of type i1, found i32; `cast` converts");
}

TEST(PrintErrors, DebugPrintsAreCheckedThoughNotBuilt) {
  KernelBuilder kb("k", {.threads = 32});
  refused(
      __LINE__, [] { print("{} {}", {thread_id()}, {.is_debug = true}); },
      "print(\"{} {}\") has more {} than its 1 values");
}
