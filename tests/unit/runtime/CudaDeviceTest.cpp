// The CUDA device on a fake driver: what it asks of the driver and what it says
// when the driver or the caller is wrong.
#include "kiln/run/device.h"

#include "runtime/CudaLaunch.h"
#include "unit/runtime/fake_cuda/FakeCudaTest.h"

#include <gmock/gmock.h>

namespace kiln {
namespace {

using test::messageOf;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kPtx = R"(
.version 8.0
.target sm_90a
.address_size 64
// .entry not_this_one
.visible .entry mixed(
  .param .u64 .ptr .global .align 16 mixed_param_0, /* .param */
  .param .f32 mixed_param_1,
  .param .align 64 .b8 mixed_param_2[128],
  .param .align 4 .b8 mixed_param_3[12]
) { ret; }
)";
constexpr std::string_view kTwoEntries = R"(
.entry first() { ret; }
.entry second { ret; }
)";

class CudaDeviceTest : public test::FakeCudaTest {
protected:
  void SetUp() override {
    FakeCudaTest::SetUp();
    device = openCuda(CudaDriver::load(KILN_FAKE_CUDA), 0);
    // What opening it asked for.
    fake->calls.clear();
    fake->moduleTexts.clear();
    fake->functionAttributes.clear();
  }

  std::string launchError(const LaunchDescription &launch) {
    return messageOf<UserError>([&] { device->enqueue(launch); });
  }

  /// A launch of `mixed` with parameters that fit.
  LaunchDescription mixed() {
    TensorMap map;
    map.type = Type::bf16;
    map.address = 0x4000;
    map.dims = {256, 64};
    map.strides_bytes = {512};
    map.box = {64, 32};
    map.element_strides = {1, 1};
    map.swizzle = Swizzle::b128;
    map.l2 = L2Promotion::b256;
    map.oob = OobFill::nan;
    LaunchDescription launch;
    launch.ptx = kPtx;
    launch.grid = {8, 4, 1};
    launch.block = {256, 1, 1};
    launch.parameters = {{Buffer(0x1122334455667788, 16)},
                         {Scalar(2.0f)},
                         {map},
                         {std::vector<std::byte>(12, std::byte{7})}};
    fake->parameterBytes = {8, 4, 128, 12};
    return launch;
  }

  std::shared_ptr<Device> device;
};

TEST_F(CudaDeviceTest, NamesItself) {
  EXPECT_EQ(device->name(), "cuda:0 (Fake GPU)");
  EXPECT_EQ(device->description().compute_major, 9);
}

TEST_F(CudaDeviceTest, ClustersAreTheDriversOwn) {
  EXPECT_THAT(
      device->description().active_clusters,
      ElementsAre(device->description().sms, 64, 40, 32, 24, 16, 16, 16));
  EXPECT_EQ(device->description().resident_clusters(5), 24);
  EXPECT_EQ(device->description().resident_clusters(16), 8);
  EXPECT_EQ(fake->modules, 0);
  // An old driver says nothing: a guess.
  fake->failCall = "cuOccupancyMaxActiveClusters";
  auto other = openCuda(CudaDriver::load(KILN_FAKE_CUDA), 0);
  EXPECT_TRUE(other->description().active_clusters.empty());
  EXPECT_EQ(other->description().resident_clusters(5),
            other->description().sms / 5);
}

TEST_F(CudaDeviceTest, OrdinalThatIsNotThere) {
  auto driver = CudaDriver::load(KILN_FAKE_CUDA);
  EXPECT_EQ(messageOf<UserError>([&] { openCuda(driver, 3); }),
            "there is no cuda:3; this machine has cuda:0");
  fake->devices = 4;
  EXPECT_EQ(messageOf<UserError>([&] { openCuda(driver, -1); }),
            "there is no cuda:-1; this machine has cuda:0 to cuda:3");
  fake->devices = 0;
  EXPECT_THAT(messageOf<RuntimeError>([&] { openCuda(driver, 0); }),
              HasSubstr("CUDA_ERROR_NO_DEVICE"));
}

TEST_F(CudaDeviceTest, CopiesThereAndBackAndWaits) {
  Buffer buffer = device->allocate(4);
  device->copy_in(buffer, "abcd", 4);
  device->fill(buffer.slice(1, 2), '-');
  EXPECT_EQ(fake->count("cuStreamSynchronize"), 1);
  char back[4];
  device->copy_out(back, buffer, 4);
  EXPECT_EQ(std::string(back, 4), "a--d");
  EXPECT_EQ(fake->count("cuStreamSynchronize"), 2);
}

