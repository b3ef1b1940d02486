// LargeKernel: the time to read and decode a kernel grows with its length,
// whatever its branches, functions and variables are like.
#include "Sanitized.h"
#include "kiln/check/sim.h"

#include <ctime>
#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>

using namespace kiln;

namespace {

constexpr int kCount = 50000;
/// Of the processor, not of the clock on the wall; a sanitizer takes some
/// times as long, and quadratic time is half a minute and more.
constexpr double kMaxSeconds = 10;

struct LargeKernel {
  const char *name;
  std::string module; ///< in front of the entry
  std::string body;
};

double secondsSince(std::clock_t start) {
  return double(std::clock() - start) / CLOCKS_PER_SEC;
}

std::string repeated(const std::function<std::string(int)> &text) {
  std::string all;
  for (int i = 0; i < kCount; ++i)
    all += text(i);
  return all;
}

std::vector<LargeKernel> largeKernels() {
  auto label = [](int i) { return fmt::format("L{}:\n", i); };
  auto labelled = [](int i) {
    return fmt::format("L{}: add.u32 %r2, %r1, 1;\n", i);
  };
  auto back = [](int i) {
    return fmt::format("@%p1 bra L{};\n", kCount - 1 - i);
  };
  std::string poll =
      "mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r3], 0;\n";
  std::string names =
      repeated([](int i) { return fmt::format("{}L{}", i ? ", " : "", i); });
  return {
      {"diamonds", "", repeated([](int i) {
         return fmt::format("@%p1 bra A{0};\nbra B{0};\nA{0}: add.u32 %r2, %r1,"
                            " 1;\nB{0}:\n",
                            i);
       })},
      {"nested ifs", "",
       repeated([](int i) { return fmt::format("@%p1 bra L{};\n", i); }) +
           repeated([&](int i) { return labelled(kCount - 1 - i); })},
      {"branches to the end", "",
       repeated([](int i) { return fmt::format("L{}: @%p1 bra END;\n", i); }) +
           "END:\n"},
      {"branches from both ends", "", repeated([](int i) {
         return fmt::format("L{}: @%p1 bra L{};\n", i, kCount - 1 - i);
       })},
      {"loops in a row", "", repeated([](int i) {
         return fmt::format("L{0}: @%p1 bra L{0};\n", i);
       })},
      {"nested loops that wait", "",
       repeated(labelled) + poll + repeated(back)},
      {"tables of branches", "",
       "T: .branchtargets " + names + ";\n" + repeated([&](int i) {
         return label(i) + "@%p1 brx.idx %r1, T;\n";
       })},
      {"functions", repeated([](int i) {
         return fmt::format(".func (.reg .b32 %r) f{0}(.reg .b32 %a)\n"
                            "{{ add.u32 %r, %a, {0}; ret; }}\n",
                            i);
       }),
       repeated(
           [](int i) { return fmt::format("call (%r2), f{}, (%r1);\n", i); })},
      {"variables",
       repeated([](int i) { return fmt::format(".global .b32 g{};\n", i); }),
       repeated([](int i) {
         return fmt::format("ld.global.b32 %r2, [g{}];\n", i);
       })},
      // A chain of pointers, which recursion would follow to its end.
      {"pointers", repeated([](int i) {
                     return fmt::format(".global .b64 g{} = g{};\n", i, i + 1);
                   }) + fmt::format(".global .b64 g{};\n", kCount),
       "ld.global.b64 %x, [g0];\n"},
      {"registers", "", repeated([](int i) {
         return fmt::format(".reg .b32 q{0}; mov.b32 q{0}, {0};\n", i);
       })},
  };
}

} // namespace

TEST(LargeKernel, IsReadInTimeThatGrowsWithItsLength) {
  SKIP_WHERE_SANITIZED("it measures time");
  for (const LargeKernel &kernel : largeKernels()) {
    std::string text = fmt::format(R"(.version 8.0
.target sm_90a
.address_size 64
.shared .align 8 .b64 barrier;
{}
.visible .entry test()
{{
.reg .b32 %r<4>;
.reg .b64 %x;
.reg .pred %p<4>;
mov.u32 %r1, %tid.x;
mov.u32 %r3, barrier;
setp.eq.u32 %p1, %r1, 99;
{}
ret;
}}
)",
                                   kernel.module, kernel.body);
    std::clock_t start = std::clock();
    open_sim()->simulation()->check({.ptx = text});
    EXPECT_LT(secondsSince(start), kMaxSeconds) << kernel.name;
  }
}

/// How many findings a launch of two warps has that do `body`.
static std::size_t countFindings(const std::string &body) {
  std::string text = fmt::format(R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry test(.param .u64 out)
{{
.reg .b32 %r<4>;
.reg .b64 %out;
.reg .pred %p<4>;
ld.param.u64 %out, [out];
mov.u32 %r1, %tid.x;
{}
done: ret;
}}
)",
                                 body);
  SimOptions options;
  options.max_findings = 0;
  options.threads = 1;
  auto device = open_sim(options);
  Buffer out = device->allocate(64);
  std::vector<std::byte> zeros(64);
  device->copy_in(out, zeros.data(), zeros.size());
  return device
      ->launch({.ptx = text, .block = {64, 1, 1}, .parameters = {{out}}})
      .findings.size();
}

TEST(LargeKernel, FindingsTakeTimeThatGrowsWithTheirNumber) {
  std::clock_t start = std::clock();
  EXPECT_EQ(countFindings(
                "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra done;\n" +
                repeated([](int) { return "st.global.b32 [%out], %r2;\n"; })),
            std::size_t(kCount));
  EXPECT_LT(secondsSince(start), kMaxSeconds);
}

// Each of the loads is asked for whether it waits for the value. The first one
// lacks a fence; the others read a place again.
TEST(LargeKernel, DataBehindAFlagTakesTimeThatGrowsWithItsReads) {
  std::clock_t start = std::clock();
  EXPECT_EQ(countFindings(R"(
setp.eq.u32 %p1, %r1, 0;
setp.ne.u32 %p2, %r1, 32;
@%p1 st.volatile.global.b32 [%out+4], 1;
@%p1 st.volatile.global.b32 [%out], 1;
@%p2 bra done;
again:
ld.volatile.global.b32 %r2, [%out];
setp.eq.u32 %p3, %r2, 0;
@%p3 bra again;
)" + repeated([](int) { return "ld.volatile.global.b32 %r2, [%out+4];\n"; })),
            1u);
  EXPECT_LT(secondsSince(start), kMaxSeconds);
}
