// Measure: contenders take turns, each over all its sets of buffers, and what
// is made of their samples; times are those of the fake driver, 250 us a burst.
#include "kiln/measure/measure.h"

#include "unit/runtime/fake_cuda/FakeCudaTest.h"

#include <cmath>

namespace kiln {
namespace {

class MeasureTest : public test::FakeCudaTest {
protected:
  /// A contender that writes its letter, one for each set of buffers.
  Contender contender(const std::string &letters) {
    Contender one{letters, {}};
    for (char letter : letters)
      one.launches.push_back([this, letter](const Stream &) { log += letter; });
    return one;
  }

  std::shared_ptr<Device> device;
  std::string log;
  BenchPlan plan{.rounds = 3,
                 .pause = std::chrono::milliseconds(0),
                 .burst = std::chrono::milliseconds(0),
                 .settle = std::chrono::milliseconds(0)};

  void SetUp() override {
    FakeCudaTest::SetUp();
    device = openCuda(CudaDriver::load(KILN_FAKE_CUDA), 0);
  }
  void TearDown() override {
    device.reset();
    FakeCudaTest::TearDown();
  }
};

TEST_F(MeasureTest, ContendersTakeTurns) {
  Stopwatch watch(*device);
  std::vector<std::size_t> order;
  plan.after_burst = [&](std::size_t i) { order.push_back(i); };
  auto samples = measure_rested(watch, {contender("a"), contender("b")}, plan);
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 0, 1, 0, 1}));
  ASSERT_EQ(samples.size(), 2u);
  // At least three launches in each burst of 250 us.
  EXPECT_EQ(samples[0], (Samples{250. / 3, 250. / 3, 250. / 3}));
  EXPECT_TRUE(log.ends_with("aaabbbaaabbbaaabbb")) << log;
}

TEST_F(MeasureTest, LaunchesGoOverAllSetsOfBuffers) {
  Stopwatch watch(*device);
  watch.burst(contender("xyz"), 7);
  EXPECT_EQ(log, "xyzxyzx");
  EXPECT_EQ(watch.burst(contender("p"), 5), 50);
}

TEST_F(MeasureTest, SustainedBurstsBeforeTheClockSettlesDoNotCount) {
  Stopwatch watch(*device);
  plan.settle = std::chrono::milliseconds(5);
  int counted = 0;
  plan.after_burst = [&](std::size_t) { ++counted; };
  auto samples = measure_sustained(watch, {contender("a")}, plan);
  EXPECT_EQ(samples.front().size(), 3u);
  EXPECT_EQ(counted, 3);
  EXPECT_GT(log.size(), 1 + 3 + 3 * 3u) << "nothing was done before";
}

TEST_F(MeasureTest, ABurstHasTheLaunchesThatFillIt) {
  Stopwatch watch(*device);
  plan.burst = std::chrono::milliseconds(10);
  // 250 us for three of them.
  EXPECT_EQ(watch.launches_for(contender("a"), plan), 120);
}

TEST(Samples, MedianAndSpread) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(spread({2, 1, 3}), 1);
  EXPECT_TRUE(std::isnan(median({})));
  EXPECT_TRUE(std::isnan(spread({})));
}

TEST(BufferSets, AreLargerThanTheCacheAndFitTheMemory) {
  DeviceDescription device = DeviceDescription::h200();
  device.l2_bytes = 50 << 20;
  device.memory_bytes = 1ull << 30;
  EXPECT_EQ(buffer_sets(30 << 20, device), 4);
  EXPECT_EQ(buffer_sets(400 << 20, device), 1);
  EXPECT_EQ(buffer_sets(0, device), 256);
}

} // namespace
} // namespace kiln
