// Contract: what a launch becomes, and each way arguments can fail to fit.
#include "kiln/run/device.h"

#include "unit/support/ErrorText.h"

#include <gmock/gmock.h>
#include <limits>

using namespace kiln;
using testing::ElementsAre;
using testing::HasSubstr;

static const Dim kM = Dim::argument("m");

/// scale(x[m, 64], m, alpha), with x as a pointer and as a tensor map.
static Kernel scaleKernel() {
  using Argument = ArgumentSpec::Kind;
  using Parameter = ParameterSpec::Kind;
  Kernel kernel;
  kernel.name = "scale";
  kernel.ptx = "ptx";
  kernel.contract.arguments = {
      {"x", Argument::buffer, Type::f16, {kM, 64}, true},
      {"m", Argument::scalar, Type::i32, {}, false},
      {"alpha", Argument::scalar, Type::f32, {}, false}};
  TensorMapSpec map = {.type = Type::f16,
                       .dims = {64, kM},
                       .strides_bytes = {128},
                       .box = {64, 64},
                       .swizzle = Swizzle::b128};
  kernel.contract.parameters = {{Parameter::tensor_map, 0, map},
                                {Parameter::scalar, 2, std::nullopt},
                                {Parameter::buffer, 0, std::nullopt},
                                {Parameter::scalar, 1, std::nullopt}};
  kernel.contract.grid = {ceil_div(kM, 128), 1, 1};
  kernel.contract.block = {128, 1, 1};
  kernel.contract.dynamic_smem_bytes = 1024;
  return kernel;
}

static const Buffer kBuffer(0x10000, 256 * 64 * 2);

static LaunchDescription resolveScale(const Kernel &kernel,
                                      std::vector<LaunchArgument> arguments = {
                                          kBuffer, Scalar(256), Scalar(2.0f)}) {
  return resolve(kernel, arguments, DeviceDescription::h200());
}

static std::string scaleError(std::vector<LaunchArgument> arguments) {
  Kernel kernel = scaleKernel();
  return errorText([&] { resolveScale(kernel, arguments); });
}

template <typename Change> static std::string errorAfter(Change change) {
  Kernel kernel = scaleKernel();
  change(kernel.contract);
  return errorText([&] { resolveScale(kernel); });
}

/// The bits that reach a kernel with one scalar of type `wanted`.
static Scalar passScalar(Type wanted, Scalar given) {
  Kernel kernel;
  kernel.name = "one";
  kernel.contract.arguments = {
      {"s", ArgumentSpec::Kind::scalar, wanted, {}, false}};
  kernel.contract.parameters = {{ParameterSpec::Kind::scalar, 0, std::nullopt}};
  LaunchArgument arguments[] = {given};
  auto launch = resolve(kernel, arguments, DeviceDescription::h200());
  return std::get<Scalar>(launch.parameters.at(0).value);
}

TEST(Contract, ResolvesGridAndParametersInOrder) {
  Kernel kernel = scaleKernel();
  LaunchDescription launch = resolveScale(kernel);
  EXPECT_EQ(launch.name, "scale");
  EXPECT_EQ(launch.ptx, "ptx");
  EXPECT_THAT(launch.grid, ElementsAre(2, 1, 1));
  EXPECT_THAT(launch.block, ElementsAre(128, 1, 1));
  EXPECT_EQ(launch.dynamic_smem_bytes, 1024u);
  ASSERT_EQ(launch.parameters.size(), 4u);
  const auto &map = std::get<TensorMap>(launch.parameters[0].value);
  EXPECT_EQ(map.address, 0x10000u);
  EXPECT_THAT(map.dims, ElementsAre(64, 256));
  EXPECT_THAT(map.strides_bytes, ElementsAre(128));
  EXPECT_THAT(map.element_strides, ElementsAre(1, 1));
  EXPECT_EQ(std::get<Scalar>(launch.parameters[1].value).value(), 2.0);
  EXPECT_EQ(std::get<Buffer>(launch.parameters[2].value).address(), 0x10000u);
  EXPECT_EQ(std::get<Scalar>(launch.parameters[3].value).bits, 256u);
}

