// CLaunch: what launches of other languages need beside their arguments: what
// parameters are, tensor maps, images, an end that somebody asks for, and what
// kernels print.
#include "kiln/base/file.h"
#include "kiln/c/kiln_c.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

/// The message of an error, which is freed; "" where there is none.
static std::string said(kiln_error *error) {
  std::string message = kiln_error_message(error);
  kiln_error_free(error);
  return message;
}

static const std::string kSpin = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry spin(.param .u64 out, .param .f32 by, .param .align 64 .b8 map[128])
{
.reg .u32 %r<3>;
.reg .f32 %f<2>;
.reg .pred %p;
.reg .u64 %a<2>;
ld.param.u64 %a1, [out];
ld.param.f32 %f1, [by];
st.global.f32 [%a1], %f1;
mov.u32 %r1, 0;
again:
add.u32 %r1, %r1, 1;
setp.ne.u32 %p, %r1, 0;
@%p bra again;
ret;
}
)";

namespace {
class CLaunch : public testing::Test {
protected:
  void SetUp() override {
    kiln_options options = KILN_OPTIONS_INIT;
    options.threads = 1;
    options.max_instructions = 0;
    ASSERT_EQ(said(kiln_device_open_for(kSpin.c_str(), &options, &device)), "");
    ASSERT_EQ(said(kiln_module_load_image(device, kSpin.data(), kSpin.size(),
                                          &module)),
              "");
    ASSERT_EQ(said(kiln_buffer_allocate(device, 64, &out)), "");
  }
  void TearDown() override {
    kiln_buffer_free(out);
    kiln_module_free(module);
    kiln_device_free(device);
  }
  kiln_device *device = nullptr;
  kiln_module *module = nullptr;
  kiln_buffer *out = nullptr;
};
} // namespace

TEST_F(CLaunch, ADeviceIsThatOfThePtxOrOfTheOptions) {
  EXPECT_STREQ(kiln_device_name(device), "sim (NVIDIA H200)");
  kiln_options options = KILN_OPTIONS_INIT;
  options.gpu = "a100";
  kiln_device *other = nullptr;
  ASSERT_EQ(said(kiln_device_open_for(kSpin.c_str(), &options, &other)), "");
  EXPECT_THAT(kiln_device_name(other), testing::HasSubstr("A100"));
  kiln_device_free(other);
  EXPECT_THAT(said(kiln_device_open_for(".target sm_999", nullptr, &other)),
              testing::HasSubstr("sm_999"));
}

TEST_F(CLaunch, ParametersSayWhatTheyAre) {
  std::vector<std::string> seen;
  for (std::size_t i = 0; i < 3; ++i) {
    kiln_parameter parameter = {};
    parameter.bytes = sizeof parameter;
    ASSERT_EQ(said(kiln_module_parameter(module, "spin", i, &parameter)), "");
    seen.push_back(std::string(parameter.name) + " " + parameter.kind + " " +
                   parameter.type + " " + std::to_string(parameter.size));
  }
  EXPECT_THAT(seen, testing::ElementsAre("out pointer f32 8", "by number f32 4",
                                         testing::StartsWith("map ")));
  kiln_parameter parameter = {};
  parameter.bytes = sizeof parameter;
  EXPECT_EQ(said(kiln_module_parameter(module, "spin", 3, &parameter)),
            "there is no parameter 3; spin has 3");
}

TEST_F(CLaunch, AnImageThatIsCutShortIsRefused) {
  std::string image = kiln::read_file(KILN_SOURCE_DIR
                                      "/tests/unit/cudart/fatbins/plain.fatbin");
  kiln_module *loaded = nullptr;
  ASSERT_EQ(said(kiln_module_load_image(device, image.data(), image.size(),
                                        &loaded)),
            "");
  EXPECT_STREQ(kiln_module_entry_name(loaded, 0), "scale");
  kiln_module_free(loaded);
  EXPECT_THAT(said(kiln_module_load_image(device, image.data(), 100, &loaded)),
              testing::HasSubstr("and 100 are there"));
}

