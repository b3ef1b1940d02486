// CKernel: kernels through kiln_c.h: saved ones, and products that libkiln
// compiles where it is there.
#include "../support/TestFolder.h"
#include "kiln/run/kernel.h"
#include "kiln/c/kiln_c.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace {
/// The message of an error with its code, which is freed; "" where there is
/// none.
std::string text(kiln_error *error) {
  if (!error)
    return "";
  std::string message = kiln_error_message(error);
  message += " (" + std::to_string(kiln_error_code(error)) + ")";
  kiln_error_free(error);
  return message;
}

class CKernel : public testing::Test {
protected:
  void SetUp() override {
    EXPECT_EQ(text(kiln_device_open("sim", nullptr, &device)), "");
  }
  void TearDown() override { kiln_device_free(device); }
  using Owner = std::shared_ptr<kiln_buffer>;
  template <typename T> Owner bufferOf(const std::vector<T> &data) {
    kiln_buffer *buffer = nullptr;
    std::size_t bytes = data.size() * sizeof(T);
    EXPECT_EQ(text(kiln_buffer_allocate(device, bytes, &buffer)), "");
    EXPECT_EQ(text(kiln_buffer_write(buffer, 0, data.data(), bytes)), "");
    return Owner(buffer, kiln_buffer_free);
  }
  /// Launch; nothing must be found.
  void launch(const kiln_kernel *kernel,
              const std::vector<kiln_argument> &arguments) {
    kiln_result *result = nullptr;
    ASSERT_EQ(text(kiln_kernel_launch(device, kernel, arguments.data(),
                                      arguments.size(), &result)),
              "");
    EXPECT_EQ(kiln_result_finding_count(result), 0u)
        << kiln_result_json(result);
    kiln_result_free(result);
  }

  kiln_device *device = nullptr;
};
} // namespace

static const char *kShift = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry shift(.param .u64 x, .param .u32 by)
{
.reg .u32 %r<6>;
.reg .u64 %a<4>;
ld.param.u64 %a1, [x];
ld.param.u32 %r1, [by];
mov.u32 %r2, %tid.x;
mov.u32 %r3, %ctaid.x;
mad.lo.u32 %r4, %r3, 32, %r2;
mul.wide.u32 %a2, %r4, 4;
add.u64 %a3, %a1, %a2;
ld.global.u32 %r5, [%a3];
add.u32 %r5, %r5, %r1;
st.global.u32 [%a3], %r5;
ret;
}
)";

TEST_F(CKernel, ASavedKernelIsLoadedAndLaunched) {
  using namespace kiln;
  Kernel shift{.name = "shift", .target = "sm_90", .ptx = kShift};
  shift.contract.arguments = {
      {.name = "x", .type = Type::u32, .shape = {64}, .is_output = true},
      {.name = "by", .kind = ArgumentSpec::Kind::scalar, .type = Type::u32}};
  shift.contract.parameters = {
      {.kind = ParameterSpec::Kind::buffer, .argument = 0},
      {.kind = ParameterSpec::Kind::scalar, .argument = 1}};
  shift.contract.grid = {2, 1, 1};
  shift.contract.block = {32, 1, 1};
  TestFolder folder;
  std::string path = folder.path() / "shift.kernel",
              copy = folder.path() / "copy.kernel";
  shift.save(path);
  kiln_kernel *kernel = nullptr;
  ASSERT_EQ(text(kiln_kernel_load(path.c_str(), &kernel)), "");
  EXPECT_STREQ(kiln_kernel_name(kernel), "shift");
  EXPECT_STREQ(kiln_kernel_ptx(kernel), kShift);
  std::vector<std::uint32_t> x(64);
  for (std::uint32_t i = 0; i < 64; ++i)
    x[i] = i;
  Owner buffer = bufferOf(x);
  launch(kernel, {{buffer.get(), nullptr, 0}, {nullptr, "u32", 100}});
  EXPECT_EQ(text(kiln_buffer_read(buffer.get(), 0, x.data(), 256)), "");
  for (std::uint32_t i = 0; i < 64; ++i)
    EXPECT_EQ(x[i], i + 100);
  // What is saved again is the same.
  EXPECT_EQ(text(kiln_kernel_save(kernel, copy.c_str())), "");
  EXPECT_EQ(Kernel::load(copy), shift);
  // Arguments that do not fit are refused.
  kiln_result *result = nullptr;
  kiln_argument one{buffer.get(), nullptr, 0};
  EXPECT_THAT(text(kiln_kernel_launch(device, kernel, &one, 1, &result)),
              testing::AllOf(testing::HasSubstr("2 arguments"),
                             testing::EndsWith("(3)")));
  EXPECT_EQ(result, nullptr);
  kiln_kernel_free(kernel);
}

