// OneSource: accumulators and epilogues whose source names no tensor core:
// built for targets that have mma.sync alone and for wgmma.
#include "conformance/AllOrders.h"
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

using namespace conformance;

class OneSource : public testing::TestWithParam<const char *> {
protected:
  std::string target() const { return GetParam(); }
  std::shared_ptr<Device> device() const {
    return open_all_orders(DeviceDescription::for_target(target()));
  }
};
INSTANTIATE_TEST_SUITE_P(, OneSource,
                         testing::Values("sm_80", "sm_89", "sm_90a", "sm_120a"),
                         [](const auto &info) { return info.param; });

static constexpr int kM = 128, kN = 48, kK = 64;

namespace {
/// Small integers, so that every sum is exact.
std::vector<double> small_integers(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> result(count);
  for (double &value : result)
    value = static_cast<int>(random() % 7) - 3;
  return result;
}

/// D[kM, kN] is `times` the product of A and B, stored as the majors say.
struct Case {
  Type type = f16;
  bool is_a_k_major = true, is_b_k_major = true;
  Swizzle swizzle = Swizzle::b128;
};

/// A tile that fits the swizzle, its rows filled up.
TileLayout layout_of(const Case &one, int rows, int columns) {
  TileLayout layout{one.type, rows, columns, one.swizzle};
  int width = static_cast<int>(one.swizzle) / size_bytes(one.type);
  if (width)
    layout.columns = (columns + width - 1) / width * width;
  else
    layout.panel = 16 / size_bytes(one.type);
  return layout;
}

using Body = std::function<void(Accumulator &, const SharedTile &,
                                const SharedTile &, const Value &)>;

/// Both tiles in shared memory, and what `body` does with A[kM, kK], B[kK, kN].
Kernel one_tile(const std::string &target, const Case &one, const Body &body) {
  KernelBuilder kb("one_source", {.warpgroups = 1, .target = target});
  int a_rows = one.is_a_k_major ? kM : kK,
      a_columns = one.is_a_k_major ? kK : kM;
  int b_rows = one.is_b_k_major ? kN : kK,
      b_columns = one.is_b_k_major ? kK : kN;
  Tensor a = kb.tensor("a", one.type, {a_rows, a_columns});
  Tensor b = kb.tensor("b", one.type, {b_rows, b_columns});
  Tensor d = kb.tensor("d", f32, {kM, kN});
  Value n = kb.scalar("n", i32);
  SharedTile a_tile = kb.shared(layout_of(one, a_rows, a_columns));
  SharedTile b_tile = kb.shared(layout_of(one, b_rows, b_columns));
  Epilogue out(kb, d, 64, 16);
  copy(CopyScope::cta, a_tile, a);
  copy(CopyScope::cta, b_tile, b);
  fence_async_shared();
  sync_threads();
  Accumulator acc(is_float(one.type) ? f32 : i32, kM, kN);
  body(acc, one.is_a_k_major ? a_tile : a_tile.transpose(),
       one.is_b_k_major ? b_tile.transpose() : b_tile.slice(0, 0, kK, kN), n);
  out.store(acc, {0, 0});
  out.finish();
  return compile_checked(kb.module());
}

void expect_times(Device &device, const Kernel &kernel, const Case &one, int n,
                  double times) {
  auto a = small_integers(kM * kK, n + 1), b = small_integers(kN * kK, 9);
  auto a_bytes = elements(one.type, a), b_bytes = elements(one.type, b);
  std::vector<float> d(kM * kN, -1e9f), want(kM * kN);
  for (int i = 0; i < kM; ++i)
    for (int j = 0; j < kN; ++j) {
      double sum = 0;
      for (int k = 0; k < kK; ++k)
        sum += (one.is_a_k_major ? a[i * kK + k] : a[k * kM + i]) *
               (one.is_b_k_major ? b[j * kK + k] : b[k * kN + j]);
      want[i * kN + j] = static_cast<float>(times * sum);
    }
  LaunchResult result = try_run(device, kernel, a_bytes, b_bytes, d, n);
  EXPECT_TRUE(result.findings.empty()) << result.to_string();
  EXPECT_EQ(d, want);
}
} // namespace

