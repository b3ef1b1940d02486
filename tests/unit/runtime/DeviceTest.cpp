// Device: what is written once for all devices, on a device of host memory.
#include "kiln/run/device.h"
#include <kiln/run/run.h>

#include "unit/support/ErrorText.h"

#include <gmock/gmock.h>

using namespace kiln;
using testing::ElementsAre;

namespace {

/// Its memory is the host's; its one kernel is y += alpha * x.
class HostDevice : public Device {
public:
  using Device::enqueue;
  using Device::launch;

  std::string name() const override { return "host"; }
  DeviceKind kind() const override { return DeviceKind::sim; }
  const DeviceDescription &description() const override {
    return DeviceDescription::h200();
  }
  Buffer allocate(std::size_t bytes) override {
    EXPECT_GT(bytes, 0u);
    std::shared_ptr<void> memory(std::aligned_alloc(256, (bytes + 255) & ~255),
                                 std::free);
    return Buffer(reinterpret_cast<std::uint64_t>(memory.get()), bytes, memory);
  }
  void copy_in(const Buffer &to, const void *from, std::size_t bytes,
               const Stream &) override {
    std::memcpy(reinterpret_cast<void *>(to.address()), from, bytes);
    ++copiesIn;
  }
  void copy_out(void *to, const Buffer &from, std::size_t bytes,
                const Stream &) override {
    std::memcpy(to, reinterpret_cast<void *>(from.address()), bytes);
    ++copiesOut;
  }
  void fill(const Buffer &, std::uint8_t, const Stream &) override {}
  Stream create_stream(bool) override { return {}; }
  Event create_event() override { return {}; }
  void record(const Event &, const Stream &) override {}
  double elapsed_us(const Event &, const Event &) override { return 0; }
  void synchronize(const Stream &) override {}
  void enqueue(const LaunchDescription &launch, const Stream &) override {
    EXPECT_EQ(launch.name, "saxpy");
    EXPECT_EQ(launch.grid[0], 2u);
    ASSERT_EQ(launch.parameters.size(), 3u);
    auto *x = floats(launch, 0);
    auto *y = floats(launch, 1);
    double alpha = std::get<Scalar>(launch.parameters[2].value).value();
    for (std::size_t i = 0; i < 4; ++i) {
      y[i] += static_cast<float>(alpha) * x[i];
      x[i] = -1; // not an output: must not come back
    }
    ++launches;
  }
  LaunchResult launch(const LaunchDescription &launch,
                      const Stream &stream) override {
    enqueue(launch, stream);
    return {.time_us = 3, .findings = findings};
  }

  int copiesIn = 0, copiesOut = 0, launches = 0;
  std::vector<Finding> findings; ///< of each launch

private:
  static float *floats(const LaunchDescription &launch, int parameter) {
    const auto &buffer = std::get<Buffer>(launch.parameters[parameter].value);
    return reinterpret_cast<float *>(buffer.address());
  }
};

} // namespace

static Kernel saxpyKernel() {
  using Argument = ArgumentSpec::Kind;
  using Parameter = ParameterSpec::Kind;
  Kernel kernel;
  kernel.name = "saxpy";
  kernel.contract.arguments = {
      {"x", Argument::buffer, Type::f32, {4}, false},
      {"y", Argument::buffer, Type::f32, {4}, true},
      {"alpha", Argument::scalar, Type::f32, {}, false}};
  kernel.contract.parameters = {{Parameter::buffer, 0, std::nullopt},
                                {Parameter::buffer, 1, std::nullopt},
                                {Parameter::scalar, 2, std::nullopt}};
  kernel.contract.grid = {2, 1, 1};
  return kernel;
}

TEST(Device, RunCopiesInLaunchesAndCopiesBackOutputs) {
  HostDevice device;
  std::vector<float> x = {1, 2, 3, 4}, y = {10, 20, 30, 40};
  LaunchResult result = run(device, saxpyKernel(), x, y, 2.0f);
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.time_us, 3);
  EXPECT_THAT(y, ElementsAre(12, 24, 36, 48));
  EXPECT_THAT(x, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(device.copiesIn, 2);
  EXPECT_EQ(device.copiesOut, 1);
}

TEST(Device, RunThrowsWhatWasFoundAndTryRunReturnsIt) {
  HostDevice device;
  device.findings = {
      {.id = "note", .grade = Finding::Grade::warning},
      {.id = "race", .message = "two threads write", .where = {"k.cpp", 3}},
      {.id = "poison"}};
  std::vector<float> x = {1, 2, 3, 4}, y = {10, 20, 30, 40};
  try {
    run(device, saxpyKernel(), x, y, 2.0f);
    FAIL() << "nothing was thrown";
  } catch (const FindingError &error) {
    EXPECT_STREQ(error.what(),
                 "k.cpp:3: race: two threads write; and 1 more error");
    EXPECT_EQ(error.exit_status(), ExitStatus::finding);
    EXPECT_EQ(error.result().findings.size(), 3u);
  }
  // What was copied back is there all the same.
  EXPECT_THAT(y, ElementsAre(12, 24, 36, 48));
  EXPECT_FALSE(try_run(device, saxpyKernel(), x, y, 2.0f).ok());
  device.findings.resize(1);
  EXPECT_EQ(run(device, saxpyKernel(), x, y, 2.0f).findings.size(), 1u);
}

