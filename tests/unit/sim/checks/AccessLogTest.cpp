// AccessLog: what is put in comes out, and loops take little room.
#include "sim/clocks/AccessLog.h"
#include "sim/clocks/Shadow.h"

#include <bit>
#include <gtest/gtest.h>
#include <map>

namespace kiln::sim {

namespace {
using Addresses = AccessLog::Addresses;

LoggedAccess access(std::uint32_t op, std::uint32_t time,
                    LaneMask lanes = kAllLanes, std::uint16_t flags = 0) {
  LoggedAccess one{};
  one.form = LoggedAccess::Form::scattered;
  one.op = op;
  one.time = time;
  one.lanes = lanes;
  one.bytes = 4;
  one.flags = flags;
  return one;
}

Addresses scattered(std::uint64_t from) {
  Addresses addresses;
  for (std::uint64_t lane = 0; lane < kLanes; ++lane)
    addresses[lane] = from + lane * lane * 64;
  return addresses;
}

void put(AccessLog &log, const LoggedAccess &one, const Addresses &addresses) {
  ASSERT_TRUE(
      log.add(one, addresses.data(), addresses.front(), addresses.back()));
}

/// What a log has: by instruction and time, the address of the last lane that
/// takes part.
using Found = std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t>;
Found contents(AccessLog &log, std::size_t place = 0) {
  Found found;
  log.forEachBehind(
      place, [&](const LoggedAccess &one, const std::uint64_t *addresses) {
        int last = kLanes - 1 - std::countl_zero(one.lanes);
        found[{one.op, one.time}] = addresses[last];
      });
  return found;
}
} // namespace

TEST(AccessLog, TellsAccessesOfLoopsAsTheyWere) {
  AccessLog log;
  Found expected;
  std::size_t half = 0;
  for (std::uint32_t round = 0; round < 200; ++round) {
    for (std::uint32_t op = 0; op < 3; ++op) {
      // One does not move, one loses lanes, one writes.
      LaneMask lanes = op == 1 ? kAllLanes >> (round / 10) : kAllLanes;
      std::uint32_t time = round * 3 + op;
      Addresses addresses = scattered((op << 20) + (op ? round * 4 : 0));
      put(log, access(op, time, lanes, op == 2 ? Record::kWrite : 0),
          addresses);
      expected[{op, time}] = addresses[static_cast<std::size_t>(
          kLanes - 1 - std::countl_zero(lanes))];
    }
    if (round == 99)
      half = log.seal();
  }
  EXPECT_EQ(contents(log), expected);
  std::erase_if(expected,
                [](const auto &one) { return one.first.second < 300; });
  EXPECT_EQ(contents(log, half), expected);
}

TEST(AccessLog, GivesWhatIsAskedForAndKeepsTheRest) {
  AccessLog log;
  for (std::uint32_t round = 0; round < 300; ++round)
    for (std::uint32_t op : {1, 2})
      put(log, access(op, round * 2 + op), scattered(round * 4));
  std::size_t taken = 0;
  log.take([](const LoggedAccess &one) { return one.op == 1; },
           [&](const LoggedAccess &one, const std::uint64_t *) {
             EXPECT_EQ(one.op, 1u);
             ++taken;
           });
  EXPECT_EQ(taken, 300u);
  Found left = contents(log);
  EXPECT_EQ(left.size(), 300u);
  EXPECT_EQ((left[{2, 299 * 2 + 2}]), scattered(299 * 4).back());
}

TEST(AccessLog, NeedsLittleForALoop) {
  AccessLog log;
  for (std::uint32_t round = 0; round < 10000; ++round)
    for (std::uint32_t op : {1, 2})
      put(log, access(op, round * 2 + op), scattered(round * 4 * op));
  EXPECT_LT(log.bytes(), 16384u);
}

TEST(AccessLog, RefusesAddressesThatAreTooFarApart) {
  AccessLog log;
  Addresses addresses = scattered(0);
  addresses[5] = std::uint64_t(1) << 40;
  EXPECT_FALSE(log.add(access(1, 1), addresses.data(), 0, addresses[5]));
  EXPECT_TRUE(log.isEmpty());
}

} // namespace kiln::sim