TEST_P(OneSource, EveryMajorAndSwizzle) {
  auto simulator = device();
  for (Swizzle swizzle :
       {Swizzle::none, Swizzle::b32, Swizzle::b64, Swizzle::b128})
    for (bool is_a_k_major : {true, false})
      for (bool is_b_k_major : {true, false}) {
        Case one{f16, is_a_k_major, is_b_k_major, swizzle};
        SCOPED_TRACE(testing::Message() << static_cast<int>(swizzle) << ' '
                                        << is_a_k_major << is_b_k_major);
        Kernel kernel =
            one_tile(target(), one, [](auto &acc, auto &a, auto &b, auto &) {
              acc.mma(a, b);
            });
        bool is_hopper = target() == "sm_90a";
        EXPECT_EQ(count(kernel.ptx, "wgmma.mma_async") > 0, is_hopper);
        EXPECT_EQ(count(kernel.ptx, "mma.sync.aligned.m16n8k16") > 0,
                  !is_hopper);
        expect_times(*simulator, kernel, one, 1, 1);
      }
}

TEST_P(OneSource, EveryType) {
  auto simulator = device();
  for (Type type : {bf16, tf32, i8}) {
    SCOPED_TRACE(name(type));
    Case one{type};
    one.swizzle = Swizzle::b64;
    Kernel kernel =
        one_tile(target(), one,
                 [](auto &acc, auto &a, auto &b, auto &) { acc.mma(a, b); });
    expect_times(*simulator, kernel, one, 1, 1);
  }
}

// Parts of K that begin in the middle of a swizzle's row.
TEST_P(OneSource, PartsOfK) {
  Kernel kernel =
      one_tile(target(), {}, [](auto &acc, auto &a, auto &b, auto &) {
        for (int k = 0; k < kK; k += 32)
          acc.mma(a.slice(0, k, kM, 32), b.slice(k, 0, 32, kN));
      });
  expect_times(*device(), kernel, {}, 1, 1);
}

TEST_P(OneSource, ResetAddsAndLoops) {
  Kernel kernel =
      one_tile(target(), {}, [](auto &acc, auto &a, auto &b, auto &n) {
        acc.mma(a, b);
        acc.wait(0);
        acc.reset();
        for_range(0, n, [&](Value) {
          acc.mma(a, b);
          acc.wait(0);
        });
        acc.mma(a, b, {.add = n != 2});
      });
  auto simulator = device();
  expect_times(*simulator, kernel, {}, 1, 2);
  expect_times(*simulator, kernel, {}, 2, 1);
  expect_times(*simulator, kernel, {}, 3, 4);
}

TEST_P(OneSource, AInRegisters) {
  Kernel kernel =
      one_tile(target(), {}, [](auto &acc, auto &a, auto &b, auto &) {
        RegisterTile words =
            load_tile(RegisterLayout::wgmma_operand(f16, kM, kK), a);
        acc.mma(words, b);
        acc.wait(0);
      });
  expect_times(*device(), kernel, {}, 1, 1);
}

TEST(OneSourceErrors, WhatWarpsDoNotMultiply) {
  KernelBuilder kb("k", {.warpgroups = 1, .target = "sm_80"});
  SharedTile a = kb.shared({f16, 64, 64, Swizzle::b128});
  SharedTile bytes = kb.shared({e4m3, 128, 64, Swizzle::b64});
  auto refused = [](const std::function<void()> &body) -> std::string {
    try {
      body();
    } catch (const UserError &error) {
      return error.message();
    }
    return "nothing";
  };
  Accumulator acc(f32, 64, 64);
  EXPECT_EQ(refused([&] { acc.mma(a, a.transpose(), {.negate_a = true}); }),
            "mma.sync has no negation; negate what it is given");
  EXPECT_EQ(refused([&] { acc.mma(a, bytes.slice(0, 0, 64, 64)); }),
            "mma.sync cannot multiply f16 by e4m3");
  EXPECT_EQ(refused([&] { Accumulator odd(f32, 64, 12); }),
            "an accumulator of 12 columns; mma.sync takes multiples of 8 up to "
            "256");
  EXPECT_EQ(refused([&] { acc.mma(a, a.transpose()), acc.element(0); }),
            "an accumulator of 64x64 is used while its multiplication is in "
            "flight; call wait(0) first");
}
