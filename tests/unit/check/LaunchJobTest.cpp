// LaunchJob: a launch file runs on a device, and what it gives is compared.
#include "kiln/check/launch_file.h"
#include "kiln/check/sim.h"

#include "unit/support/ErrorText.h"
#include "unit/support/TestFolder.h"

#include <cstring>
#include <fmt/format.h>
#include <gmock/gmock.h>

using namespace kiln;
using testing::ElementsAre;
using testing::HasSubstr;

/// out[i] = a[i] + 1, and each thread tells who it is.
static const std::string kPtx = R"(.version 8.3
.target sm_90a
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[6] = {104, 101, 108, 108, 111, 10};
.visible .global .align 4 .u32 total = 40;
.visible .entry add(.param .u64 out, .param .u64 a)
{
    .reg .b32 %r<5>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [a];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd4, %rd1, %rd3;
    add.u64 %rd5, %rd2, %rd3;
    ld.global.u32 %r2, [%rd5];
    add.u32 %r2, %r2, 1;
    st.global.u32 [%rd4], %r2;
    ret;
}
)";

static const std::string kFile = R"({
  "grid": [1, 1, 1], "block": [4, 1, 1],
  "args": [
    {"buffer": "out", "type": "u32", "shape": [4], "output": true},
    {"buffer": "a", "type": "u32", "shape": [4], "init": "iota"}]
})";

static LaunchJob jobOf(const std::string &text = kFile,
                       const std::string &ptx = kPtx) {
  return LaunchJob::of(LaunchFile::parse(text, "t.json"), {ptx}, {"add.ptx"});
}

