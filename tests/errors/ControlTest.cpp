// Control: what is refused of loops, roles, barriers and prints.
#include "Refused.h"

using namespace errors;

TEST(ControlErrors, ForRange) {
  KernelBuilder kb("k", {.threads = 32});
  Value real = kb.scalar("real", f32), wide = kb.scalar("wide", i64);
  refused(
      __LINE__, [&] { for_range(0, real, [](Value) {}); },
      "for_range counts in integers, not in f32");
  refused(
      __LINE__, [&] { for_range(0, wide == 1, [](Value) {}); },
      "for_range counts in integers, not in i1");
  refused(
      __LINE__, [&] { for_range(0, 8, 0, [](Value) {}); },
      "for_range has a step of 0 and would never end");
  refused(
      __LINE__, [&] { for_range(0, 8, [](Value) {}, {.unroll = -2}); },
      "for_range is to have -2 copies of its body; 0 or more can be");
  refused(
      __LINE__, [] { unrolled(0, 8, 0, [](int) {}); },
      "unrolled has a step of 0 and would never end");
  refused(
      __LINE__, [] { unrolled(0, 8, 1, nullptr); },
      "unrolled was given no body");
  refused(
      __LINE__, [&] { for_range(thread_id(), wide, [](Value) {}); },
      "expected a value of type i32, found i64; `cast` converts");
}

TEST(ControlErrors, CarriedValues) {
  KernelBuilder kb("k", {.threads = 32});
  Value real = kb.scalar("real", f32), whole = kb.scalar("whole", i32);
  auto fewer = [&](Value, Values) { return Values{real}; };
  refused(
      __LINE__, [&] { for_range(0, 8, 1, {real, whole}, fewer); },
      "for_range carries 2 values and its body gives 1; it gives one for each");
  auto other = [&](Value i, Values) { return Values{i, i}; };
  refused(
      __LINE__, [&] { for_range(0, 8, 1, {whole, real}, other); },
      "value 1 that for_range carries is f32 and its body gives i32; `cast` "
      "it");
}

TEST(ControlErrors, Roles) {
  KernelBuilder kb("k", {.warpgroups = 2});
  refused(
      __LINE__, [] { warpgroup(2, [] {}); },
      "kernel k has 2 warpgroups; there is no warpgroup 2");
  refused(
      __LINE__, [] { warpgroup(-1, [] {}); },
      "kernel k has 2 warpgroups; there is no warpgroup -1");
  unsigned first = __LINE__ + 1;
  warpgroup(0, [] {});
  refused(
      __LINE__, [] { warpgroup(0, [] {}); },
      fmt::format("warpgroup 0 has a role already, at {}", at(first)));
  unsigned line = __LINE__ + 1;
  std::function<void()> nested = [] { warpgroup(1, [] {}); };
  refused(
      line, [&] { if_(thread_id() == 0, nested); },
      "the role of warpgroup 1 begins inside another body; roles stand at "
      "the top level of a kernel");
}

TEST(ControlErrors, RoleRegisters) {
  KernelBuilder kb("k", {.warpgroups = 1});
  for (int registers : {16, 41, 264})
    refused(
        __LINE__, [&] { warpgroup(0, {.registers = registers}, [] {}); },
        fmt::format("warpgroup 0 asks for {} registers; setmaxnreg takes "
                    "multiples of 8 from 24 to 256",
                    registers));
}

TEST(ControlErrors, RegisterPlanThatWouldHang) {
  KernelBuilder kb("k", {.warpgroups = 3});
  unsigned line = __LINE__ + 1;
  warpgroup(0, {.registers = 40}, [] {});
  warpgroup(1, {.registers = 240}, [] {});
  warpgroup(2, {.registers = 240}, [] {});
  refused(
      line, [&] { kb.module(); },
      "the warpgroups of kernel k ask for 67584 registers (warpgroup 0: "
      "40, warpgroup 1: 240, warpgroup 2: 240 per thread), and a CTA of "
      "384 threads can own 64512 (1 CTA per SM); setmaxnreg would wait "
      "forever: lower the budgets by 16 in sum");
}

TEST(ControlErrors, RegisterPlanLoweredAsToldIsTaken) {
  KernelBuilder kb("k", {.warpgroups = 3});
  warpgroup(0, {.registers = 24}, [] {});
  warpgroup(1, {.registers = 240}, [] {});
  warpgroup(2, {.registers = 240}, [] {});
  EXPECT_EQ(kb.module().contract().registers_at_entry, 168);
}

TEST(ControlErrors, SyncThreads) {
  KernelBuilder kb("k", {.warpgroups = 2});
  unsigned line = __LINE__ + 1;
  std::function<void()> inside = [] { sync_threads(); };
  refused(
      line, [&] { warpgroup(1, inside); },
      "sync_threads() waits for all 256 threads of the CTA and stands "
      "inside the role of warpgroup 1; use a named barrier "
      "(KernelBuilder::named_barriers)");
}

TEST(ControlErrors, NamedBarriers) {
  KernelBuilder kb("k", {.warpgroups = 2});
  refused(
      __LINE__, [&] { kb.named_barriers(0, 128); },
      "0 named barriers were asked for; at least 1 is needed");
  refused(
      __LINE__, [&] { kb.named_barriers(1, 40); },
      "40 threads meet at a named barrier; it takes whole warps: a multiple of "
      "32 up to the 256 of kernel k");
  refused(
      __LINE__, [&] { kb.named_barriers(1, 288); },
      "288 threads meet at a named barrier; it takes whole warps: a multiple "
      "of 32 up to the 256 of kernel k");
  unsigned line = __LINE__ + 1;
  NamedBarrierArray most = kb.named_barriers(13, 64);
  refused(
      __LINE__, [&] { most[13]; },
      "there is no named barrier 13 in an array of 13");
  refused(
      __LINE__, [&] { kb.named_barriers(3, 64); },
      fmt::format("named_barriers takes 3 named barriers, and of the 15 that a "
                  "CTA has 2 are left; taken: 13 by named_barriers at {}",
                  at(line)));
  kb.named_barriers(1, 64);
  unsigned inside = __LINE__ + 1;
  std::function<void()> role = [] { sync_warpgroup(); };
  refused(
      inside, [&] { warpgroup(0, role); },
      fmt::format("sync_warpgroup takes 2 named barriers, and of the 15 that a "
                  "CTA has 1 are left; taken: 13 by named_barriers at {}, 1 by "
                  "named_barriers at {}",
                  at(line), at(inside - 2)));
}

TEST(ControlErrors, Print) {
  KernelBuilder kb("k", {.threads = 32});
  Tensor bytes = kb.tensor("bytes", e5m2, {32});
  refused(
      __LINE__, [] { print("{} {}", {thread_id()}); },
      "print(\"{} {}\") has more {} than its 1 values");
  refused(
      __LINE__, [] { print("none", {thread_id()}); },
      "print(\"none\") has fewer {} than its 1 values");
  refused(
      __LINE__, [&] { print("{}", {bytes(0)}); },
      "print has no format for e5m2; cast it to f32");
}

TEST(ControlErrors, Mbarriers) {
  KernelBuilder kb("k", {.threads = 32});
  MbarrierArray barriers = kb.mbarriers(2);
  refused(
      __LINE__, [&] { barriers[2]; },
      "there is no mbarrier 2 in an array of 2");
  refused(
      __LINE__, [&] { barriers[-1]; },
      "there is no mbarrier -1 in an array of 2");
  refused(
      __LINE__, [&] { barriers[0].init(0); },
      "an mbarrier counts 1 to 1048575 arrivals, not 0");
}