TEST(Device, RefusesWhatOnlyTheSimulatorHas) {
  HostDevice device;
  EXPECT_EQ(errorText([&] { device.share(nullptr, 4); }),
            device.name() + " does not share memory of the host with kernels; "
                            "the simulator does (open_sim)");
}

TEST(Device, RunTakesConstInputsAndOtherFloats) {
  HostDevice device;
  const std::vector<float> x = {1, 1, 1, 1};
  float y[4] = {};
  run(device, saxpyKernel(), x, y, 0.5);
  EXPECT_THAT(y, ElementsAre(0.5f, 0.5f, 0.5f, 0.5f));
}

TEST(Device, RunRefusesArraysOfAnotherType) {
  HostDevice device;
  std::vector<float> y(4);
  std::vector<double> wide(4);
  EXPECT_EQ(errorText([&] { run(device, saxpyKernel(), wide, y, 1.0f); }),
            "argument 1 \"x\" of kernel \"saxpy\" is of f32, 4 bytes an "
            "element, and the array's elements are floats of 8 bytes; give an "
            "array of that type, or of bytes");
  std::vector<int> whole(4);
  EXPECT_EQ(errorText([&] { run(device, saxpyKernel(), whole, y, 1.0f); }),
            "argument 1 \"x\" of kernel \"saxpy\" is of f32, 4 bytes an "
            "element, and the array's elements are integers of 4 bytes; give "
            "an array of that type, or of bytes");
  std::vector<std::byte> bytes(16);
  run(device, saxpyKernel(), bytes, y, 1.0f);
}

TEST(Device, RunRefusesAConstOutput) {
  HostDevice device;
  const std::vector<float> x(4), y(4);
  EXPECT_EQ(errorText([&] { run(device, saxpyKernel(), x, y, 1.0f); }),
            "kernel \"saxpy\" writes argument 2 \"y\", which was given as a "
            "const array; pass one that can be written");
  EXPECT_EQ(device.launches, 0);
}

TEST(Device, RunRefusesWhatDoesNotFitBeforeCopying) {
  HostDevice device;
  std::vector<float> x(4), y(3), empty;
  EXPECT_EQ(errorText([&] { run(device, saxpyKernel(), x, y, 1.0f); }),
            "argument 2 \"y\" of kernel \"saxpy\" needs 16 bytes for 4 of f32; "
            "the buffer has 12");
  EXPECT_EQ(errorText([&] { run(device, saxpyKernel(), x, y); }),
            "kernel \"saxpy\" takes 3 arguments (x, y, alpha); 2 were given");
  EXPECT_EQ(errorText([&] { run(device, saxpyKernel(), empty, x, 1.0f); }),
            "argument 1 \"x\" of kernel \"saxpy\" needs 16 bytes for 4 of f32; "
            "the buffer has 0");
  EXPECT_EQ(device.copiesIn, 0);
}

TEST(Device, KernelsAreResolvedForLaunchAndEnqueue) {
  HostDevice device;
  Buffer x = device.allocate(16), y = device.allocate(16);
  Kernel kernel = saxpyKernel();
  std::vector<LaunchArgument> arguments = {x, y, Scalar(1.0f)};
  Device &base = device;
  EXPECT_EQ(base.launch(kernel, arguments).time_us, 3);
  base.enqueue(kernel, arguments);
  EXPECT_EQ(device.launches, 2);
  arguments.pop_back();
  EXPECT_THROW(base.enqueue(kernel, arguments), UserError);
  EXPECT_THROW((void)base.launch(kernel, arguments), UserError);
}

TEST(Device, SliceStaysWithinAndKeepsTheWholeAlive) {
  HostDevice device;
  std::weak_ptr<int> watched;
  Buffer part;
  {
    auto owner = std::make_shared<int>(0);
    watched = owner;
    part = Buffer(0x1000, 100, owner).slice(40, 60);
  }
  EXPECT_EQ(part.address(), 0x1028u);
  EXPECT_EQ(part.bytes(), 60u);
  EXPECT_FALSE(watched.expired());
  EXPECT_EQ(part.slice(60, 0).bytes(), 0u);
  EXPECT_EQ(errorText([&] { part.slice(1, 60); }),
            "a slice of 60 bytes from byte 1 does not lie within a buffer of "
            "60 bytes");
  EXPECT_THROW(part.slice(61, 0), UserError);
  EXPECT_THROW(part.slice(1, SIZE_MAX), UserError);
  part = Buffer();
  EXPECT_TRUE(watched.expired());
}

TEST(Device, ScalarsKeepTypeAndValue) {
  EXPECT_EQ(Scalar(-1).type, Type::i32);
  EXPECT_EQ(Scalar(-1).bits, 0xffffffffu);
  EXPECT_EQ(Scalar(7u).type, Type::u32);
  EXPECT_EQ(Scalar(-1L).type, Type::i64);
  EXPECT_EQ(Scalar(-1LL).value(), -1.0);
  EXPECT_EQ(Scalar(1UL).type, Type::u64);
  EXPECT_EQ(Scalar(1ULL).bits, 1u);
  EXPECT_EQ(Scalar(1.0f).bits, 0x3f800000u);
  EXPECT_EQ(Scalar(-2.5).value(), -2.5);
}

TEST(Device, ResultIsOkWithoutErrors) {
  LaunchResult result;
  EXPECT_TRUE(result.ok());
  result.findings.push_back({.grade = Finding::Grade::warning});
  EXPECT_TRUE(result.ok());
  result.findings.push_back({.grade = Finding::Grade::error});
  EXPECT_FALSE(result.ok());
}
