// CInterface: kiln_c.h as another language uses it.
#include "kiln/c/kiln_c.h"
#include "kiln/base/file.h"
#include "unit/support/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

static const char *kAdd = R"(.version 8.0
.target sm_90
.address_size 64
.visible .global .align 4 .u32 base = 5;
.visible .entry add(.param .u64 out, .param .u32 by)
{
.reg .u32 %r<4>;
.reg .u64 %a<2>;
ld.param.u64 %a1, [out];
ld.param.u32 %r1, [by];
ld.global.u32 %r2, [base];
add.u32 %r3, %r1, %r2;
st.global.u32 [%a1], %r3;
ret;
}
)";

/// The message of an error, which is freed; "" where there is none.
static std::string text(kiln_error *error) {
  std::string message = kiln_error_message(error);
  if (error)
    message += " (" + std::to_string(kiln_error_code(error)) + ")";
  kiln_error_free(error);
  return message;
}

namespace {
class CInterface : public testing::Test {
protected:
  void SetUp() override {
    EXPECT_EQ(
        text(kiln_device_open("sim", "order=lazy,seed=3,threads=1", &device)),
        "");
    EXPECT_EQ(text(kiln_module_load(device, &kAdd, 1, &module)), "");
    EXPECT_EQ(text(kiln_buffer_allocate(device, 4, &out)), "");
  }
  void TearDown() override {
    kiln_buffer_free(out);
    kiln_module_free(module);
    kiln_device_free(device);
  }
  kiln_result *launch(std::uint64_t address) {
    std::uint32_t by = 37;
    const void *parameters[] = {&address, &by};
    kiln_launch launch = {};
    launch.bytes = sizeof(launch);
    launch.module = module;
    launch.entry = "add";
    launch.parameters = parameters;
    kiln_result *result = nullptr;
    EXPECT_EQ(text(kiln_device_launch(device, &launch, &result)), "");
    return result;
  }

  kiln_device *device = nullptr;
  kiln_module *module = nullptr;
  kiln_buffer *out = nullptr;
};
} // namespace

TEST_F(CInterface, LaunchesAnEntryOfAModule) {
  EXPECT_EQ(kiln_c_version(), KILN_C_VERSION);
  EXPECT_STREQ(kiln_device_name(device), "sim (NVIDIA H200)");
  EXPECT_EQ(kiln_module_entry_count(module), 1u);
  EXPECT_STREQ(kiln_module_entry_name(module, 0), "add");
  EXPECT_EQ(kiln_module_entry_name(module, 1), nullptr);
  std::size_t count = 0, bytes = 0;
  std::uint32_t sizes[2] = {}, back = 0;
  std::uint64_t address = 0;
  EXPECT_EQ(text(kiln_module_parameters(module, "add", &count, sizes, 2)), "");
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(sizes[0], 8u);
  EXPECT_EQ(sizes[1], 4u);
  EXPECT_EQ(text(kiln_module_variable(module, "base", &address, &bytes)), "");
  EXPECT_EQ(bytes, 4u);
  kiln_result *result = launch(kiln_buffer_address(out));
  EXPECT_TRUE(kiln_result_is_ok(result) && kiln_result_is_finished(result));
  EXPECT_EQ(kiln_result_finding_count(result), 0u);
  EXPECT_THAT(kiln_result_json(result), testing::HasSubstr("\"verdict\""));
  kiln_result_free(result);
  EXPECT_EQ(text(kiln_buffer_read(out, 0, &back, 4)), "");
  EXPECT_EQ(back, 42u);
  // Memory of the host, at its own address.
  kiln_buffer *shared = nullptr;
  std::vector<std::uint32_t> heap(1);
  EXPECT_EQ(text(kiln_buffer_share(device, heap.data(), 4, &shared)), "");
  kiln_result_free(launch(kiln_buffer_address(shared)));
  EXPECT_EQ(heap[0], 42u);
  kiln_buffer_free(shared);
}