#ifdef KILN_HAS_COMPILER
TEST_F(CKernel, AProductIsBuiltAndRight) {
  constexpr int m = 128, n = 128, k = 64;
  kiln_kernel *kernel = nullptr;
  ASSERT_EQ(text(kiln_gemm_build("128x128x64 f16 -> f32 tn", nullptr, &kernel)),
            "");
  // 0, 1 and 2 as f16.
  constexpr std::uint16_t kBits[] = {0, 0x3c00, 0x4000};
  auto left = [](int i, int l) { return (i + 2 * l) % 3; };
  auto right = [](int j, int l) { return (j * j + l) % 3; };
  std::vector<std::uint16_t> a, b;
  for (int i = 0; i < m; ++i)
    for (int l = 0; l < k; ++l)
      a.push_back(kBits[left(i, l)]);
  for (int j = 0; j < n; ++j)
    for (int l = 0; l < k; ++l)
      b.push_back(kBits[right(j, l)]);
  std::vector<float> d(m * n);
  Owner deviceA = bufferOf(a), deviceB = bufferOf(b), deviceD = bufferOf(d);
  launch(kernel, {{deviceA.get(), nullptr, 0},
                  {deviceB.get(), nullptr, 0},
                  {deviceD.get(), nullptr, 0}});
  EXPECT_EQ(text(kiln_buffer_read(deviceD.get(), 0, d.data(), 4 * m * n)), "");
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      int sum = 0;
      for (int l = 0; l < k; ++l)
        sum += left(i, l) * right(j, l);
      ASSERT_EQ(d[i * n + j], static_cast<float>(sum)) << i << ", " << j;
    }
  kiln_kernel_free(kernel);
  EXPECT_THAT(text(kiln_gemm_build("128xN", nullptr, &kernel)),
              testing::EndsWith("(3)"));
}

TEST_F(CKernel, AGemmIsBuiltForItsDevice) {
  kiln_device *blackwell = nullptr;
  kiln_kernel *kernel = nullptr;
  ASSERT_EQ(text(kiln_device_open("sim", "gpu=b200", &blackwell)), "");
  ASSERT_EQ(text(kiln_kernel_build(blackwell, "gemm", "256x256x64 f16 -> f32 tn",
                                   nullptr, &kernel)),
            "");
  EXPECT_THAT(kiln_kernel_ptx(kernel), testing::HasSubstr(".target sm_100a"));
  EXPECT_THAT(kiln_kernel_ptx(kernel), testing::HasSubstr("tcgen05.mma"));
  kiln_kernel_free(kernel);
  kiln_device_free(blackwell);
  kernel = nullptr;
  EXPECT_EQ(text(kiln_kernel_build(nullptr, "sort", "1", nullptr, &kernel)),
            "'sort' is not a kind of kernel; use gemm, attention or "
            "grouped-gemm (3)");
  EXPECT_EQ(kernel, nullptr);
}

TEST_F(CKernel, AttentionAndGroupedGemmsAreBuiltFromTheirTexts) {
  kiln_kernel *kernel = nullptr;
  ASSERT_EQ(text(kiln_kernel_build(nullptr, "attention", "1x2x1x70x90x64 bf16 causal", nullptr,
                                      &kernel)),
            "");
  EXPECT_THAT(kiln_kernel_name(kernel),
              testing::StartsWith("attention_1x2x1_70x90_d64_bf16_causal_"));
  kiln_kernel_free(kernel);
  ASSERT_EQ(text(kiln_kernel_build(nullptr, "grouped-gemm", "2x100x128x64 f16 masked",
                                         "tile-n=64 stages=3", &kernel)),
            "");
  EXPECT_STREQ(kiln_kernel_name(kernel),
               "grouped_2x100x128x64_f16_f16_masked_128x64_3");
  kiln_kernel_free(kernel);
  kernel = nullptr;
  EXPECT_THAT(text(kiln_kernel_build(nullptr, "attention", "1x2x1x70x90x80 bf16", nullptr,
                                        &kernel)),
              "a head dimension of 80; attention takes 64, 128 and 256 (3)");
  EXPECT_THAT(text(kiln_kernel_build(nullptr, "attention", "1x1x1x1x1x64", "fast", &kernel)),
              testing::StartsWith("unknown schedule field 'fast'"));
  EXPECT_EQ(text(kiln_kernel_build(nullptr, "grouped-gemm", "1x1x1x20", nullptr, &kernel)),
            "a grouped GEMM with K = 20; TMA takes rows of a multiple of 16 "
            "bytes, 8 elements of bf16 (3)");
  EXPECT_THAT(text(kiln_kernel_build(nullptr, "grouped-gemm", nullptr, nullptr, &kernel)),
              testing::StartsWith("problem is NULL"));
  EXPECT_EQ(kernel, nullptr);
}
#else
TEST_F(CKernel, AProductNeedsTheCompiler) {
  kiln_kernel *kernel = nullptr;
  EXPECT_THAT(
      text(kiln_gemm_build("128x128x64 f16 -> f32 tn", nullptr, &kernel)),
      testing::AllOf(
          testing::StartsWith(
              "kernels are compiled by libkiln.so, which was not found: "),
          testing::EndsWith("; install Kiln with its compiler (4)")));
  EXPECT_EQ(kernel, nullptr);
}
#endif
