// CompileCache: a kernel built again comes from the cache, and is the same.
#include "kiln/run/environment.h"
#include "kiln/kiln.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

using namespace kiln;

namespace {
/// A cache folder of this process alone, chosen before anything opens it.
class PrivateCache : public testing::Environment {
  void SetUp() override {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "kiln-cache-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    setenv("KILN_CACHE_DIR", folder_.c_str(), 1);
    setenv("KILN_CACHE", "on", 1);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

const auto *const kPrivateCache =
    testing::AddGlobalTestEnvironment(new PrivateCache);

Module scale(double factor) {
  KernelBuilder kb("scale", {.threads = 32});
  Tensor x = kb.tensor("x", f32, {32});
  x(thread_id()) = x(thread_id()) * factor;
  return kb.module();
}

/// Compile, and say whether the cache had it.
std::pair<Kernel, bool> compile_timed(const Module &module, int opt_level = 3) {
  CompileOptions::Timing timing;
  Kernel kernel = compile(module, {.opt_level = opt_level, .timing = &timing});
  EXPECT_EQ(timing.from_cache, timing.ptx_us == 0);
  return {kernel, timing.from_cache};
}
} // namespace

TEST(CompileCache, HitIsTheSameKernel) {
  auto [first, was_cached] = compile_timed(scale(2));
  EXPECT_FALSE(was_cached);
  auto [second, is_cached] = compile_timed(scale(2));
  EXPECT_TRUE(is_cached);
  EXPECT_EQ(first, second);
}

TEST(CompileCache, AnotherKernelOrLevelMisses) {
  compile_timed(scale(3));
  EXPECT_FALSE(compile_timed(scale(4)).second);
  EXPECT_FALSE(compile_timed(scale(3), 1).second);
}

TEST(Compile, ThePtxVersionFollowsFromWhatIsUsed) {
  auto module = [](const char *text) {
    KernelBuilder kb("k", {.threads = 32});
    Tensor x = kb.tensor("x", f32, {32});
    x(thread_id()) = 1.0;
    inline_ptx(text);
    return kb.module();
  };
  auto version = [&](const Module &of, int asked = 0) {
    std::string ptx =
        compile(of, {.use_cache = false, .ptx_version = asked}).ptx;
    return ptx.substr(ptx.find(".version"), 12);
  };
  const char *plain = "fence.proxy.async;";
  const char *newer = "fence.acquire.sync_restrict::shared::cluster.cluster;";
  EXPECT_EQ(version(module(plain)), ".version 8.0");
  EXPECT_EQ(version(module(plain), 84), ".version 8.4");
  EXPECT_EQ(version(module(newer)), ".version 8.6");
  auto message = [&](const Module &of, int asked) -> std::string {
    try {
      version(of, asked);
    } catch (const UserError &error) {
      return error.message();
    }
    return "";
  };
  EXPECT_NE(message(module(newer), 80)
                .find("fence.sync_restrict::shared::cluster came with PTX 8.6, "
                      "and PTX 8.0 is asked for"),
            std::string::npos)
      << message(module(newer), 80);
  EXPECT_NE(
      message(module(plain), 79)
          .find("PTX version 79 (ten times PTX's own) is not one that can be "
                "written; those are 8.0, 8.1"),
      std::string::npos);
}

// Before LLVM's back end, which would abort the process, or ptxas says so.
TEST(Compile, WhatTheTargetLacksIsRefused) {
  auto message = [](const char *target, auto body) -> std::string {
    try {
      KernelBuilder kb("k", {.threads = 128, .target = target});
      Tensor x = kb.tensor("x", f32, {128});
      x(thread_id()) = 1.0;
      body();
      kb.build();
    } catch (const UserError &error) {
      return error.message();
    }
    return "";
  };
  auto wgmma = [] { inline_ptx("wgmma.fence.sync.aligned;"); };
  EXPECT_EQ(message("sm_90a", wgmma), "");
  EXPECT_EQ(message("sm_100a", wgmma),
            "wgmma.fence needs .target sm_90a; the kernel is compiled for "
            "sm_100a");
  auto dependent = [] { wait_for_dependencies(); };
  EXPECT_EQ(message("sm_120a", dependent), "");
  // No launch is dependent there: there is nothing to wait for.
  EXPECT_EQ(message("sm_89", dependent), "");
  auto elected = [] { if_(elect(), [] { inline_ptx("nanosleep.u32 1;"); }); };
  EXPECT_EQ(message("sm_90a", elected), "");
  EXPECT_EQ(message("sm_80", elected),
            "elect.sync needs .target sm_90 or newer; the kernel is compiled "
            "for sm_80");
  auto newest = [] { inline_ptx("sub.u16x2 a, b, c;"); };
  EXPECT_EQ(message("sm_90a", newest),
            "sub came with PTX 9.1, and PTX 9.0 is the newest that LLVM "
            "writes");
  for (const char *target : {"sm_80", "sm_86", "sm_89", "sm_103a", "sm_110a",
                             "sm_120a", "sm_121a"})
    EXPECT_EQ(message(target, [] { sync_threads(); }), "") << target;
}

/// Level 0 keeps what is computed twice.
TEST(Compile, TheLevelReachesCodeGeneration) {
  KernelBuilder kb("sums", {.threads = 32});
  Tensor x = kb.tensor("x", f32, {64});
  for (int i = 0; i < 2; ++i) // the same twice
    x(thread_id() * 2 + i) = x(thread_id() * 2) * 3.0 + x(thread_id() * 2 + 1);
  Module module = kb.module();
  auto lines = [&](int level) {
    std::string ptx =
        compile(module, {.use_cache = false, .opt_level = level}).ptx;
    return std::count(ptx.begin(), ptx.end(), '\n');
  };
  EXPECT_GT(lines(0), lines(3));
}

/// The files of the cache.
static std::vector<std::filesystem::path> entries() {
  std::vector<std::filesystem::path> files;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(
           std::getenv("KILN_CACHE_DIR")))
    if (entry.is_regular_file())
      files.push_back(entry.path());
  return files;
}

// Two entries of one name, target and contract change places.
TEST(CompileCache, TheEntryOfAnotherKernelIsNotUsed) {
  clear_cache();
  Kernel six = compile_timed(scale(6)).first;
  Kernel seven = compile_timed(scale(7)).first;
  std::vector<std::filesystem::path> files = entries();
  ASSERT_EQ(files.size(), 2u);
  std::filesystem::rename(files[0], files[0].string() + ".moved");
  std::filesystem::rename(files[1], files[0]);
  std::filesystem::rename(files[0].string() + ".moved", files[1]);
  EXPECT_EQ(compile_timed(scale(6)), std::pair(six, false));
  EXPECT_EQ(compile_timed(scale(7)), std::pair(seven, false));
  // And what was wrong has been written again.
  EXPECT_EQ(compile_timed(scale(6)), std::pair(six, true));
}

TEST(CompileCache, IsLeftAloneWhereNotWanted) {
  compile_timed(scale(5));
  CompileOptions::Timing timing;
  compile(scale(5), {.use_cache = false, .timing = &timing});
  EXPECT_FALSE(timing.from_cache);
}