TEST_F(CInterface, FindingsAreInTheResult) {
  EXPECT_EQ(text(kiln_buffer_set_name(out, "sums")), "");
  kiln_result *result = launch(kiln_buffer_address(out) + 4);
  EXPECT_FALSE(kiln_result_is_ok(result) || kiln_result_is_finished(result));
  ASSERT_EQ(kiln_result_finding_count(result), 1u);
  kiln_finding finding = {};
  finding.bytes = sizeof(finding);
  EXPECT_EQ(text(kiln_result_finding(result, 0, &finding)), "");
  EXPECT_STREQ(finding.id, "out-of-bounds");
  EXPECT_THAT(finding.message, testing::HasSubstr("sums"));
  EXPECT_EQ(finding.grade, 2);
  EXPECT_EQ(finding.ptx_line, 13);
  EXPECT_EQ(text(kiln_result_finding(result, 1, &finding)),
            "there is no finding 1; the result has 1 (3)");
  kiln_result_free(result);
}

TEST_F(CInterface, ErrorsAreSentencesWithACode) {
  kiln_device *none = nullptr;
  EXPECT_EQ(text(kiln_device_open("gpu", nullptr, &none)),
            "'gpu' is not a valid device; use auto, sim, cuda or cuda:N (3)");
  EXPECT_THAT(text(kiln_device_open("sim", "colour=red", &none)),
              testing::HasSubstr("'colour' is not an option; use one of "
                                 "interleaving, interleavings, seed, "));
  EXPECT_EQ(text(kiln_device_open("sim", "seed=x", &none)),
            "seed is 'x'; it takes a whole number from 0 on (3)");
  EXPECT_EQ(text(kiln_device_open("sim", "checks=maybe", &none)),
            "checks is 'maybe'; it takes on or off (3)");
  EXPECT_EQ(text(kiln_device_open("sim", "fast", &none)),
            "'fast' is not an option; write key=value (3)");
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(text(kiln_buffer_allocate(nullptr, 4, &out)), "device is NULL (3)");
  std::uint32_t word = 0;
  EXPECT_THAT(text(kiln_buffer_read(out, 2, &word, 4)),
              testing::HasSubstr("a slice of 4 bytes from byte 2"));
  kiln_launch launch = {};
  kiln_result *result = nullptr;
  EXPECT_EQ(text(kiln_device_launch(device, &launch, &result)),
            "the launch has 0 bytes; this library knows one of " +
                std::to_string(offsetof(kiln_launch, is_dependent)) + " to " +
                std::to_string(sizeof(launch)) + " (3)");
  kiln_kernel *kernel = nullptr;
  EXPECT_THAT(text(kiln_kernel_load("/none", &kernel)),
              testing::HasSubstr("/none"));
  const char *broken = "nonsense";
  kiln_module *module = nullptr;
  EXPECT_NE(text(kiln_module_load(device, &broken, 1, &module)), "");
  EXPECT_EQ(text(kiln_module_load(device, &broken, 0, &module)),
            "a module is made of at least one text of PTX, not of 0 (3)");
}

TEST_F(CInterface, BuffersOutliveTheirDevice) {
  kiln_device_free(device);
  device = nullptr;
  std::uint32_t word = 7, back = 0;
  EXPECT_EQ(text(kiln_buffer_write(out, 0, &word, 4)), "");
  EXPECT_EQ(text(kiln_buffer_read(out, 0, &back, 4)), "");
  EXPECT_EQ(back, 7u);
}

TEST_F(CInterface, CountsWhatInstructionsCost) {
  kiln_options options = KILN_OPTIONS_INIT;
  options.profile = "-"; // no file
  std::uint64_t address = kiln_buffer_address(out);
  std::uint32_t by = 1;
  const void *parameters[] = {&address, &by};
  kiln_launch launch = {};
  launch.bytes = sizeof(launch);
  launch.module = module;
  launch.entry = "add";
  launch.block[0] = 1;
  launch.parameters = parameters;
  const kiln_launch *one[] = {&launch};
  kiln_result *result = nullptr;
  ASSERT_EQ(text(kiln_explore(device, one, 1, &options, &result)), "");
  const char *profile = nullptr;
  EXPECT_EQ(text(kiln_result_format(result, "profile", &profile)), "");
  EXPECT_THAT(profile, testing::HasSubstr("\"kernel\": \"add\""));
  EXPECT_THAT(profile, testing::HasSubstr("\"global_sectors\": "));
  EXPECT_EQ(text(kiln_result_format(result, "profile-table", &profile)), "");
  EXPECT_THAT(profile, testing::HasSubstr("occupancy "));
  EXPECT_EQ(text(kiln_result_format(result, "roofline", &profile)), "");
  EXPECT_THAT(profile, testing::StartsWith("<svg"));
  EXPECT_EQ(text(kiln_result_format(result, "speedscope", &profile)), "");
  EXPECT_THAT(profile, testing::HasSubstr("speedscope.app"));
  kiln_result_free(result);
}

