// RawPtx: instructions written as text: registers, braces, predicates.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

using namespace conformance;

class RawPtx : public OnDevice {};
INSTANTIATE_ON_DEVICES(RawPtx);

TEST_P(RawPtx, RegistersOfEveryType) {
  for (Type type : {i16, u16, f16, bf16, i32, u32, f32, i64, u64, f64}) {
    KernelBuilder kb("moves", {.threads = 4});
    Tensor x = kb.tensor("x", type, {4});
    Value i = thread_id();
    Value moved =
        inline_ptx("mov.b" + std::to_string(size_bits(type)) + " {0}, {1};",
                   {kiln::out(type), kiln::in(x(3 - i))})[0];
    warp_sync(0xf); // read before it is overwritten
    x(i) = moved;
    Kernel kernel = compile_checked(kb.module());
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    std::vector<std::uint8_t> data = elements(type, {1, 2, 3, 4});
    run(*device, kernel, data);
    EXPECT_EQ(values(type, data), (std::vector<double>{4, 3, 2, 1}))
        << name(type);
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(RawPtx, BracesOfPtxAndSeveralResults) {
  KernelBuilder kb("pairs", {.threads = 8});
  Tensor x = kb.tensor("x", f32, {8, 2});
  Tensor y = kb.tensor("y", f32, {8});
  Value i = thread_id();
  auto pair =
      inline_ptx("ld.global.v2.f32 {{0}, {1}}, [{2}];",
                 {kiln::out(f32), kiln::out(f32), kiln::in(x(i, 0).address())});
  // A scope with a name of its own; $ is a letter of PTX.
  y(i) = inline_ptx("{\n"
                    ".reg .f32 $twice;\n"
                    "add.f32 $twice, {1}, {1};\n"
                    "sub.f32 {0}, $twice, {2};\n"
                    "}",
                    {kiln::out(f32), kiln::in(pair[1]), kiln::in(pair[0])},
                    {.is_pure = true})[0];
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<float> in(16), found(8, -1), expected;
  for (int i = 0; i < 16; ++i)
    in[i] = static_cast<float>(i * i);
  for (int i = 0; i < 8; ++i)
    expected.push_back(2 * in[2 * i + 1] - in[2 * i]);
  run(device, kernel, in, found);
  EXPECT_EQ(found, expected);
}

TEST_P(RawPtx, PredicateKeepsWhatIsReadAndWritten) {
  KernelBuilder kb("guarded", {.threads = 32});
  Tensor y = kb.tensor("y", i32, {2, 32});
  Value t = thread_id();
  y(0, t) = inline_ptx("add.s32 {0}, {0}, {1};", {inout(t), kiln::in(100)},
                       {.predicate = t < 10})[0];
  inline_ptx("st.global.u32 [{0}], {1};",
             {kiln::in(y(1, t).address()), kiln::in(t)},
             {.predicate = t % 2 == 1});
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<int> found(64, -1), expected;
  for (int t = 0; t < 32; ++t)
    expected.push_back(t < 10 ? t + 100 : t);
  for (int t = 0; t < 32; ++t)
    expected.push_back(t % 2 ? t : -1);
  run(device, kernel, found);
  EXPECT_EQ(found, expected);
}

TEST_P(RawPtx, PredicatesAsOperands) {
  KernelBuilder kb("conditions", {.threads = 16});
  Tensor y = kb.tensor("y", i32, {16});
  Value t = thread_id();
  auto both = inline_ptx("setp.lt.and.s32 {0}, {1}, 12, {2};",
                         {kiln::out(i1), kiln::in(t), kiln::in(t > 3)});
  y(t) = select(both[0], 1, 0);
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<int> found(16, -1), expected;
  for (int t = 0; t < 16; ++t)
    expected.push_back(t > 3 && t < 12);
  run(device, kernel, found);
  EXPECT_EQ(found, expected);
}

TEST_P(RawPtx, PureTextIsRemovedAndOtherTextIsNot) {
  KernelBuilder kb("effects", {.threads = 1});
  Tensor y = kb.tensor("y", f32, {1});
  Value x = y(0);
  inline_ptx("ex2.approx.f32 {0}, {1};", {kiln::out(f32), kiln::in(x)},
             {.is_pure = true});
  inline_ptx("lg2.approx.f32 {0}, {1};", {kiln::out(f32), kiln::in(x)});
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "ex2.approx"), 0);
  EXPECT_EQ(count(kernel.ptx, "lg2.approx"), 1);
  SKIP_WITHOUT_DEVICE();
}

TEST_P(RawPtx, SharedAddresses) {
  KernelBuilder kb("addresses", {.threads = 32});
  Tensor y = kb.tensor("y", u32, {32});
  SharedTile tile = kb.shared({.type = u32, .rows = 1, .columns = 32});
  Value t = thread_id();
  inline_ptx("st.shared.u32 [{0}], {1};",
             {kiln::in(tile(0, t).address()), kiln::in(cast(t, u32) + 5)});
  sync_threads();
  y(t) = tile(0, 31 - t);
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<unsigned> found(32, 0), expected;
  for (unsigned t = 0; t < 32; ++t)
    expected.push_back(31 - t + 5);
  run(device, kernel, found);
  EXPECT_EQ(found, expected);
}
