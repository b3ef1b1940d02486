// Dsl: what the PTX of a built kernel must have, and must not have.
#include "kiln/kiln.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <filesystem>
#include <regex>
#include <sstream>
#include <thread>

using namespace kiln;
using testing::HasSubstr;
using testing::Not;

namespace {
constexpr CompileOptions kNoCache{.use_cache = false};

std::string ptx_of(const Module &module) {
  return emit(module, Stage::ptx, kNoCache);
}

Module warp_specialized() {
  return build_gemm({.m = 256, .n = 256, .k = 256, .layout = GemmLayout::tt},
                    {.stages = 3});
}

/// "file:line" of every .loc, by the .file table.
std::vector<std::string> lines_of(const std::string &ptx) {
  std::map<std::string, std::string> files;
  std::vector<std::string> result;
  std::smatch match;
  std::regex file(R"re(\s*\.file\s+(\d+)\s+"([^"]*)")re");
  std::regex loc(R"(\s*\.loc\s+(\d+)\s+(\d+).*)");
  for (int pass : {0, 1}) {
    std::istringstream stream(ptx);
    for (std::string line; std::getline(stream, line);) {
      if (pass == 0 && std::regex_search(line, match, file))
        files[match[1]] = match[2];
      if (pass == 1 && std::regex_match(line, match, loc))
        result.push_back(files[match[1]] + ":" + match[2].str());
    }
  }
  return result;
}

/// The file of a .loc and the line of an instruction that contains `text`.
std::string line_before(const std::string &ptx, const std::string &text) {
  std::string before = ptx.substr(0, ptx.find(text));
  // The table of files stands at the end.
  auto lines = lines_of(before + ptx.substr(ptx.rfind(".section")));
  return lines.empty() ? "" : lines.back();
}

std::string here(unsigned line) {
  return fmt::format("{}:{}", Where::current().file, line);
}

/// The PTX without lines, labels of lines and comments.
std::string instructions_of(const std::string &ptx) {
  std::istringstream stream(ptx);
  std::string result;
  std::regex noise(R"(\s*(\.loc|\.file|\.section|//|\$L__(tmp|func_)).*|\s*)");
  for (std::string line; std::getline(stream, line);)
    if (!std::regex_match(line, noise))
      result += line + "\n";
  return result;
}
} // namespace

TEST(Dsl, EightThreadsBuildTheSameKernel) {
  std::string alone = ptx_of(warp_specialized());
  std::vector<std::string> together(8);
  std::vector<std::thread> threads;
  for (std::string &result : together)
    threads.emplace_back([&] { result = ptx_of(warp_specialized()); });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_THAT(together, testing::Each(alone));
}

TEST(Dsl, BuildersNestWithoutMixing) {
  KernelBuilder outer("outer", {.threads = 32});
  Tensor x = outer.tensor("x", i32, {32});
  {
    KernelBuilder inner("inner", {.threads = 64});
    sync_threads();
    EXPECT_THAT(ptx_of(inner.module()), HasSubstr("bar.sync"));
  }
  x(thread_id()) = 1;
  std::string ptx = ptx_of(outer.module());
  EXPECT_THAT(ptx, HasSubstr(".entry outer("));
  EXPECT_THAT(ptx, Not(HasSubstr("bar.sync")));
}

TEST(Dsl, VarsLeaveNoLocalMemory) {
  KernelBuilder kb("vars", {.threads = 32});
  Tensor x = kb.tensor("x", f32, {32});
  Var sum(f32, 0), turns(i32, 0);
  for_range(0, 10, [&](Value i) {
    if_(i % 3 == 0, [&] { sum = sum + x(i); }, [&] { turns = turns + 1; });
  });
  while_([&] { return turns > 0; },
         [&] {
           sum = sum * 2;
           turns = turns - 1;
         });
  x(0) = sum;
  std::string ptx = ptx_of(kb.module());
  EXPECT_THAT(ptx, Not(HasSubstr(".local")));
  EXPECT_THAT(ptx, HasSubstr("bra"));
}

TEST(Dsl, LinesOfAtomsAreTheUsers) {
  KernelBuilder kb("lines", {.threads = 32});
  Tensor x = kb.tensor("x", f32, {32});
  unsigned first = __LINE__ + 1;
  Value sum = x(1) + 3.0;
  Value product = 7.0 / sum;
  x(0) = product;
  sync_threads();
  std::string ptx = ptx_of(kb.module());
  EXPECT_EQ(line_before(ptx, "ld.global"), here(first));
  EXPECT_EQ(line_before(ptx, "add."), here(first));
  EXPECT_EQ(line_before(ptx, "div."), here(first + 1));
  EXPECT_EQ(line_before(ptx, "st.global"), here(first + 2));
  EXPECT_EQ(line_before(ptx, "bar.sync"), here(first + 3));
}

TEST(Dsl, LinesOfCollectivesAreTheirCallers) {
  KernelBuilder kb("collectives", {.warpgroups = 1});
  TmaOptions options{.tile = {64, 64}, .swizzle = Swizzle::b128};
  TmaTensor a = kb.tensor_map("a", f16, {64, 64}, options);
  Tensor d = kb.tensor("d", f32, {64, 64});
  unsigned first = __LINE__ + 1;
  Pipeline pipe(kb, 2, {a});
  Accumulator acc(f32, 64, 64);
  pipe.produce([&](const Slot &slot) {
    Value row = block_id();
    slot.load(a, {row, 0});
  });
  pipe.consume(acc, [&](const Slot &slot) {
    SharedTile tile = slot[a];
    acc.mma(tile, tile.transpose());
  });
  acc.store(d, {0, 0});
  std::string ptx = ptx_of(kb.module());
  EXPECT_EQ(line_before(ptx, "mbarrier.init"), here(first));
  EXPECT_EQ(line_before(ptx, "mbarrier.arrive.expect_tx"), here(first + 2));
  EXPECT_EQ(line_before(ptx, "cp.async.bulk.tensor"), here(first + 4));
  EXPECT_EQ(line_before(ptx, "wgmma.mma_async"), here(first + 8));
  EXPECT_EQ(line_before(ptx, "wgmma.wait_group"), here(first + 6));
  EXPECT_EQ(line_before(ptx, "st.global"), here(first + 10));
  EXPECT_THAT(ptx, Not(HasSubstr("src/dsl")));
  EXPECT_THAT(ptx, Not(HasSubstr("include/kiln")));
}

TEST(Dsl, GemmNamesItsOwnLines) {
  std::string ptx = ptx_of(warp_specialized());
  EXPECT_THAT(line_before(ptx, "wgmma.mma_async"),
              HasSubstr("kernels/gemm/device/wgmma_kernel.cpp:"));
  EXPECT_THAT(ptx, Not(HasSubstr("src/dsl")));
}

TEST(Dsl, LinesDoNotTurnTheTargetToDebug) {
  std::string ptx = ptx_of(warp_specialized());
  EXPECT_THAT(ptx, HasSubstr(".target sm_90a\n"));
  EXPECT_THAT(ptx, Not(HasSubstr(", debug")));
}

TEST(Dsl, InlineAssemblyIsConvergent) {
  std::string llvm = emit(warp_specialized(), Stage::llvm, kNoCache);
  std::smatch match;
  std::map<std::string, std::string> groups;
  std::regex group(R"(attributes (#\d+) = \{(.*)\})");
  std::istringstream first(llvm), second(llvm);
  for (std::string line; std::getline(first, line);)
    if (std::regex_match(line, match, group))
      groups[match[1]] = match[2];
  int calls = 0;
  for (std::string line; std::getline(second, line);) {
    std::size_t close = line.rfind(") #");
    if (line.find(" asm ") == std::string::npos)
      continue;
    ++calls;
    ASSERT_NE(close, std::string::npos) << line.substr(0, 200);
    std::string name = line.substr(close + 2);
    name = name.substr(0, name.find_first_not_of("#0123456789"));
    EXPECT_THAT(groups[name], HasSubstr("convergent")) << line.substr(0, 200);
  }
  EXPECT_GT(calls, 16);
}

TEST(Dsl, AWaitStaysBehindATile) {
  // Behind a branch that depends on the tile, whatever its type.
  for (Type type : {f32, bf16}) {
    KernelBuilder kb("behind", {.warpgroups = 1});
    SharedTile a = kb.shared(TileLayout::of(f16, 64, 64));
    Tensor d = kb.tensor("d", f32, {64, 64});
    RegisterTile one(type, RegisterLayout::row_per_thread(128, 1), 1.0);
    Accumulator acc(f32, 64, 64);
    acc.mma(a, a.transpose());
    acc.wait(0, {.after = &one});
    acc.store(d, {0, 0});
    std::string ptx = ptx_of(kb.module());
    auto vote = ptx.find("vote.sync.any.pred"),
         branch = ptx.find("bra stays", vote),
         wait = ptx.find("wgmma.wait_group.sync.aligned 0;", branch);
    EXPECT_NE(wait, std::string::npos) << ptx;
    EXPECT_GT(vote, ptx.find("wgmma.commit_group")) << ptx;
  }
}

TEST(Dsl, DirectivesOfTheLaunch) {
  Module module = warp_specialized();
  std::string ptx = ptx_of(module);
  EXPECT_THAT(ptx, HasSubstr(".reqntid 256, 1, 1"));
  EXPECT_THAT(ptx, HasSubstr(".minnctapersm 1"));
  EXPECT_THAT(ptx, HasSubstr(".maxnreg 136"));
  EXPECT_EQ(module.contract().registers_at_entry, 136);
  EXPECT_EQ(module.contract().threads(), 256);

  KernelBuilder kb("plain", {.threads = 96, .ctas_per_sm = 4});
  ptx = ptx_of(kb.module());
  EXPECT_THAT(ptx, HasSubstr(".reqntid 96, 1, 1"));
  EXPECT_THAT(ptx, HasSubstr(".minnctapersm 4"));
  EXPECT_THAT(ptx, Not(HasSubstr(".maxnreg")));
}

TEST(Dsl, PrintedModuleParsesToTheSameKernel) {
  for (GemmKind kind : {GemmKind::multistage, GemmKind::warp_specialized}) {
    Module module = build_gemm({.m = 256, .n = 256, .k = 256}, {.kind = kind});
    Module parsed = parse_module(emit(module, Stage::mlir), "printed.mlir");
    EXPECT_EQ(parsed.name(), module.name());
    EXPECT_EQ(instructions_of(ptx_of(parsed)), instructions_of(ptx_of(module)));
  }
}

TEST(Dsl, ContractFollowsTheArguments) {
  KernelBuilder kb("contract", {.threads = 32});
  Dim n = kb.dim("n");
  Tensor in = kb.tensor("in", f16, {n, 8}, {16, 1});
  Tensor out = kb.tensor("out", f32, {n});
  kb.tensor_map(in, {.tile = {8, 8}});
  kb.grid(ceil_div(n, 4), 2);
  out(0) = cast(in(0, 0), f32);
  LaunchContract contract = kb.module().contract();
  ASSERT_EQ(contract.arguments.size(), 3u);
  EXPECT_EQ(contract.arguments[0].kind, ArgumentSpec::Kind::scalar);
  EXPECT_FALSE(contract.arguments[1].is_output);
  EXPECT_TRUE(contract.arguments[2].is_output);
  // A strided tensor ends at its last element.
  ASSERT_EQ(contract.arguments[1].shape.size(), 1u);
  EXPECT_EQ(contract.arguments[1].shape[0].evaluate([](auto &) { return 5; }),
            4 * 16 + 8);
  ASSERT_EQ(contract.parameters.size(), 4u);
  EXPECT_EQ(contract.parameters[3].argument, 1);
  EXPECT_EQ(contract.parameters[3].tensor_map->box, (std::vector<int>{8, 8}));
  EXPECT_EQ(contract.grid[0], ceil_div(n, 4));
}