/// The numbers of a buffer.
static std::vector<std::uint32_t> words(const LaunchJob::Bytes &bytes) {
  std::vector<std::uint32_t> numbers(bytes.size() / 4);
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

static LaunchJob::Bytes bytesOf(const std::vector<std::uint32_t> &words) {
  LaunchJob::Bytes bytes(words.size() * 4);
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

static std::string replaced(std::string text, const std::string &old,
                            const std::string &change) {
  std::size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return text.replace(at, old.size(), change);
}

TEST(LaunchJob, RunsOnTheDeviceOfItsTarget) {
  LaunchJob job = jobOf();
  EXPECT_EQ(job.device().name, DeviceDescription::h200().name);
  PreparedJob prepared(job, open_sim(job.sim_options()));
  ASSERT_EQ(prepared.launches().size(), 1u);
  EXPECT_EQ(prepared.launches()[0].kernel, "add"); // as the module has it
  CheckedJob checked = check_job(prepared, {});
  EXPECT_TRUE(checked.report.ok()) << checked.report.to_text();
  EXPECT_THAT(words(checked.memory[0]), ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(checked.memory[1].empty()); // nobody asks for it
  LaunchJob blackwell = jobOf(kFile, replaced(kPtx, "sm_90a", "sm_100a"));
  EXPECT_EQ(blackwell.device().name, DeviceDescription::b200().name);
}

TEST(LaunchJob, ComparesWithWhatIsExpected) {
  LaunchJob job = jobOf();
  job.expected[0] = bytesOf({1, 2, 3, 4});
  ExploreOptions eager;
  eager.interleavings.only = Interleaving::eager;
  PreparedJob right(job, open_sim(job.sim_options()));
  CheckedJob checked = check_job(right, eager);
  ASSERT_EQ(checked.report.comparisons.size(), 1u);
  EXPECT_EQ(checked.report.comparisons[0].wrong, 0u);
  EXPECT_EQ(checked.report.verdict(), Verdict::ok);

  job.expected[0] = bytesOf({1, 2, 7, 4});
  PreparedJob wrong(job, open_sim(job.sim_options()));
  std::vector<std::string> told;
  checked = check_job(wrong, eager, [&](const Report &, const JobRun &run) {
    for (const JobComparison &comparison : run.comparisons) {
      told.insert(told.end(), comparison.wrong.begin(), comparison.wrong.end());
      told.push_back(comparison.summary);
    }
  });
  EXPECT_EQ(checked.report.verdict(), Verdict::wrong);
  EXPECT_THAT(told, ElementsAre("out[2] is 3, should be 7",
                                "out: 1 of 4 elements are wrong"));
}

/// Each CTA says who it is: which comes last is for the interleaving.
TEST(LaunchJob, ResultsThatDependOnTheInterleavingAreReported) {
  std::string ptx = replaced(
      kPtx, "st.global.u32 [%rd4], %r2;",
      "mov.u32 %r3, %ctaid.x;\n atom.global.exch.b32 %r4, [%rd1], %r3;");
  std::string text = replaced(kFile, "[1, 1, 1]", "[64, 1, 1]");
  text = replaced(text, "[4, 1, 1]", "[1, 1, 1]");
  ExploreOptions options;
  options.interleavings.count = 8;
  for (bool isDeterministic : {false, true}) {
    LaunchJob job = jobOf(text, ptx);
    job.file.is_deterministic = isDeterministic;
    PreparedJob prepared(job, open_sim(job.sim_options()));
    std::size_t runs = 0, dependent = 0;
    Report report =
        check_job(prepared, options, [&](const Report &, const JobRun &run) {
          ++runs;
          dependent += run.dependent.size();
        }).report;
    EXPECT_EQ(runs, 8u);
    EXPECT_GT(dependent, 0u) << report.to_text();
    EXPECT_EQ(dependent, report.findings.size());
    EXPECT_EQ(report.verdict(), isDeterministic ? Verdict::error : Verdict::ok);
  }
}

/// Findings and refusals name the file of the PTX.
TEST(LaunchJob, PlacesAreThoseOfItsFiles) {
  LaunchJob job = jobOf(
      replaced(kFile, "[4], \"init\": \"iota\"", "[3], \"init\": \"iota\""));
  PreparedJob prepared(job, open_sim(job.sim_options()));
  Report report = check_job(prepared, {}).report;
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings[0].id, "out-of-bounds");
  EXPECT_EQ(report.findings[0].where.file, "add.ptx");

  auto refusal = [](const std::string &text, const std::string &ptx) {
    try {
      LaunchJob job = jobOf(text, ptx);
      PreparedJob(job, open_sim(job.sim_options()));
    } catch (const UserError &error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_THAT(refusal(kFile, "no PTX"), HasSubstr("add.ptx:1: "));
  EXPECT_THAT(refusal(kFile, replaced(kPtx, "sm_90a", "sm_999")),
              HasSubstr("add.ptx:2: expected one of sm_10, sm_11"));
  EXPECT_THAT(refusal(kFile, replaced(replaced(kPtx, "8.3", "8.6"), "sm_90a",
                                      "sm_101a")),
              HasSubstr("no device that Kiln knows runs PTX of the target "
                        "sm_101a"));
  EXPECT_THAT(
      refusal(replaced(kFile, "\"grid\"", "\"kernel\": \"b\", \"grid\""), kPtx),
      HasSubstr("t.json: the PTX has no entry 'b'; it has add"));
}

/// The device follows from the text without parsing it: that is done where it
/// is loaded.
TEST(LaunchJob, TheTargetIsThatOfTheDirective) {
  EXPECT_EQ(
      sim_device_for("// .target sm_100a\n.target sm_90a, debug\nno PTX").name,
      DeviceDescription::h200().name);
  EXPECT_EQ(sim_device_for("/* */.version 8.6 .target /**/ sm_100a\n").name,
            DeviceDescription::b200().name);
  EXPECT_EQ(sim_device_for("").name, DeviceDescription::h200().name);
  EXPECT_EQ(sim_device_for(".target").name, DeviceDescription::h200().name);
}

/// A launch file that a program has made, with what no reader has checked.
TEST(LaunchJob, ArgumentsMadeByHandAreChecked) {
  auto refusal = [](LaunchFileArgument argument) {
    LaunchFile file{.launches = {{.arguments = {std::move(argument)}}}};
    return errorText([&] {
      LaunchJob job = LaunchJob::of(file, {kPtx}, {"add.ptx"});
      PreparedJob(job, open_sim(job.sim_options()));
    });
  };
  EXPECT_THAT(refusal({PointerArgument{.index = 5}}),
              HasSubstr("an argument refers to buffer number 5, and the launch "
                        "file has 0 buffers"));
  EXPECT_THAT(
      refusal({StructArgument{.bytes = 8, .fields = {{4, {Scalar(u64, 1)}}}}}),
      HasSubstr("a field of 8 bytes at offset 4 does not lie in a "
                "struct of 8"));
  TestFolder folder;
  std::string path = (folder.path() / "t.json").string();
  writeWhole(path, kFile);
  EXPECT_EQ(errorText([&] { LaunchJob::load("", path); }),
            path +
                " names no PTX: name it in 'ptx', or beside the launch file");
  EXPECT_EQ(errorText([] { LaunchJob::of({}, {kPtx}, {}); }),
            "1 texts of PTX have 0 names; each has one, and there is one text "
            "at least");
  BufferSpec buffer{.name = "b", .type = u32, .shape = {2}};
  EXPECT_EQ(errorText([&] {
              compare_buffer(buffer, bytesOf({1}), bytesOf({1, 2}));
            }),
            "the buffer 'b' has 8 bytes, and 4 are compared with it");
}

namespace {

/// The simulator, as a device that is none.
class OtherDevice final : public Device {
public:
  DeviceKind kind() const override { return DeviceKind::cuda; }
  std::string name() const override { return "other"; }
  const DeviceDescription &description() const override {
    return sim_->description();
  }
  Buffer allocate(std::size_t bytes) override { return sim_->allocate(bytes); }
  void copy_in(const Buffer &to, const void *from, std::size_t bytes,
               const Stream &) override {
    sim_->copy_in(to, from, bytes);
  }
  void copy_out(void *to, const Buffer &from, std::size_t bytes,
                const Stream &) override {
    sim_->copy_out(to, from, bytes);
  }
  void fill(const Buffer &buffer, std::uint8_t byte, const Stream &) override {
    sim_->fill(buffer, byte);
  }
  Stream create_stream(bool) override { return {}; }
  Event create_event() override { return {}; }
  void record(const Event &, const Stream &) override {}
  double elapsed_us(const Event &, const Event &) override { return 0; }
  void synchronize(const Stream &) override {}
  std::shared_ptr<LoadedModule>
  load(std::span<const std::string_view> ptx) override {
    return sim_->load(ptx);
  }
  void enqueue(const LaunchDescription &launch, const Stream &) override {
    sim_->enqueue(launch);
  }
  LaunchResult launch(const LaunchDescription &launch,
                      const Stream &) override {
    LaunchDescription copy = launch;
    copy.options = nullptr;
    return sim_->launch(copy);
  }

private:
  std::shared_ptr<Device> sim_ = open_sim();
};

} // namespace

TEST(LaunchJob, RunsOnADeviceThatIsNoSimulator) {
  LaunchJob job = jobOf();
  job.expected[0] = bytesOf({1, 2, 3, 4});
  PreparedJob prepared(job, std::make_shared<OtherDevice>());
  CheckedJob checked = check_job(prepared, {});
  EXPECT_EQ(checked.single_because, "the device is not a simulator");
  ASSERT_EQ(checked.report.comparisons.size(), 1u);
  EXPECT_EQ(checked.report.comparisons[0].wrong, 0u);

  auto refusal = [](const std::string &old, const std::string &change) {
    return errorText([&] {
      PreparedJob(jobOf(replaced(kFile, old, change)),
                  std::make_shared<OtherDevice>());
    });
  };
  EXPECT_EQ(refusal("\"init\": \"iota\"", "\"address\": 4096"),
            "t.json: args[1].address: a given address is for the simulator; "
            "other is none");
  const std::string map =
      R"({"offset": 0, "arg": {"tensor_map": {"of": "out", "dims": [4], "box": [4]}}})";
  EXPECT_EQ(refusal("{\"buffer\": \"a\"",
                    "{\"struct\": {\"size\": 128, \"fields\": [" + map +
                        "]}}, {\"buffer\": \"a\""),
            "t.json: a tensor map inside a struct or a buffer is for the "
            "simulator; other is none");
  EXPECT_EQ(
      refusal("[4], \"init\": \"iota\"", "[32], \"fields\": [" + map + "]"),
      "t.json: args[1].fields: a tensor map inside a struct or a buffer is "
      "for the simulator; other is none");
}
