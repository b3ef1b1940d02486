// What the driver's loader says when the driver is absent, old or failing.
#include "runtime/CudaDriver.h"

#include "kiln/run/device.h"
#include "unit/runtime/fake_cuda/FakeCudaTest.h"

#include <gmock/gmock.h>

namespace kiln {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

using test::messageOf;

using CudaDriverTest = test::FakeCudaTest;

TEST_F(CudaDriverTest, MissingLibrarySaysWhatToInstall) {
  EXPECT_THAT(
      messageOf<RuntimeError>([] { CudaDriver::load("/none/libcuda.so.1"); }),
      AllOf(StartsWith("/none/libcuda.so.1 not found: "),
            HasSubstr("cannot open shared object file"),
            EndsWith("Install the NVIDIA driver, 535 or newer; no CUDA toolkit "
                     "is needed.")));
}

TEST_F(CudaDriverTest, MissingSymbolIsNamedWithTheVersion) {
  EXPECT_THAT(
      messageOf<RuntimeError>([] { CudaDriver::load(KILN_FAKE_CUDA_OLD); }),
      AllOf(HasSubstr("has no cuLaunchKernelEx"),
            HasSubstr("it is a driver for CUDA 11.4, Kiln needs one for CUDA "
                      "12.2 or newer")));
}

TEST_F(CudaDriverTest, KilnsOwnLibraryIsNotADriver) {
  // In a process of its own: a library that was loaded once answers to its
  // name.
  auto load = [] {
    std::fputs(messageOf<RuntimeError>([] {
                 CudaDriver::load(KILN_OWN_CUDA);
               }).c_str(),
               stderr);
    std::_Exit(0);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(load(), testing::ExitedWithCode(0),
              "is Kiln's own, for programs on the simulator .kiln run.; the "
              "driver's was not found");
}

TEST_F(CudaDriverTest, VersionReadsAsCuda) {
  EXPECT_EQ(CudaDriver::load(KILN_FAKE_CUDA)->version(), "12.2");
}

TEST_F(CudaDriverTest, StartWithoutGpuSaysWhereToLook) {
  fake->failCall = "cuInit";
  fake->failResult = cuda::CUDA_ERROR_NO_DEVICE;
  EXPECT_THAT(
      messageOf<RuntimeError>([] { CudaDriver::load(KILN_FAKE_CUDA); }),
      AllOf(StartsWith("cuInit failed with CUDA_ERROR_NO_DEVICE (100"),
            HasSubstr("while starting CUDA."),
            HasSubstr("finds no GPU: see what nvidia-smi lists, whether "
                      "CUDA_VISIBLE_DEVICES hides it")));
}

TEST_F(CudaDriverTest, EachRemedyIsSaid) {
  auto driver = CudaDriver::load(KILN_FAKE_CUDA);
  const std::pair<cuda::CUresult, const char *> remedies[] = {
      {cuda::CUDA_ERROR_NOT_INITIALIZED, "forked after CUDA was started"},
      {cuda::CUDA_ERROR_STUB_LIBRARY, "the CUDA toolkit's stub for linking"},
      {cuda::CUDA_ERROR_SYSTEM_NOT_READY, "NVIDIA fabric manager runs"},
      {cuda::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "have different versions"},
      {cuda::CUDA_ERROR_NO_BINARY_FOR_GPU, "cannot compile this PTX"},
      {cuda::CUDA_ERROR_INVALID_PTX, "such as sm_90a runs on that"},
      {cuda::CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "install the whole driver"},
      {cuda::CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "update the NVIDIA driver"},
      {cuda::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "use fewer threads"},
      {cuda::CUDA_ERROR_INVALID_CLUSTER_SIZE, "8 CTAs are portable"},
      {cuda::CUDA_ERROR_ILLEGAL_INSTRUCTION, "Start a fresh process"},
      {cuda::CUDA_ERROR_MISALIGNED_ADDRESS, "the context is lost"},
      {cuda::CUDA_ERROR_LAUNCH_FAILED, "The kernel trapped"},
  };
  for (auto [result, remedy] : remedies)
    EXPECT_THAT(messageOf<RuntimeError>(
                    [&] { driver->fail(result, "cuCall", "testing"); }),
                HasSubstr(remedy));
}

TEST_F(CudaDriverTest, UnknownResultStillHasItsNumber) {
  auto driver = CudaDriver::load(KILN_FAKE_CUDA);
  EXPECT_EQ(messageOf<RuntimeError>([&] {
              driver->fail(static_cast<cuda::CUresult>(12345), "cuCall",
                           "testing", "a log");
            }),
            "cuCall failed with an unknown result (12345: the driver has no "
            "text for it) while testing.\na log");
}

TEST_F(CudaDriverTest, ListsEveryDeviceWithItsNumbers) {
  fake->devices = 2;
  DeviceListing listing = listCudaDevices(*CudaDriver::load(KILN_FAKE_CUDA));
  ASSERT_EQ(listing.devices.size(), 2u);
  EXPECT_EQ(listing.devices[1].id, "cuda:1");
  EXPECT_EQ(listing.devices[1].name, "Fake GPU");
  const DeviceDescription &device = listing.devices[1].description;
  EXPECT_EQ(device.sms, 132);
  EXPECT_EQ(device.max_smem_per_cta_bytes, 232448);
  EXPECT_EQ(device.memory_bytes, 1 << 30);
  EXPECT_EQ(device.sm_clock_mhz, 1980);
  EXPECT_NEAR(device.memory_gb_per_s, 4916.7, 0.1);
  EXPECT_TRUE(listing.missing.empty());
}

TEST_F(CudaDriverTest, AGpuOfEachFamilyHasItsTensorCore) {
  struct Row {
    const char *gpu;
    int major, minor, sharedPerCta;
    TensorCore core;
    int columns;
    const char *target;
  };
  for (const Row &row :
       {Row{"A100", 8, 0, 166912, TensorCore::mma, 0, "sm_80"},
        {"L40S", 8, 9, 101376, TensorCore::mma, 0, "sm_89"},
        {"H200", 9, 0, 232448, TensorCore::wgmma, 0, "sm_90a"},
        {"B200", 10, 0, 232448, TensorCore::tcgen05, 512, "sm_100a"},
        {"B300", 10, 3, 232448, TensorCore::tcgen05, 512, "sm_103a"},
        {"Thor", 11, 0, 232448, TensorCore::tcgen05, 512, "sm_110a"},
        {"RTX 5090", 12, 0, 101376, TensorCore::mma, 0, "sm_120a"},
        {"GB10", 12, 1, 101376, TensorCore::mma, 0, "sm_121a"}}) {
    fake->attributes = {
        {cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, row.major},
        {cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, row.minor},
        {97, row.sharedPerCta},
        {120, row.major >= 9}};
    DeviceDescription device =
        listCudaDevices(*CudaDriver::load(KILN_FAKE_CUDA))
            .devices.at(0)
            .description;
    EXPECT_EQ(device.tensor_core, row.core) << row.gpu;
    EXPECT_EQ(device.tensor_memory_columns, row.columns) << row.gpu;
    EXPECT_EQ(device.target(), row.target) << row.gpu;
    EXPECT_EQ(device.max_smem_per_cta_bytes, row.sharedPerCta) << row.gpu;
    EXPECT_EQ(device.max_cluster_ctas, row.major >= 9 ? 8 : 1) << row.gpu;
    EXPECT_EQ(device.has("wgmma.mma_async"), row.major == 9) << row.gpu;
    EXPECT_EQ(device.has("tcgen05.mma"), row.columns > 0) << row.gpu;
  }
}

TEST_F(CudaDriverTest, NoDeviceIsSaidInTheListing) {
  fake->devices = 0;
  DeviceListing listing = listCudaDevices(*CudaDriver::load(KILN_FAKE_CUDA));
  EXPECT_TRUE(listing.devices.empty());
  EXPECT_THAT(listing.missing,
              testing::ElementsAre("cuda: the driver finds no GPU"));
}

} // namespace
} // namespace kiln