TEST_F(CudaDeviceTest, CopyBeyondTheBufferIsRefused) {
  Buffer buffer = device->allocate(4);
  char host[8] = {};
  EXPECT_EQ(messageOf<UserError>([&] { device->copy_in(buffer, host, 8); }),
            "cannot copy in 8 bytes, but the buffer has 4");
  EXPECT_EQ(messageOf<UserError>([&] { device->copy_out(host, buffer, 5); }),
            "cannot copy out 5 bytes, but the buffer has 4");
}

TEST_F(CudaDeviceTest, CopiesAndFillsInTheTurnOfAStream) {
  Buffer buffer = device->allocate(12);
  std::uint16_t halves[6] = {};
  device->enqueue_fill(buffer.address(), 7, 2, 6);
  device->enqueue_copy(reinterpret_cast<std::uint64_t>(halves),
                       buffer.address(), 12);
  EXPECT_THAT(halves, testing::Each(7));
  device->enqueue_fill(buffer.address(), 0x10001, 4, 3);
  device->enqueue_fill(buffer.address(), 2, 1, 1);
  device->copy_out(halves, buffer, 12);
  EXPECT_THAT(halves, ElementsAre(2, 1, 1, 1, 1, 1));
  device->wait(device->create_event());
  EXPECT_EQ(fake->count("cuStreamWaitEvent"), 1);
}

TEST_F(CudaDeviceTest, MemoryOfTheHostIsSharedWhileItIsHeld) {
  float data[4];
  {
    Buffer shared = device->share(data, sizeof(data));
    EXPECT_EQ(shared.address(), reinterpret_cast<std::uint64_t>(data));
    EXPECT_EQ(fake->registered, 1);
  }
  EXPECT_EQ(fake->registered, 0);
}

TEST_F(CudaDeviceTest, ALoadedModuleIsLaunchedByName) {
  std::string_view texts[] = {kTwoEntries};
  std::shared_ptr<LoadedModule> module = device->load(texts);
  EXPECT_THAT(module->entries(), ElementsAre("first", "second"));
  EXPECT_EQ(messageOf<UserError>([&] { (void)module->entry("third"); }),
            "the PTX has no entry 'third'; it has: first, second");
  LaunchDescription launch;
  launch.name = "second";
  launch.module = module;
  bool isTold = false;
  device->enqueue(launch, {}, [&](const LaunchResult &) { isTold = true; });
  EXPECT_TRUE(isTold);
  EXPECT_EQ(fake->launches.size(), 1u);
  std::string_view mixed[] = {kPtx};
  EXPECT_THAT(device->load(mixed)->entry("mixed").parameter_bytes,
              ElementsAre(8, 4, 128, 12));
  std::string_view two[] = {kPtx, kTwoEntries};
  EXPECT_EQ(messageOf<UserError>([&] { device->load(two); }),
            "2 PTX texts cannot be linked on the GPU; the simulator does "
            "(open_sim)");
  EXPECT_EQ(messageOf<UserError>([&] { module->variable("x"); }),
            "the variable 'x' cannot be reached on the GPU; the simulator can "
            "(open_sim)");
  EXPECT_EQ(messageOf<UserError>([&] { module->registers("first"); }),
            "registers of an entry are not counted on the GPU; the simulator "
            "does (open_sim)");
}

TEST_F(CudaDeviceTest, NothingIsAskedForZeroBytes) {
  Buffer empty = device->allocate(0);
  fake->calls.clear();
  device->copy_in(empty, nullptr, 0);
  device->copy_out(nullptr, empty, 0);
  device->fill(empty, 1);
  EXPECT_EQ(empty.address(), 0u);
  EXPECT_TRUE(fake->calls.empty());
}

TEST_F(CudaDeviceTest, EverythingIsReleasedInAnyOrder) {
  Buffer buffer = device->allocate(64);
  Buffer part = buffer.slice(0, 8);
  Stream stream = device->create_stream();
  Event event = device->create_event();
  device->enqueue(mixed(), stream);
  device.reset();
  EXPECT_EQ(fake->contexts, 1);
  stream = {};
  event = {};
  EXPECT_EQ(fake->streams, 0);
  EXPECT_EQ(fake->events, 0);
  buffer = {};
  EXPECT_EQ(fake->memory.size(), 1u);
  part = {};
  EXPECT_TRUE(fake->memory.empty());
  EXPECT_EQ(fake->modules, 0);
  EXPECT_EQ(fake->contexts, 0);
}