TEST(Contract, SmsIsTheDevices) {
  Kernel kernel = scaleKernel();
  kernel.contract.grid[0] = Dim::argument("sms");
  EXPECT_EQ(resolveScale(kernel).grid[0], 132u);
}

TEST(Contract, CountAndKinds) {
  EXPECT_EQ(scaleError({kBuffer}),
            "kernel \"scale\" takes 3 arguments (x, m, alpha); 1 were given");
  EXPECT_EQ(scaleError({Scalar(1), Scalar(256), Scalar(2.0f)}),
            "argument 1 \"x\" of kernel \"scale\" is a buffer of f16; a scalar "
            "i32 was given");
  EXPECT_EQ(scaleError({kBuffer, kBuffer, Scalar(2.0f)}),
            "argument 2 \"m\" of kernel \"scale\" is a scalar i32; a buffer "
            "was given");
}

TEST(Contract, WorkspacesCanBeLeftOut) {
  Kernel kernel = scaleKernel();
  using Argument = ArgumentSpec::Kind;
  for (const char *name : {"rows", "arrivals"}) {
    kernel.contract.arguments.push_back(
        {name, Argument::buffer, Type::u32, {3, 5}, true});
    kernel.contract.arguments.back().is_workspace = true;
  }
  kernel.contract.is_cooperative = true;
  std::vector<LaunchArgument> given = {kBuffer, Scalar(256), Scalar(2.0f)};
  std::vector<std::string> asked;
  auto allocate = [&](const ArgumentSpec &spec, std::size_t bytes) {
    asked.push_back(spec.name);
    EXPECT_EQ(bytes, 60u);
    return Buffer(0x20000, bytes);
  };
  auto all = with_workspaces(kernel, given, allocate);
  EXPECT_THAT(asked, ElementsAre("rows", "arrivals"));
  EXPECT_TRUE(resolveScale(kernel, all).cooperative);
  // One that is given is taken.
  given.emplace_back(kBuffer);
  all = with_workspaces(kernel, given, allocate);
  EXPECT_EQ(asked.size(), 3u);
  EXPECT_EQ(std::get<Buffer>(all[3]).address(), kBuffer.address());
  // What is missing before them is told by resolve.
  all = with_workspaces(kernel, std::span(given).first(2), allocate);
  EXPECT_EQ(all.size(), 2u);
}

TEST(Contract, IntegersConvertWhereTheyFit) {
  EXPECT_EQ(passScalar(Type::i32, Scalar(-5L)).bits, 0xfffffffbu);
  EXPECT_EQ(passScalar(Type::i64, Scalar(-5)).bits, ~std::uint64_t{4});
  EXPECT_EQ(passScalar(Type::u64, Scalar(7)).type, Type::u64);
  EXPECT_EQ(passScalar(Type::u8, Scalar(255)).bits, 255u);
  EXPECT_EQ(passScalar(Type::i1, Scalar(1)).bits, 1u);
  EXPECT_EQ(passScalar(Type::index, Scalar(1ull << 63)).bits, 1ull << 63);
  auto refuse = [](Type wanted, Scalar given) {
    return errorText([&] { passScalar(wanted, given); });
  };
  EXPECT_EQ(refuse(Type::i32, Scalar(1L << 31)),
            "argument 1 \"s\" of kernel \"one\" is a scalar i32; 2147483648 of "
            "type i64 does not fit it");
  EXPECT_THAT(refuse(Type::f32, Scalar(1e300)),
              HasSubstr("1e+300 of type f64 does not fit it"));
  EXPECT_THAT(refuse(Type::f16, Scalar(70000.0f)),
              HasSubstr("70000 of type f32 does not fit it"));
  EXPECT_THAT(refuse(Type::u32, Scalar(-1)),
              HasSubstr("-1 of type i32 does not fit it"));
  EXPECT_THAT(
      refuse(Type::i64, Scalar(std::numeric_limits<unsigned long>::max())),
      HasSubstr("18446744073709551615 of type u64 does not fit it"));
}

