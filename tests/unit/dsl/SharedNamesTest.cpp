// SharedNames: what a kernel calls its barriers and tiles reaches the findings.
#include <kiln/kiln.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln {
namespace {

using testing::HasSubstr;

/// The objects of a contract as "name offset element_bytes count".
std::vector<std::string> objectsOf(const Kernel &kernel) {
  std::vector<std::string> texts;
  for (const SharedObject &object : kernel.contract.shared_objects) {
    EXPECT_THAT(object.file, HasSubstr("SharedNamesTest.cpp"));
    EXPECT_GT(object.line, 0);
    texts.push_back(object.name + " " + std::to_string(object.offset) + " " +
                    std::to_string(object.element_bytes) + " " +
                    std::to_string(object.count));
  }
  return texts;
}

/// Waits for a barrier that an arrival reaches only where `go` is not 0.
Kernel waiting(int *line) {
  KernelBuilder kb("waiting", {.threads = 32});
  Value go = kb.scalar("go", i32);
  kb.grid(1);
  *line = __LINE__ + 1;
  MbarrierArray barriers = kb.mbarriers(2, "v_empty");
  one_thread([&] {
    barriers[0].init(1);
    barriers[1].init(1);
    fence_mbarrier_init();
  });
  sync_threads();
  if_(go != 0, [&] { one_thread([&] { barriers[1].arrive(); }); });
  barriers[1].wait(0);
  return kb.build({.use_cache = false});
}

TEST(SharedNames, ALedgerSaysTheBarrierAndItsLine) {
  int line = 0;
  Kernel kernel = waiting(&line);
  auto device = open_sim();
  EXPECT_TRUE(try_run(*device, kernel, 1).findings.empty());
  LaunchResult result = try_run(*device, kernel, 0);
  ASSERT_FALSE(result.findings.empty());
  EXPECT_THAT(result.to_string(), HasSubstr("v_empty[1]"));
  EXPECT_THAT(result.to_string(),
              HasSubstr("declared at tests/unit/dsl/SharedNamesTest.cpp:" +
                        std::to_string(line)));
  // The saved kernel knows them too.
  Kernel again = Kernel::deserialize(kernel.serialize(), "again");
  EXPECT_EQ(again.contract, kernel.contract);
  EXPECT_THAT(try_run(*device, again, 0).to_string(), HasSubstr("v_empty[1]"));
}

TEST(SharedNames, PipelinesNameTheirSlotsAfterTheirTensors) {
  KernelBuilder kb("pipes", {.warpgroups = 2});
  TmaTensor k = kb.tensor_map("k", f16, {128, 64}, {.tile = {64, 64}});
  TmaTensor v = kb.tensor_map("v", f16, {128, 64}, {.tile = {64, 64}});
  kb.grid(1);
  Pipeline keys(kb, 2, {k}, {.name = "keys"});
  Pipeline values(kb, 3, {v});
  kb.shared({f32, 8, 8});
  kb.shared({f32, 8, 8}, {.over = values.tiles(0)[0], .name = "staging"});
  EXPECT_THAT(objectsOf(compile(kb.module(), {.use_cache = false})),
              testing::ElementsAre("keys.k 0 8192 2", "keys.full 16384 8 2",
                                   "keys.empty 16400 8 2", "v 16512 8192 3",
                                   "full 41088 8 3", "empty 41112 8 3",
                                   "tile 41216 256 1", "staging 16512 256 1"));
}

TEST(SharedNames, WhatLiesOverSomethingHasBothNames) {
  KernelBuilder kb("over", {.threads = 64});
  Tensor out = kb.tensor("out", f32, {1});
  kb.grid(1);
  SharedTile left = kb.shared(TileLayout::of(f32, 8, 8), {.name = "left"});
  SharedTile right =
      kb.shared(TileLayout::of(f32, 8, 8), {.over = left, .name = "right"});
  right(0, 0) = cast(thread_id(), f32); // two warps, one element
  sync_threads();
  out(0) = left(0, 0);
  Kernel kernel = kb.build({.use_cache = false});
  std::vector<float> data(1);
  EXPECT_THAT(try_run(*open_sim(), kernel, data).to_string(),
              HasSubstr("left or right (shared address"));
}

} // namespace
} // namespace kiln
