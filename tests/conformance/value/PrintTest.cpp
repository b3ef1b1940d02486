// Print: which threads print what, and which prints are built at all.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

#include <algorithm>

using namespace conformance;

class Print : public OnDevice {};
INSTANTIATE_ON_DEVICES(Print);

/// What a kernel without arguments prints in the simulator, by lines, sorted;
/// on other devices it is only run.
static std::vector<std::string> printed(const std::string &id,
                                        const Kernel &kernel) {
  std::string text;
  if (id == "sim")
    run(*open_sim({.print = [&](const std::string &piece) { text += piece; }}),
        kernel);
  else
    run(*conformance::open(id).device, kernel);
  std::vector<std::string> lines;
  for (std::size_t end; (end = text.find('\n')) != std::string::npos;
       text.erase(0, end + 1))
    lines.push_back(text.substr(0, end));
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST_P(Print, ByPredicateAndThread) {
  KernelBuilder kb("some", {.threads = 64});
  kb.grid(2);
  Value t = thread_id(), block = block_id();
  print("a {}", {t}, {.predicate = t > 61});
  print("b {} {}", {t, block}, {.thread = 5});
  print("c {}", {block}, {.predicate = block == 1, .thread = 0});
  print("d", {}, {.predicate = block > 1});
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "vprintf, "), 4);
  SKIP_WITHOUT_DEVICE();
  auto lines = printed(GetParam(), kernel);
  if (GetParam() != "sim")
    return;
  EXPECT_EQ(lines, (std::vector<std::string>{"a 62", "a 62", "a 63", "a 63",
                                             "b 5 0", "b 5 1", "c 1"}));
}

TEST_P(Print, DebugPrintsAreBuiltWhenAskedFor) {
  for (bool is_debugging : {false, true}) {
    KernelBuilder kb("debugging", {.threads = 32, .debug_print = is_debugging});
    print("always", {}, {.thread = 0});
    print("debug", {}, {.thread = 0, .is_debug = true});
    print("forced", {}, {.thread = 0, .is_debug = true, .force = true});
    Kernel kernel = compile_checked(kb.module());
    EXPECT_EQ(count(kernel.ptx, "vprintf, "), is_debugging ? 3 : 2);
    if (!conformance::open(GetParam()).device)
      continue;
    auto lines = printed(GetParam(), kernel);
    std::vector<std::string> expected = {"always", "forced"};
    if (is_debugging)
      expected.insert(expected.begin() + 1, "debug");
    if (GetParam() == "sim") {
      EXPECT_EQ(lines, expected);
    }
  }
  SKIP_WITHOUT_DEVICE();
}