TEST_F(CudaDeviceTest, FailureToFreeIsSwallowed) {
  Buffer buffer = device->allocate(64);
  fake->failCall = "cuMemFree_v2";
  buffer = {};
  EXPECT_EQ(fake->count("cuMemFree_v2"), 1);
  buffer = device->allocate(64);
  fake->failCall = "cuCtxPushCurrent_v2";
  buffer = {};
  EXPECT_EQ(fake->count("cuMemFree_v2"), 1);
}

TEST_F(CudaDeviceTest, OutOfMemorySaysHowMuchIsFree) {
  fake->failCall = "cuMemAlloc_v2";
  fake->failResult = cuda::CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_THAT(
      messageOf<RuntimeError>([&] { device->allocate(1000); }),
      AllOf(StartsWith("cuMemAlloc failed with CUDA_ERROR_OUT_OF_MEMORY (2"),
            EndsWith("while allocating 1000 bytes on cuda:0 (Fake GPU), which "
                     "has 7 of 1073741824 bytes free.")));
}

TEST_F(CudaDeviceTest, TimeBetweenEvents) {
  Event from = device->create_event(), to = device->create_event();
  device->record(from);
  device->record(to);
  EXPECT_DOUBLE_EQ(device->elapsed_us(from, to), 250.0);
  EXPECT_EQ(fake->count("cuEventSynchronize"), 2);
  EXPECT_EQ(messageOf<UserError>([&] { device->record(Event()); }),
            "an event made by Event() is no point in a stream; make it with "
            "Device::create_event");
}

TEST_F(CudaDeviceTest, ParametersArePacked) {
  device->enqueue(mixed());
  ASSERT_EQ(fake->launches.size(), 1u);
  const auto &parameters = fake->launches[0].parameters;
  ASSERT_EQ(parameters.size(), 4u);
  auto bytes = [](std::initializer_list<int> values) {
    std::vector<std::byte> result;
    for (int value : values)
      result.push_back(static_cast<std::byte>(value));
    return result;
  };
  EXPECT_EQ(parameters[0],
            bytes({0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11}));
  EXPECT_EQ(parameters[1], bytes({0x00, 0x00, 0x00, 0x40}));
  EXPECT_EQ(parameters[2], std::vector<std::byte>(128, std::byte{0x5a}));
  EXPECT_EQ(parameters[3], std::vector<std::byte>(12, std::byte{7}));
}