TEST_F(CLaunch, TensorMapsAreEncodedOrRefused) {
  kiln_tensor_map map = {};
  map.bytes = sizeof map;
  map.type = "f32";
  map.address = kiln_buffer_address(out);
  map.rank = 1;
  map.dims[0] = 16;
  map.box[0] = 16;
  std::vector<char> encoded(128, 0);
  EXPECT_EQ(said(kiln_tensor_map_encode(device, &map, encoded.data())), "");
  EXPECT_NE(encoded, std::vector<char>(128, 0));
  map.swizzle_bytes = 48;
  EXPECT_EQ(said(kiln_tensor_map_encode(device, &map, encoded.data())),
            "the swizzle_bytes of a tensor map is 48; it takes 0, 32, 64, 128");
  map.rank = 6;
  EXPECT_EQ(said(kiln_tensor_map_encode(device, &map, encoded.data())),
            "the rank of a tensor map is 6; it is from 1 to 5");
}

TEST_F(CLaunch, ALaunchEndsWhenSomebodyAsksForIt) {
  std::uint64_t address = kiln_buffer_address(out);
  float by = 1;
  char map[128] = {};
  const void *parameters[] = {&address, &by, map};
  kiln_launch launch = {};
  launch.bytes = sizeof launch;
  launch.module = module;
  launch.entry = "spin";
  launch.parameters = parameters;
  kiln_result *result = nullptr;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    kiln_device_set_interrupted(device, 1);
  });
  EXPECT_EQ(said(kiln_device_launch(device, &launch, &result)), "");
  other.join();
  kiln_finding finding = {};
  finding.bytes = sizeof finding;
  ASSERT_EQ(said(kiln_result_finding(result, 0, &finding)), "");
  EXPECT_STREQ(finding.id, "interrupted");
  kiln_result_free(result);
}

TEST_F(CLaunch, WhatKernelsPrintIsInTheResult) {
  std::string ptx =
      kiln::read_file(KILN_SOURCE_DIR "/tests/cli/sim/print.ptx");
  kiln_module *prints = nullptr;
  ASSERT_EQ(said(kiln_module_load_image(device, ptx.data(), ptx.size(),
                                        &prints)),
            "");
  kiln_launch launch = {};
  launch.bytes = sizeof launch;
  launch.module = prints;
  launch.entry = "print";
  launch.block[0] = 2;
  launch.grid[0] = 3;
  kiln_result *result = nullptr;
  kiln_device_set_quiet(device, 1);
  testing::internal::CaptureStdout();
  EXPECT_EQ(said(kiln_device_launch(device, &launch, &result)), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_THAT(kiln_result_printed(result),
              testing::StartsWith("thread 0\nthread 1\n"));
  kiln_result_free(result);
  std::uint64_t done = 0, total = 0;
  kiln_device_progress(device, &done, &total);
  EXPECT_EQ(done, total);
  EXPECT_GE(total, 3u);
  kiln_module_free(prints);
}

TEST_F(CLaunch, OptionsAreThoseOfTheTable) {
  ASSERT_GT(kiln_option_count(), 10u);
  kiln_option option = {};
  option.bytes = sizeof option;
  ASSERT_EQ(said(kiln_option_at(0, &option)), "");
  EXPECT_STREQ(option.key, "interleaving");
  EXPECT_STREQ(option.accepted, "eager, lazy, random or all");
  EXPECT_THAT(said(kiln_option_at(kiln_option_count(), &option)),
              testing::StartsWith("there is no option "));
  EXPECT_THAT(kiln_version(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

TEST(CMemory, IsMappedOrIsNot) {
  char local[16] = {};
  EXPECT_TRUE(kiln_memory_is_mapped(local, sizeof local, 1));
  EXPECT_FALSE(kiln_memory_is_mapped(reinterpret_cast<void *>(4096), 16, 0));
  EXPECT_FALSE(kiln_memory_is_mapped("text", 4, 1));
}

TEST_F(CLaunch, APartOfABufferKeepsIt) {
  kiln_buffer *part = nullptr;
  ASSERT_EQ(said(kiln_buffer_slice(out, 16, 32, &part)), "");
  EXPECT_EQ(kiln_buffer_address(part), kiln_buffer_address(out) + 16);
  EXPECT_EQ(kiln_buffer_bytes(part), 32u);
  EXPECT_EQ(said(kiln_buffer_write(part, 0, "0123", 4)), "");
  char back[4] = {};
  EXPECT_EQ(said(kiln_buffer_read(out, 16, back, 4)), "");
  EXPECT_EQ(std::string(back, 4), "0123");
  kiln_buffer_free(part);
  EXPECT_NE(said(kiln_buffer_slice(out, 60, 32, &part)), "");
}
