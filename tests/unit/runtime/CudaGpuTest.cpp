// The CUDA device on the real driver; skipped where there is no GPU.
#include "kiln/run/device.h"

#include <gmock/gmock.h>

#include <numeric>

namespace kiln {
namespace {

constexpr std::string_view kAdd = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry add(
  .param .u64 x, .param .u64 y, .param .u32 n)
{
  .reg .pred %p;
  .reg .b32 %r<5>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r4, %r2, %r3, %r4;
  setp.ge.u32 %p, %r4, %r1;
  @%p bra done;
  mul.wide.u32 %rd3, %r4, 4;
  add.u64 %rd4, %rd1, %rd3;
  add.u64 %rd5, %rd2, %rd3;
  ld.global.f32 %f1, [%rd4];
  ld.global.f32 %f2, [%rd5];
  add.f32 %f3, %f1, %f2;
  st.global.f32 [%rd5], %f3;
done:
  ret;
}
)";

class CudaGpuTest : public testing::Test {
protected:
  void SetUp() override {
    try {
      device = open_cuda();
    } catch (const RuntimeError &error) {
      GTEST_SKIP() << error.message();
    }
    if (device->description().compute_major < 9)
      GTEST_SKIP() << device->name() << " is older than sm_90";
  }

  std::shared_ptr<Device> device;
};

TEST_F(CudaGpuTest, FillAndCopyRoundTrip) {
  std::vector<std::uint8_t> host(1000);
  std::iota(host.begin(), host.end(), 0);
  Buffer buffer = device->allocate(host.size());
  EXPECT_EQ(buffer.address() % 256, 0u);
  device->copy_in(buffer, host.data(), host.size());
  device->fill(buffer.slice(10, 20), 0xee);
  std::vector<std::uint8_t> back(host.size());
  device->copy_out(back.data(), buffer, back.size());
  std::fill(host.begin() + 10, host.begin() + 30, 0xee);
  EXPECT_EQ(back, host);
}

TEST_F(CudaGpuTest, AddsTwoArrays) {
  const unsigned n = 1000;
  std::vector<float> x(n), y(n, 0.5f), expected(n);
  std::iota(x.begin(), x.end(), 0.0f);
  for (unsigned i = 0; i < n; ++i)
    expected[i] = x[i] + y[i];
  Buffer dx = device->allocate(4 * n), dy = device->allocate(4 * n);
  Stream stream = device->create_stream();
  device->copy_in(dx, x.data(), 4 * n, stream);
  device->copy_in(dy, y.data(), 4 * n, stream);
  LaunchDescription launch;
  launch.ptx = kAdd;
  launch.grid = {8, 1, 1};
  launch.block = {128, 1, 1};
  launch.cluster = {2, 1, 1};
  launch.dynamic_smem_bytes = 100000;
  launch.parameters = {{dx}, {dy}, {Scalar(n)}};
  LaunchResult result = device->launch(launch, stream);
  EXPECT_GT(result.time_us, 0);
  EXPECT_LT(result.time_us, 1e6);
  device->copy_out(y.data(), dy, 4 * n, stream);
  EXPECT_EQ(y, expected);
}

TEST_F(CudaGpuTest, TensorMapReachesTheKernel) {
  // One box of 16 x 4 floats, zeros outside, to shared memory and out again.
  constexpr std::string_view ptx = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry load(.param .align 64 .b8 map[128], .param .u64 out)
{
  .reg .pred %p;
  .reg .b32 %r<6>;
  .reg .f32 %f;
  .reg .b64 %rd<4>;
  .shared .align 128 .b8 tile[256];
  .shared .align 8 .b8 bar[8];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  mov.u32 %r3, bar;
  mov.u32 %r4, 0;
  setp.ne.u32 %p, %r1, 0;
  @%p bra wait;
  mov.b64 %rd1, map;
  cvta.param.u64 %rd1, %rd1;
  mbarrier.init.shared.b64 [%r3], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 %rd2, [%r3], 256;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
    [%r2], [%rd1, {%r4, %r4}], [%r3];
wait:
  bar.sync 0;
again:
  mbarrier.try_wait.parity.shared.b64 %p, [%r3], 0;
  @!%p bra again;
  shl.b32 %r5, %r1, 2;
  add.u32 %r2, %r2, %r5;
  ld.shared.f32 %f, [%r2];
  ld.param.u64 %rd3, [out];
  cvt.u64.u32 %rd2, %r5;
  add.u64 %rd3, %rd3, %rd2;
  st.global.f32 [%rd3], %f;
  ret;
}
)";
  std::vector<float> host(24 * 3), back(64), expected(64, 0.0f);
  std::iota(host.begin(), host.end(), 1.0f);
  for (int row = 0; row < 3; ++row)
    std::copy_n(&host[24 * row], 16, &expected[16 * row]);
  Buffer in = device->allocate(4 * host.size()), out = device->allocate(256);
  device->copy_in(in, host.data(), in.bytes());
  TensorMap map;
  map.type = Type::f32;
  map.address = in.address();
  map.dims = {24, 3};
  map.strides_bytes = {96};
  map.box = {16, 4};
  map.element_strides = {1, 1};
  LaunchDescription launch;
  launch.ptx = ptx;
  launch.block = {64, 1, 1};
  launch.parameters = {{map}, {out}};
  EXPECT_TRUE(device->launch(launch).ok());
  device->copy_out(back.data(), out, 256);
  EXPECT_EQ(back, expected);
}

TEST_F(CudaGpuTest, PtxThatDoesNotCompileShowsTheLog) {
  LaunchDescription launch;
  launch.ptx = ".version 8.0\n.target sm_90\n.address_size 64\n"
               ".entry bad() { no.such.instruction; }";
  try {
    (void)device->launch(launch);
    FAIL() << "compiled";
  } catch (const RuntimeError &error) {
    EXPECT_THAT(error.message(),
                testing::AllOf(testing::HasSubstr("CUDA_ERROR_INVALID_PTX"),
                               testing::HasSubstr("line 4")));
  }
}

TEST_F(CudaGpuTest, TrapNamesTheKernel) {
  // In a process of its own, because it loses the context.
  auto trap = [] {
    auto device = open_cuda();
    LaunchDescription launch;
    launch.ptx = ".version 8.0\n.target sm_90\n.address_size 64\n"
                 ".entry crash() { trap; }";
    try {
      (void)device->launch(launch);
    } catch (const RuntimeError &error) {
      std::fprintf(stderr, "%s\n", error.what());
      std::_Exit(static_cast<int>(error.exit_status()));
    }
    std::_Exit(0);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(trap(), testing::ExitedWithCode(4),
              "launching crash, grid 1x1x1.*context is lost");
}

TEST(ListDevicesTest, ListsTheMachineOrSaysWhyNot) {
  DeviceListing listing = list_devices();
  if (listing.devices.empty()) {
    ASSERT_EQ(listing.missing.size(), 1u);
    EXPECT_THAT(listing.missing[0], testing::StartsWith("cuda: "));
  } else {
    EXPECT_EQ(listing.devices[0].id, "cuda:0");
  }
}

} // namespace
} // namespace kiln