TEST(Contract, FloatsConvert) {
  EXPECT_EQ(passScalar(Type::f32, Scalar(1.5)).bits, 0x3fc00000u);
  EXPECT_EQ(passScalar(Type::f64, Scalar(1.5f)).value(), 1.5);
  EXPECT_EQ(passScalar(Type::f16, Scalar(1.0f)).bits, 0x3c00u);
  EXPECT_EQ(passScalar(Type::bf16, Scalar(1.0)).bits, 0x3f80u);
  EXPECT_EQ(passScalar(Type::e4m3, Scalar(Type::e4m3, 0x38)).bits, 0x38u);
}

TEST(Contract, OtherConversionsAreRefused) {
  auto refuse = [](Type wanted, Scalar given) {
    return errorText([&] { passScalar(wanted, given); });
  };
  EXPECT_EQ(refuse(Type::f32, Scalar(2)),
            "argument 1 \"s\" of kernel \"one\" is a scalar f32; a scalar i32 "
            "was given: pass a float or a double");
  EXPECT_EQ(refuse(Type::i32, Scalar(2.0)),
            "argument 1 \"s\" of kernel \"one\" is a scalar i32; a scalar f64 "
            "was given: pass an integer");
  EXPECT_EQ(refuse(Type::e4m3, Scalar(2.0)),
            "argument 1 \"s\" of kernel \"one\" is a scalar e4m3; a scalar f64 "
            "was given: pass Scalar(Type::e4m3, bits)");
}

TEST(Contract, Buffers) {
  EXPECT_EQ(scaleError({kBuffer, Scalar(257), Scalar(2.0f)}),
            "argument 1 \"x\" of kernel \"scale\" needs 32896 bytes for 257 x "
            "64 of f16; the buffer has 32768");
  EXPECT_EQ(scaleError({Buffer(0x10001, 1 << 20), Scalar(256), Scalar(2.0f)}),
            "argument 1 \"x\" of kernel \"scale\" begins at address 0x10001; "
            "for f16 it must be a multiple of 2 bytes");
  EXPECT_EQ(scaleError({kBuffer, Scalar(-1), Scalar(2.0f)}),
            "argument 1 \"x\" of kernel \"scale\" has a dimension m = -1; it "
            "must not be negative");
  EXPECT_EQ(errorAfter([](LaunchContract &c) {
              c.arguments[0].shape = {Dim(INT64_MAX), 64};
            }),
            "argument 1 \"x\" of kernel \"scale\" has the shape "
            "9223372036854775807 x 64 of f16, more than 2^64 bytes");
  Kernel unknown = scaleKernel();
  unknown.contract.arguments[0].shape = {};
  unknown.contract.parameters.erase(unknown.contract.parameters.begin());
  EXPECT_NO_THROW(resolveScale(unknown, {Buffer(), Scalar(256), Scalar(2.f)}));
}

TEST(Contract, TensorMaps) {
  EXPECT_EQ(scaleError({Buffer(0x10008, 1 << 20), Scalar(256), Scalar(2.0f)}),
            "the tensor map of argument 1 \"x\" of kernel \"scale\" begins at "
            "address 0x10008; it must be a multiple of 16 bytes");
  EXPECT_EQ(errorAfter([](LaunchContract &c) {
              c.parameters[0].tensor_map->strides_bytes = {256};
            }),
            "the tensor map of argument 1 \"x\" of kernel \"scale\" covers "
            "65408 bytes (64 x 256 elements of f16, innermost first, strides "
            "of 256 bytes); the buffer has 32768");
}