TEST_F(CudaDeviceTest, TensorMapIsEncodedAsGiven) {
  device->enqueue(mixed());
  ASSERT_EQ(fake->tensorMaps.size(), 1u);
  const auto &map = fake->tensorMaps[0];
  EXPECT_EQ(map.type, cuda::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  EXPECT_EQ(map.address, reinterpret_cast<void *>(0x4000));
  EXPECT_THAT(map.dims, ElementsAre(256, 64));
  EXPECT_THAT(map.strides, ElementsAre(512));
  EXPECT_THAT(map.box, ElementsAre(64, 32));
  EXPECT_THAT(map.elementStrides, ElementsAre(1, 1));
  EXPECT_EQ(map.interleave, cuda::CU_TENSOR_MAP_INTERLEAVE_NONE);
  EXPECT_EQ(map.swizzle, cuda::CU_TENSOR_MAP_SWIZZLE_128B);
  EXPECT_EQ(map.l2, cuda::CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
  EXPECT_EQ(map.oob, cuda::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
}

TEST_F(CudaDeviceTest, ATensorMapIsEncodedWithoutALaunch) {
  LaunchDescription launch = mixed();
  const auto &map = std::get<TensorMap>(launch.parameters[2].value);
  // Nobody has made a context current.
  auto bytes = encodeAlone(*CudaDriver::load(KILN_FAKE_CUDA), map);
  EXPECT_EQ(bytes[127], std::byte{0x5a});
  EXPECT_EQ(fake->tensorMaps.size(), 1u);
  EXPECT_EQ(fake->contextDepth, 0);
}

TEST_F(CudaDeviceTest, EveryTypeHasItsTensorMapType) {
  const std::pair<Type, int> types[] = {
      {Type::u8, 0},  {Type::i8, 0},   {Type::e4m3, 0}, {Type::e5m2, 0},
      {Type::u16, 1}, {Type::i16, 1},  {Type::u32, 2},  {Type::i32, 3},
      {Type::u64, 4}, {Type::i64, 5},  {Type::f16, 6},  {Type::f32, 7},
      {Type::f64, 8}, {Type::bf16, 9}, {Type::tf32, 11}};
  for (auto [type, expected] : types) {
    LaunchDescription launch = mixed();
    auto &map = std::get<TensorMap>(launch.parameters[2].value);
    map.type = type;
    map.box = {16, 8};
    map.swizzle = Swizzle::none;
    map.oob = OobFill::zeros;
    device->enqueue(launch);
    EXPECT_EQ(fake->tensorMaps.back().type, expected) << name(type);
  }
}

TEST_F(CudaDeviceTest, NarrowSwizzlesAndPromotions) {
  LaunchDescription launch = mixed();
  auto &map = std::get<TensorMap>(launch.parameters[2].value);
  map.box = {16, 8};
  map.swizzle = Swizzle::b32;
  map.l2 = L2Promotion::b64;
  device->enqueue(launch);
  EXPECT_EQ(fake->tensorMaps[0].swizzle, cuda::CU_TENSOR_MAP_SWIZZLE_32B);
  EXPECT_EQ(fake->tensorMaps[0].l2, cuda::CU_TENSOR_MAP_L2_PROMOTION_L2_64B);
  map.swizzle = Swizzle::b64;
  map.l2 = L2Promotion::none;
  device->enqueue(launch);
  EXPECT_EQ(fake->tensorMaps[1].swizzle, cuda::CU_TENSOR_MAP_SWIZZLE_64B);
  EXPECT_EQ(fake->tensorMaps[1].l2, cuda::CU_TENSOR_MAP_L2_PROMOTION_NONE);
}

TEST_F(CudaDeviceTest, WrongTensorMapIsRefusedBeforeTheDriver) {
  LaunchDescription launch = mixed();
  std::get<TensorMap>(launch.parameters[2].value).address = 0x4001;
  EXPECT_THAT(launchError(launch),
              StartsWith("the tensor map in parameter 2 of mixed "));
  EXPECT_TRUE(fake->tensorMaps.empty());
}

TEST_F(CudaDeviceTest, ADependentLaunchIsAnAttribute) {
  LaunchDescription launch = mixed();
  launch.dependent = true;
  device->enqueue(launch);
  ASSERT_EQ(fake->launches[0].attributes.size(), 1u);
  const cuda::CUlaunchAttribute &attribute = fake->launches[0].attributes[0];
  EXPECT_EQ(attribute.id,
            cuda::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
  EXPECT_EQ(attribute.value.programmaticStreamSerializationAllowed, 1);
}

TEST_F(CudaDeviceTest, ClusterIsAnAttribute) {
  LaunchDescription launch = mixed();
  device->enqueue(launch);
  EXPECT_TRUE(fake->launches[0].attributes.empty());
  launch.cluster = {2, 4, 1};
  device->enqueue(launch);
  ASSERT_EQ(fake->launches[1].attributes.size(), 1u);
  const cuda::CUlaunchAttribute &attribute = fake->launches[1].attributes[0];
  EXPECT_EQ(attribute.id, cuda::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  EXPECT_EQ(attribute.value.clusterDim.x, 2u);
  EXPECT_EQ(attribute.value.clusterDim.y, 4u);
  EXPECT_EQ(attribute.value.clusterDim.z, 1u);
  EXPECT_TRUE(fake->functionAttributes.empty());
}

TEST_F(CudaDeviceTest, ClustersBeyondThePortableSizeOptIn) {
  LaunchDescription launch = mixed();
  launch.cluster = {8, 2, 1};
  device->enqueue(launch);
  device->enqueue(launch);
  EXPECT_EQ(fake->functionAttributes.at(14), 1);
  EXPECT_EQ(fake->count("cuFuncSetAttribute"), 1);
}

TEST_F(CudaDeviceTest, SharedMemoryAbove48KiBOptsInOnce) {
  LaunchDescription launch = mixed();
  launch.dynamic_smem_bytes = 48 * 1024;
  device->enqueue(launch);
  EXPECT_EQ(fake->count("cuFuncSetAttribute"), 0);
  launch.dynamic_smem_bytes = 131072;
  device->enqueue(launch);
  launch.dynamic_smem_bytes = 65536;
  device->enqueue(launch);
  EXPECT_EQ(fake->count("cuFuncSetAttribute"), 1);
  EXPECT_EQ(fake->functionAttributes.at(8), 131072);
  EXPECT_EQ(fake->launches[2].config.sharedMemBytes, 65536u);
}

TEST_F(CudaDeviceTest, FailedOptInNamesTheKernel) {
  LaunchDescription launch = mixed();
  launch.dynamic_smem_bytes = 131072;
  fake->failCall = "cuFuncSetAttribute";
  EXPECT_EQ(messageOf<RuntimeError>([&] { device->enqueue(launch); }),
            "cuFuncSetAttribute failed with CUDA_ERROR_INVALID_VALUE (1: "
            "invalid argument) while allowing mixed 131072 bytes of dynamic "
            "shared memory.");
  launch.dynamic_smem_bytes = 0;
  launch.cluster = {8, 2, 1};
  EXPECT_THAT(messageOf<RuntimeError>([&] { device->enqueue(launch); }),
              EndsWith("while allowing mixed clusters of 16 CTAs."));
}

TEST_F(CudaDeviceTest, SizesTheDeviceCannotTakeAreRefused) {
  LaunchDescription launch = mixed();
  launch.grid = {0, 1, 1};
  EXPECT_EQ(launchError(launch),
            "launching mixed, grid 0x1x1, block 256x1x1, cluster 1x1x1, 0 "
            "bytes of shared memory: no dimension may be 0");
  launch = mixed();
  launch.block = {1024, 2, 1};
  EXPECT_THAT(launchError(launch),
              EndsWith("the block has 2048 threads, Fake GPU allows 1024"));
  launch = mixed();
  launch.block = {1, 1, 65};
  EXPECT_THAT(launchError(launch),
              EndsWith("Fake GPU allows a block of 1024x1024x64"));
  launch = mixed();
  launch.grid = {1, 65536, 1};
  EXPECT_THAT(launchError(launch),
              EndsWith("Fake GPU allows a grid of 2147483647x65535x65535"));
  launch = mixed();
  launch.grid = launch.cluster = {17, 1, 1};
  EXPECT_THAT(launchError(launch),
              EndsWith("the cluster has 17 CTAs, Fake GPU allows 16"));
  launch = mixed();
  launch.cluster = {3, 1, 1};
  EXPECT_THAT(launchError(launch),
              EndsWith("the grid must be a multiple of the cluster in each "
                       "dimension"));
  launch = mixed();
  launch.dynamic_smem_bytes = 232449;
  EXPECT_THAT(launchError(launch),
              EndsWith("Fake GPU allows 232448 bytes of shared memory"));
  EXPECT_TRUE(fake->launches.empty());
}

TEST_F(CudaDeviceTest, ParametersThatDoNotFitAreRefused) {
  LaunchDescription launch = mixed();
  launch.parameters.pop_back();
  EXPECT_EQ(launchError(launch), "mixed takes 4 parameters, 3 were given");
  launch = mixed();
  launch.parameters[1] = {Scalar(2.0)};
  EXPECT_EQ(launchError(launch), "parameter 1 of mixed is .f32 of 4 bytes, but "
                                 "a scalar f64 of 8 bytes was given");
  launch = mixed();
  launch.parameters[3] = {Buffer(0, 0)};
  EXPECT_EQ(launchError(launch), "parameter 3 of mixed is .b8[12] of 12 bytes, "
                                 "but a buffer of 8 bytes was given");
}

TEST_F(CudaDeviceTest, LaunchWaitsAndTellsTheTime) {
  EXPECT_DOUBLE_EQ(device->launch(mixed()).time_us, 250.0);
  EXPECT_THAT(fake->calls, testing::IsSupersetOf(
                               {"cuLaunchKernelEx", "cuStreamSynchronize"}));
  EXPECT_EQ(fake->events, 0);
}

TEST_F(CudaDeviceTest, EnqueueUsesTheStreamAndDoesNotWait) {
  Stream stream = device->create_stream();
  device->enqueue(mixed(), stream);
  EXPECT_EQ(fake->launches[0].config.hStream, stream.native());
  EXPECT_EQ(fake->count("cuStreamSynchronize"), 0);
}

TEST_F(CudaDeviceTest, PreparedOnceLaunchesOften) {
  std::function<void(const Stream &)> launch = device->prepare(mixed());
  int before = fake->count("cuTensorMapEncodeTiled");
  EXPECT_TRUE(fake->launches.empty());
  Stream stream = device->create_stream();
  for (int i = 0; i < 3; ++i)
    launch(stream);
  ASSERT_EQ(fake->launches.size(), 3u);
  EXPECT_EQ(fake->launches[2].config.hStream, stream.native());
  EXPECT_EQ(fake->launches[2].parameters, fake->launches[0].parameters);
  EXPECT_EQ(fake->count("cuTensorMapEncodeTiled"), before);
  EXPECT_EQ(fake->count("cuEventCreate"), 0);
}

TEST_F(CudaDeviceTest, FailedLaunchSaysWhatWasLaunched) {
  LaunchDescription launch = mixed();
  launch.dynamic_smem_bytes = 131072;
  fake->failCall = "cuLaunchKernelEx";
  EXPECT_EQ(messageOf<RuntimeError>([&] { (void)device->launch(launch); }),
            "cuLaunchKernelEx failed with CUDA_ERROR_INVALID_VALUE (1: invalid "
            "argument) while launching mixed, grid 8x4x1, block 256x1x1, "
            "cluster 1x1x1, 131072 bytes of shared memory.");
}

TEST_F(CudaDeviceTest, TrapNamesTheKernelAndTheLostContext) {
  fake->failCall = "cuStreamSynchronize";
  fake->failResult = cuda::CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_THAT(messageOf<RuntimeError>([&] { (void)device->launch(mixed()); }),
              AllOf(HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"),
                    HasSubstr("while launching mixed, grid 8x4x1"),
                    HasSubstr("the context is lost"),
                    EndsWith("Start a fresh process.")));
  EXPECT_THAT(messageOf<RuntimeError>([&] { device->synchronize(); }),
              HasSubstr("while waiting for a stream; the last kernel launched "
                        "was mixed."));
}

TEST_F(CudaDeviceTest, ModuleIsLoadedOncePerContent) {
  LaunchDescription launch = mixed();
  device->enqueue(launch);
  std::string copy(kPtx);
  launch.ptx = copy;
  device->enqueue(launch);
  EXPECT_EQ(fake->count("cuModuleLoadDataEx"), 1);
  EXPECT_EQ(fake->count("cuModuleGetFunction"), 1);
  copy += "\n";
  launch.ptx = copy;
  device->enqueue(launch);
  EXPECT_THAT(fake->moduleTexts, ElementsAre(std::string(kPtx), copy));
}

TEST_F(CudaDeviceTest, EntryIsFoundByNameOrBecauseItIsTheOnlyOne) {
  LaunchDescription launch;
  launch.ptx = kTwoEntries;
  launch.name = "second";
  fake->parameterBytes = {};
  device->enqueue(launch);
  EXPECT_EQ(fake->launches.size(), 1u);
  launch.name = "third";
  EXPECT_EQ(launchError(launch),
            "the PTX has no entry 'third'; it has: first, second");
  launch.name = "";
  EXPECT_EQ(launchError(launch), "the PTX has 2 entries and the launch names "
                                 "none; name one of: first, second");
  launch.ptx = ".version 8.0\n";
  EXPECT_EQ(launchError(launch),
            "the PTX has no .entry, so there is nothing to launch");
}

TEST_F(CudaDeviceTest, DriverTooOldForThePtxShowsItsLog) {
  fake->failCall = "cuModuleLoadDataEx";
  fake->failResult = cuda::CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  fake->jitLog = "ptxas application ptx input, line 2; fatal : unsupported";
  EXPECT_THAT(
      messageOf<RuntimeError>([&] { device->enqueue(mixed()); }),
      AllOf(HasSubstr("CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
            HasSubstr("while compiling mixed (PTX .version 8.0, .target "
                      "sm_90a) with a driver for CUDA 12.2."),
            HasSubstr("update the NVIDIA driver"), EndsWith(fake->jitLog)));
  fake->failCall = "";
  device->enqueue(mixed());
  EXPECT_EQ(fake->launches.size(), 1u) << "a failed load is not remembered";
}

} // namespace
} // namespace kiln