TEST_F(CInterface, ExploresInInterleavingsOfItsOwn) {
  kiln_options options = KILN_OPTIONS_INIT;
  options.interleaving = "random";
  options.interleavings = 2;
  options.seed = 9;
  std::uint64_t address = kiln_buffer_address(out);
  std::uint32_t by = 1;
  const void *parameters[] = {&address, &by};
  kiln_launch launch = {};
  launch.bytes = sizeof(launch);
  launch.module = module;
  launch.entry = "add";
  launch.block[0] = 64; // all of them store at one address
  launch.parameters = parameters;
  const kiln_launch *both[] = {&launch, &launch};
  kiln_result *result = nullptr;
  ASSERT_EQ(text(kiln_explore(device, both, 2, &options, &result)), "");
  EXPECT_GT(kiln_result_instructions(result), 0u);
  const char *json = nullptr, *again = nullptr, *sarif = nullptr;
  EXPECT_EQ(text(kiln_result_format(result, "json", &json)), "");
  EXPECT_EQ(text(kiln_result_format(result, "json", &again)), "");
  EXPECT_EQ(json, again) << "texts live as long as their handle";
  EXPECT_STREQ(json, kiln_result_json(result));
  EXPECT_THAT(json, testing::HasSubstr("\"launch\": 2"));
  EXPECT_EQ(text(kiln_result_format(result, "sarif", &sarif)), "");
  EXPECT_THAT(sarif, testing::HasSubstr("\"2.1.0\""));
  const char *page = nullptr;
  EXPECT_EQ(text(kiln_result_format(result, "html", &page)), "");
  EXPECT_THAT(page, testing::StartsWith("<!doctype html>"));
  EXPECT_EQ(text(kiln_result_format(result, "junit", &page)), "");
  EXPECT_THAT(page, testing::HasSubstr("<testsuite name=\"kiln\""));
  EXPECT_EQ(text(kiln_result_format(result, "pdf", &sarif)),
            "'pdf' is not a format; use json, html, sarif, junit, text, "
            "timeline, timeline-table, profile, profile-table, speedscope or "
            "roofline (3)");
  ASSERT_EQ(kiln_result_finding_count(result), 1u) << json;
  kiln_finding finding = {};
  finding.bytes = sizeof(finding);
  EXPECT_EQ(text(kiln_result_finding(result, 0, &finding)), "");
  EXPECT_STREQ(finding.kernel, "add");
  EXPECT_THAT(finding.text, testing::HasSubstr(finding.id));
  EXPECT_TRUE(finding.has_other);
  EXPECT_THAT(finding.other_who, testing::HasSubstr("thread"));
  kiln_result_free(result);

  options.seed = UINT64_MAX;
  options.checks = "perhaps";
  EXPECT_EQ(text(kiln_explore(device, both, 2, &options, &result)),
            "options.checks is 'perhaps'; it takes on or off (3)");
  options.checks = nullptr;
  options.capture = "folder";
  EXPECT_THAT(text(kiln_explore(device, both, 2, &options, &result)),
              testing::HasSubstr("kernel, launch and capture are for programs"));
  options.bytes = 4;
  EXPECT_THAT(text(kiln_explore(device, both, 2, &options, &result)),
              testing::HasSubstr("the options have 4 bytes"));
  EXPECT_EQ(text(kiln_explore(device, both, 0, nullptr, &result)),
            "there is nothing to launch: count is 0 (3)");
}

