// Warp: what is refused of shuffles, votes and reductions.
#include "Refused.h"

using namespace errors;

namespace {
struct WarpErrors : testing::Test {
  KernelBuilder kb{"k", {.threads = 32}};
  Value whole = kb.scalar("whole", i32);
  Tensor bytes = kb.tensor("bytes", e5m2, {32});
};
} // namespace

TEST_F(WarpErrors, Groups) {
  for (int width : {0, 3, 64})
    refused(
        __LINE__, [&] { shuffle_up(whole, 0, {.width = width}); },
        fmt::format("shuffle_up in groups of {} lanes; groups have 1, 2, 4, 8, "
                    "16 or 32",
                    width));
  refused(
      __LINE__, [&] { shuffle_xor(whole, 32); },
      "shuffle_xor by 32 leaves its group of 32 lanes; 0 to 31 stay inside");
  refused(
      __LINE__, [&] { shuffle_from(whole, -1, {.width = 8}); },
      "shuffle_from by -1 leaves its group of 8 lanes; 0 to 7 stay inside");
}

TEST_F(WarpErrors, WhatIsShuffled) {
  refused(
      __LINE__, [&] { shuffle_down(bytes(0), 1); },
      "'shuffle_down' was applied to e5m2, which can be loaded, stored, cast "
      "and "
      "multiplied by wgmma, and not computed with");
  refused(
      __LINE__, [&] { shuffle_down(whole, 1.5); },
      "the literal 1.5 is not a valid i32; cast one of the operands");
}

TEST_F(WarpErrors, VotesAreOfConditions) {
  refused(
      __LINE__, [&] { vote_all(whole); },
      "expected a value of type i1, found i32; `cast` converts");
}

TEST_F(WarpErrors, ReductionsAreOfNumbers) {
  refused(
      __LINE__, [&] { warp_reduce(whole == 1, Reduction::add); },
      "warp_reduce takes numbers, not i1; vote_all, vote_any and ballot take "
      "conditions");
  refused(
      __LINE__, [&] { warp_reduce(whole, Reduction::inc); },
      "the lanes of a warp are reduced by add, min, max, bit_and, bit_or or "
      "bit_xor");
  refused(
      __LINE__, [&] { warp_reduce(cast(whole, f32), Reduction::bit_or); },
      "values of f32 are reduced by add, min or max; bits of i32 and u32 "
      "alone");
}
