// Shadow: records in cells, and which lanes touched which bytes.
#include "sim/clocks/Shadow.h"

#include <gtest/gtest.h>

namespace kiln::sim {

static Record record(std::uint32_t time, std::uint16_t bytes = 0xffff) {
  return {.time = time,
          .lanes = 1,
          .component = 0,
          .op = 0,
          .bytes = bytes,
          .flags = 0};
}

TEST(Record, LanesThatTookTheBytesInTurn) {
  Record split = record(1, 0xfff0);
  split.lanes = 0b111 << 5;
  split.flags = Record::kSplit | 4 << Record::kBaseShift |
                2 << Record::kSizeShift; // from byte 4 on, four bytes each
  EXPECT_EQ(split.lanesOf(0x00f0), 1u << 5);
  EXPECT_EQ(split.lanesOf(0x0100), 1u << 6);
  EXPECT_EQ(split.lanesOf(0x8010), 1u << 5 | 1u << 7);
  split.bytes = 0xff00; // a part that is gone changes nothing
  EXPECT_EQ(split.lanesOf(0xf000), 1u << 7);
}

TEST(Record, LanesThatAllTookTheSameBytes) {
  Record all = record(1, 0x000f);
  all.lanes = kAllLanes;
  EXPECT_EQ(all.lanesOf(0x0001), kAllLanes);
}

TEST(Shadow, KeepsWhatDoesNotFitIntoACell) {
  Shadow shadow;
  Cell &cell = shadow.cell(1000);
  for (std::uint32_t time = 1; time <= 5; ++time)
    shadow.add(cell, record(time));
  std::uint32_t sum = 0;
  shadow.forEach(cell, [&](Record &one) {
    sum += one.time;
    if (one.time == 5)
      one.bytes = 0; // its place is free again
  });
  EXPECT_EQ(sum, 15u);
  std::size_t before = shadow.bytes();
  shadow.add(cell, record(7));
  EXPECT_EQ(shadow.bytes(), before);
  shadow.forEach(cell, [&](Record &one) { sum += one.time; });
  EXPECT_EQ(sum, 15u + 17u);
}

TEST(Shadow, ACrowdIsPartOfItsCell) {
  Shadow shadow;
  Cell &cell = shadow.cell(1000);
  EXPECT_FALSE(shadow.findCrowd(cell));
  shadow.add(cell, record(1));
  Crowd &crowd = shadow.crowd(cell);
  crowd.note(Scope::gpu, 7);
  crowd.members[5].push_back(record(2));
  crowd.members[6].push_back(record(4));
  std::uint32_t sum = 0;
  shadow.forEach(cell, [&](Record &one) { sum += one.time; });
  EXPECT_EQ(sum, 7u);
  shadow.forEachAlone(cell, [&](Record &one) { sum += one.time; });
  EXPECT_EQ(sum, 8u);
  crowd.members[6][0].bytes = 0;
  crowd.tidy();
  EXPECT_EQ(crowd.size, 1u);
  EXPECT_EQ(crowd.members.size(), 1u);
  EXPECT_EQ(shadow.findCrowd(cell), &crowd);
}

TEST(Crowd, KnowsItsLeastScopeAndWhetherItIsOfOneCta) {
  Crowd crowd;
  crowd.note(Scope::gpu, 7);
  crowd.members[5].push_back(record(2));
  crowd.note(Scope::cta, 7);
  EXPECT_TRUE(crowd.isOfOneCta);
  EXPECT_EQ(crowd.reach, Scope::cta);
  crowd.note(Scope::gpu, 8);
  EXPECT_FALSE(crowd.isOfOneCta);
  EXPECT_EQ(crowd.reach, Scope::cta);
  crowd.members.clear();
  crowd.note(Scope::gpu, 8);
  EXPECT_TRUE(crowd.isOfOneCta) << "those before are gone";
  EXPECT_EQ(crowd.reach, Scope::gpu);
}

TEST(Shadow, CostsFourBytesPerByteAndOnlyWhereTouched) {
  Shadow shadow;
  EXPECT_EQ(shadow.bytes(), 0u);
  shadow.cell(0);
  std::size_t page = Shadow::kPageCells * Shadow::kCellBytes;
  EXPECT_EQ(shadow.bytes(), 4 * page);
  shadow.cell(Shadow::kPageCells - 1);
  EXPECT_EQ(shadow.bytes(), 4 * page);
  shadow.cell(std::uint64_t(1) << 40);
  EXPECT_EQ(shadow.bytes(), 8 * page);
  auto pages = shadow.pages();
  ASSERT_EQ(pages.size(), 2u);
  EXPECT_EQ(pages[0].first, 0u);
  EXPECT_EQ(pages[1].first, std::uint64_t(1) << 40);
}

TEST(Shadow, SplitsLayersIntoCellsAndMergesThemAgain) {
  Shadow shadow;
  Shadow::Page &page = shadow.page(3);
  page.layers = {{record(1), ~CellSet(0)}, {record(2), CellSet(0b110)}};
  EXPECT_LT(shadow.bytes(), Shadow::kPageCells * Shadow::kCellBytes);
  auto timesOf = [&](std::uint64_t index) {
    std::vector<std::uint32_t> times;
    shadow.forEach(shadow.cell(3 * Shadow::kPageCells + index),
                   [&](Record &one) {
                     EXPECT_EQ(one.bytes, 0xffff);
                     times.push_back(one.time);
                   });
    return times;
  };
  EXPECT_EQ(timesOf(0), (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(timesOf(2), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_TRUE(page.isSplit);
  EXPECT_TRUE(page.layers.empty());
  // Cells that differ stay cells.
  Shadow::merge(page, record(1));
  EXPECT_TRUE(page.isSplit);
  for (std::uint64_t i = 0; i < Shadow::kPageCells; ++i) {
    Cell &cell = shadow.cell(3 * Shadow::kPageCells + i);
    cell = {};
    shadow.add(cell, record(9));
  }
  Shadow::merge(page, record(9));
  EXPECT_FALSE(page.isSplit);
  ASSERT_EQ(page.layers.size(), 1u);
  // What was in the cells before does not come back.
  EXPECT_EQ(timesOf(2), (std::vector<std::uint32_t>{9}));
}

} // namespace kiln::sim
