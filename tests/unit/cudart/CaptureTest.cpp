// Capture: what is written of a launch is read as that launch, and does the
// same again.
#include "cudart/Capture.h"
#include "kiln/base/file.h"
#include "kiln/check/launch_file.h"
#include "unit/support/TestFolder.h"

#include <cstring>
#include <gmock/gmock.h>

namespace kiln::cudart {

using testing::ElementsAre;
using testing::HasSubstr;

/// out[i] = *both.in[i] + total, for i < both.n; `both` is a struct of 20
/// bytes.
static constexpr std::string_view kPtx = R"(.version 8.3
.target sm_90a
.address_size 64
.visible .global .align 4 .u32 total = 40;
.visible .entry add(.param .u64 out, .param .align 8 .b8 both[20])
{
    .reg .pred %p;
    .reg .b32 %r<5>;
    .reg .b64 %rd<7>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [both];
    ld.param.u32 %r4, [both+16];
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p, %r1, %r4;
    @%p bra done;
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd4, %rd1, %rd3;
    add.u64 %rd5, %rd2, %rd3;
    ld.global.u32 %r2, [%rd5];
    ld.global.u32 %r3, [total];
    add.u32 %r2, %r2, %r3;
    st.global.u32 [%rd4], %r2;
done:
    ret;
}
)";

template <typename T> static void put(LaunchJob::Bytes &bytes, T value) {
  std::size_t at = bytes.size();
  bytes.resize(at + sizeof(T));
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

static std::vector<std::uint32_t> wordsOf(const LaunchJob::Bytes &bytes) {
  std::vector<std::uint32_t> words(bytes.size() / 4);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

TEST(Capture, WhatItWritesIsRead) {
  TestFolder folder;
  auto device = open_sim();
  auto module = device->load({&kPtx, 1});
  // Two of one name; the second begins behind the pointer, and its last word
  // has not been written.
  Buffer out = device->allocate(16), in = device->allocate(24);
  device->set_name(out, "a/b");
  device->set_name(in, "a/b");
  const std::uint32_t values[] = {9, 1, 2, 3, 4};
  device->copy_in(in, values, sizeof(values));
  LaunchDescription launch{
      .name = "add", .block = {32, 1, 1}, .module = module};
  LaunchJob::Bytes pointer, both;
  put(pointer, out.address());
  put(both, in.address() + 4);
  put(both, std::uint64_t{0});
  put(both, std::uint32_t{4});
  launch.parameters = {{pointer}, {both}};
  auto before = device->simulation()->snapshot();
  ASSERT_TRUE(device->launch(launch).ok());

  Capture capture(folder.path().string());
  LaunchNote note{.number = 3, .kernel = "void ns::add<int>(\xff)"};
  capture.write(note, launch, capture.addModule({std::string(kPtx)}), *before);
  std::string path = (folder.path() / "3-add.json").string();
  LaunchFile file = LaunchFile::load(path);
  EXPECT_EQ(file.to_json(folder.path().string()), readWhole(path));
  EXPECT_THAT(readWhole(path), HasSubstr("\"x-launch\": \"void ns::add<int>("));
  EXPECT_THAT(readWhole(path),
              HasSubstr("{\"offset\": 16, \"arg\": {\"scalar\": \"u8\", "
                        "\"value\": 4}}"));
  EXPECT_EQ(file.launches[0].kernel, "add");
  EXPECT_EQ(file.launches[0].block[0], 32u);

  // It is the same launch again, at the same addresses.
  LaunchJob job = LaunchJob::load("", path);
  PreparedJob prepared(job, open_sim(job.sim_options()));
  CheckedJob checked = check_job(prepared, {});
  EXPECT_TRUE(checked.report.findings.empty()) << checked.report.to_text();
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < job.file.buffers.size(); ++i)
    index[job.file.buffers[i].name] = i;
  ASSERT_TRUE(index.contains("total") && index.contains("a_b"));
  EXPECT_EQ(job.file.buffers[index["a_b"]].address, out.address());
  EXPECT_THAT(wordsOf(checked.memory[index["a_b"]]),
              ElementsAre(41, 42, 43, 44));
}

/// What nobody has written is not written by a capture either.
TEST(Capture, BytesThatNobodyWroteStayUninitialized) {
  TestFolder folder;
  auto device = open_sim();
  auto module = device->load({&kPtx, 1});
  Buffer out = device->allocate(16), in = device->allocate(16);
  const std::uint32_t values[] = {1, 2};
  device->copy_in(in, values, sizeof(values));
  LaunchDescription launch{
      .name = "add", .block = {32, 1, 1}, .module = module};
  LaunchJob::Bytes pointer, both;
  put(pointer, out.address());
  put(both, in.address());
  put(both, std::uint64_t{0});
  put(both, std::uint32_t{4});
  launch.parameters = {{pointer}, {both}};
  auto before = device->simulation()->snapshot();
  LaunchResult seen = device->launch(launch);
  ASSERT_FALSE(seen.ok());

  Capture capture((folder.path() / "kept").string());
  capture.write({.number = 1, .kernel = "add"}, launch,
                capture.addModule({std::string(kPtx)}), *before);
  LaunchJob job =
      LaunchJob::load("", (folder.path() / "kept" / "1-add.json").string());
  PreparedJob prepared(job, open_sim(job.sim_options()));
  Report report = check_job(prepared, {}).report;
  ASSERT_EQ(report.findings.size(), seen.findings.size());
  EXPECT_EQ(report.findings[0].id, seen.findings[0].id);
  EXPECT_EQ(report.findings[0].ptx_line, seen.findings[0].ptx_line);
}

} // namespace kiln::cudart