TEST_F(CInterface, ExplainsFindings) {
  ASSERT_GT(kiln_explanation_count(), 10u);
  EXPECT_EQ(kiln_explanation_id(kiln_explanation_count()), nullptr);
  for (std::size_t i = 0; i < kiln_explanation_count(); ++i) {
    kiln_explanation explanation = {};
    explanation.bytes = sizeof(explanation);
    EXPECT_EQ(text(kiln_explain(kiln_explanation_id(i), &explanation)), "");
    EXPECT_STREQ(explanation.id, kiln_explanation_id(i));
    EXPECT_NE(std::strlen(explanation.cause), 0u);
  }
  kiln_explanation explanation = {};
  explanation.bytes = sizeof(explanation);
  EXPECT_THAT(text(kiln_explain("nothing", &explanation)),
              testing::HasSubstr("nothing"));
}

TEST_F(CInterface, LaunchesRunInThreeInterleavingsUnlessTold) {
  kiln_device *plain = nullptr;
  ASSERT_EQ(text(kiln_device_open_with("sim", nullptr, &plain)), "");
  std::string ptx = kAdd;
  ptx.replace(ptx.find("st.global"), 2, "atom.global.exch.b32 %r2, [%a1], %r3;"
                                        "\nst");
  const char *atomic = ptx.c_str();
  kiln_module *loaded = nullptr;
  kiln_buffer *to = nullptr;
  ASSERT_EQ(text(kiln_module_load(plain, &atomic, 1, &loaded)), "");
  ASSERT_EQ(text(kiln_buffer_allocate(plain, 4, &to)), "");
  std::uint64_t address = kiln_buffer_address(to);
  std::uint32_t by = 1;
  const void *parameters[] = {&address, &by};
  kiln_launch launch = {};
  launch.bytes = sizeof(launch);
  launch.module = loaded;
  launch.entry = "add";
  launch.parameters = parameters;
  kiln_result *result = nullptr;
  ASSERT_EQ(text(kiln_device_launch(plain, &launch, &result)), "");
  for (const char *name : {"eager", "lazy", "random, seed 0"})
    EXPECT_THAT(kiln_result_json(result), testing::HasSubstr(name));
  kiln_result_free(result);
  kiln_buffer_free(to);
  kiln_module_free(loaded);
  kiln_device_free(plain);
}

TEST_F(CInterface, RunsLaunchFiles) {
  std::string folder = KILN_SOURCE_DIR "/tests/doors/";
  kiln_result *result = nullptr;
  ASSERT_EQ(text(kiln_launch_file_run((folder + "lazy_only.json").c_str(),
                                      nullptr, nullptr, &result)),
            "");
  ASSERT_EQ(kiln_result_finding_count(result), 1u);
  kiln_finding finding = {};
  finding.bytes = sizeof(finding);
  EXPECT_EQ(text(kiln_result_finding(result, 0, &finding)), "");
  EXPECT_STREQ(finding.id, "out-of-bounds");
  EXPECT_STREQ(finding.interleavings, "lazy");
  kiln_result_free(result);
  kiln_options options = KILN_OPTIONS_INIT;
  options.interleaving = "eager";
  ASSERT_EQ(text(kiln_launch_file_run((folder + "lazy_only.json").c_str(),
                                      nullptr, &options, &result)),
            "");
  EXPECT_TRUE(kiln_result_is_ok(result));
  kiln_result_free(result);
  kiln::TestFolder traces;
  std::string trace = (traces.path() / "trace.json").string();
  options.timeline = trace.c_str();
  ASSERT_EQ(text(kiln_launch_file_run((folder + "lazy_only.json").c_str(),
                                      nullptr, &options, &result)),
            "");
  kiln_result_free(result);
  EXPECT_THAT(kiln::read_file(trace), testing::HasSubstr("traceEvents"));
  EXPECT_THAT(text(kiln_launch_file_run("/none.json", nullptr, nullptr,
                                        &result)),
              testing::HasSubstr("/none.json"));

  kiln::TestFolder work;
  std::string path = (work.path() / "first.json").string();
  EXPECT_EQ(text(kiln_launch_file_init((folder + "lazy_only.ptx").c_str(),
                                       path.c_str())),
            "");
  EXPECT_THAT(kiln::read_file(path), testing::HasSubstr("\"lazy_only\""));
}
