// LaunchControl: CTAs that take over the work of those that have not begun. On
// the simulator, and assembled; no such GPU was there.
#include "conformance/AllOrders.h"
#include "conformance/Conformance.h"

#include <kiln/check/sim.h>
#include <kiln/run/run.h>

using namespace conformance;

/// Each CTA's place, once; and how many CTAs did any.
static Kernel places(int columns, int rows) {
  KernelBuilder kb("places", {.warpgroups = 2, .target = "sm_100a"});
  Tensor done = kb.tensor("done", i32, {rows, columns});
  Tensor workers = kb.tensor("workers", i32, {1});
  kb.grid(columns, rows);
  LaunchControl control(kb, 128 + 1);
  warpgroup(1, [&] {
    one_thread_of(0, [&] { control.ask_all(); });
    one_thread_of(1, [&] {
      atomic_add(workers(0), 1);
      control.for_each(
          [&](const GridPlace &at) { atomic_add(done(at.y, at.x), 1); });
    });
  });
  warpgroup(0, [&] {
    control.for_each([&](const GridPlace &at) {
      one_thread([&] { atomic_add(done(at.y, at.x), 10); });
    });
  });
  return compile_checked(kb.module());
}

TEST(LaunchControl, EveryPlaceIsTakenOnce) {
  constexpr int kColumns = 5, kRows = 7;
  Kernel kernel = places(kColumns, kRows);
  for (int sms : {1, 2, 148}) {
    DeviceDescription gpu = DeviceDescription::b200();
    gpu.sms = sms;
    auto device = open_all_orders(gpu);
    std::vector<std::int32_t> done(kColumns * kRows), workers(1);
    run(*device, kernel, done, workers);
    for (std::int32_t times : done)
      EXPECT_EQ(times, 11);
    // As many as the device holds begin, and the others never do.
    EXPECT_EQ(workers[0] < kColumns * kRows, sms < 3) << workers[0];
  }
}