TEST(Contract, NamesInDimensions) {
  auto gridOf = [](const char *name) {
    return errorAfter(
        [&](LaunchContract &c) { c.grid[0] = Dim::argument(name); });
  };
  EXPECT_EQ(gridOf("n"), "the contract of kernel \"scale\" speaks of \"n\", "
                         "which is neither a scalar argument nor \"sms\"");
  EXPECT_EQ(gridOf("alpha"), "argument 3 \"alpha\" of kernel \"scale\" is used "
                             "as a dimension; only an integer scalar can be");
  EXPECT_EQ(gridOf("x"), "argument 1 \"x\" of kernel \"scale\" is used as a "
                         "dimension; only an integer scalar can be");
  Kernel kernel = scaleKernel();
  kernel.contract.arguments[1].type = Type::u64;
  EXPECT_EQ(errorText([&] {
              resolveScale(kernel, {kBuffer, Scalar(1ull << 63), Scalar(2.f)});
            }),
            "argument 2 \"m\" of kernel \"scale\" is used as a dimension and "
            "is 9223372036854775808; at most 2^63 - 1 is possible");
}

TEST(Contract, GridAndClusters) {
  EXPECT_EQ(scaleError({kBuffer, Scalar(0), Scalar(2.0f)}),
            "the grid of kernel \"scale\" has 0 CTAs in x (ceil_div(m, 128)); "
            "1 to 2147483647 are possible");
  EXPECT_EQ(errorAfter([](LaunchContract &c) { c.grid[2] = 65536; }),
            "the grid of kernel \"scale\" has 65536 CTAs in z (65536); 1 to "
            "65535 are possible");
  EXPECT_EQ(errorAfter([](LaunchContract &c) { c.cluster[0] = 4; }),
            "the grid of kernel \"scale\" has 2 CTAs in x (ceil_div(m, 128)); "
            "with clusters of 4 it must be a multiple of 4");
  EXPECT_EQ(errorAfter([](LaunchContract &c) { c.cluster[1] = 0; }),
            "the cluster of kernel \"scale\" has 0 CTAs in y; it must have at "
            "least 1");
}

TEST(Contract, LimitsOfTheDevice) {
  EXPECT_EQ(errorAfter([](LaunchContract &c) { c.block = {512, 4, 1}; }),
            "kernel \"scale\" has CTAs of 512 x 4 x 1 threads; NVIDIA H200 "
            "allows 1 to 1024 in all");
  EXPECT_THAT(errorAfter([](LaunchContract &c) { c.block[1] = 0; }),
              HasSubstr("CTAs of 128 x 0 x 1 threads"));
  EXPECT_EQ(
      errorAfter([](LaunchContract &c) { c.dynamic_smem_bytes = 232449; }),
      "kernel \"scale\" needs 232449 bytes of dynamic shared memory; "
      "NVIDIA H200 has 232448 for a CTA");
}

TEST(Contract, ParametersMatchTheirArguments) {
  EXPECT_EQ(errorAfter([](LaunchContract &c) { c.parameters[0].argument = 3; }),
            "the contract of kernel \"scale\" makes a parameter from argument "
            "number 3; it has 3, counted from 0");
  EXPECT_EQ(errorAfter([](LaunchContract &c) { c.parameters[0].argument = 1; }),
            "the contract of kernel \"scale\" makes a buffer or tensor map "
            "from argument 2 \"m\" of kernel \"scale\", which is a scalar");
  EXPECT_EQ(errorAfter([](LaunchContract &c) { c.parameters[1].argument = 0; }),
            "the contract of kernel \"scale\" makes a scalar from argument 1 "
            "\"x\" of kernel \"scale\", which is a buffer");
  EXPECT_EQ(
      errorAfter([](LaunchContract &c) { c.parameters[0].tensor_map.reset(); }),
      "the contract of kernel \"scale\" makes a tensor map from argument "
      "1 \"x\" of kernel \"scale\" and does not say which");
}
