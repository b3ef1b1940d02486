// Call: products and attention in one call, twice, from threads, and what is
// refused.
#include "conformance/Conformance.h"
#include "conformance/threads/PassingOn.h"

#include <kiln/kernels/call.h>
#include <kiln/kernels/gemm_reference.h>
#include <kiln/measure/reference.h>
#include <kiln/run/run.h>

#include <gmock/gmock.h>

#include <thread>

using namespace conformance;

class Call : public OnDevice {};
INSTANTIATE_ON_DEVICES(Call);

template <typename T>
static Buffer copied(Device &device, const std::vector<T> &data) {
  Buffer buffer = device.allocate(data.size() * sizeof(T));
  device.copy_in(buffer, data.data(), buffer.bytes());
  return buffer;
}

static std::vector<std::uint16_t> random_halves(std::size_t count,
                                                unsigned seed) {
  std::vector<std::uint16_t> data(count);
  fill_random(f16, data.data(), count, seed);
  return data;
}

namespace {
/// A small product: what is given, and whether what came is right.
struct Product {
  GemmProblem problem{.m = 70, .n = 40, .k = 96};
  std::vector<std::uint16_t> a, b;
  std::vector<float> d;

  explicit Product(unsigned seed)
      : a(random_halves(70 * 96, seed)), b(random_halves(40 * 96, seed + 1)),
        d(70 * 40, NAN) {}

  void run(const std::shared_ptr<Device> &device, const Stream &stream = {}) {
    Buffer out = copied(*device, d);
    Buffer of_a = copied(*device, a), of_b = copied(*device, b);
    for (int i = 0; i < 2; ++i) { // the second finds what the first packed
      gemm(device, stream, problem, {.a = of_a, .b = of_b, .d = out});
      device->copy_out(d.data(), out, out.bytes(), stream);
      device->synchronize(stream);
      Comparison found = compare_gemm(
          {.m = 70, .n = 40, .k = 96, .a = a.data(), .b = b.data()}, d.data());
      EXPECT_TRUE(found.ok) << i;
      device->fill(out, 0xff, stream);
    }
  }
};
} // namespace

static std::shared_ptr<Device> opened(const std::string &id) {
  return id == "sim" ? open_sim() : open_cuda();
}

TEST_P(Call, Gemm) {
  SKIP_WITHOUT_DEVICE();
  std::shared_ptr<Device> device = opened(GetParam());
  Product(1).run(device);
  Product(2).run(device, device->create_stream());
}

TEST_P(Call, RepackedInTwoStreams) {
  SKIP_WITHOUT_DEVICE();
  std::shared_ptr<Device> device = opened(GetParam());
  GemmProblem problem{.m = 73, .n = 25, .k = 1306, .layout = GemmLayout::nt};
  ASSERT_TRUE(pick_schedule(problem).is_repacked);
  auto a = random_halves(73 * 1306, 5), b = random_halves(25 * 1306, 6);
  ReferenceGemm reference = reference_of(problem);
  reference.a = a.data(), reference.b = b.data();
  GemmArguments operands{.a = copied(*device, a), .b = copied(*device, b)};
  std::vector<Stream> streams = {{}, device->create_stream()};
  std::vector<Buffer> outs;
  for (int i = 0; i < 6; ++i) {
    outs.push_back(copied(*device, std::vector<float>(73 * 25, NAN)));
    operands.d = outs.back();
    gemm(device, streams[i % 2], problem, operands);
  }
  for (const Stream &stream : streams)
    device->synchronize(stream);
  for (const Buffer &out : outs) {
    std::vector<float> d(73 * 25);
    device->copy_out(d.data(), out, out.bytes());
    device->synchronize();
    EXPECT_TRUE(compare_gemm(reference, d.data()).ok);
  }
}

namespace {
/// How often memory was asked for.
struct Counting : PassingOn {
  using PassingOn::PassingOn;
  Buffer allocate(std::size_t bytes) override {
    ++allocations;
    return sim_->allocate(bytes);
  }
  int allocations = 0;
};
} // namespace

// Those of one stream follow one another and share what they work in; another
// stream's may run beside them.
TEST(CallWorkspaces, AreOfOneStream) {
  auto counting = std::make_shared<Counting>(DeviceDescription::h200());
  std::shared_ptr<Device> device = counting;
  GemmProblem problem{.m = 73, .n = 25, .k = 1306, .layout = GemmLayout::nt};
  ASSERT_TRUE(pick_schedule(problem).is_repacked);
  GemmArguments operands{.a = device->allocate(73 * 1306 * 2),
                         .b = device->allocate(25 * 1306 * 2),
                         .d = device->allocate(73 * 25 * 4)};
  device->fill(operands.a, 0);
  device->fill(operands.b, 0);
  Stream other = device->create_stream();
  auto allocated_by = [&](const Stream &stream) {
    int before = counting->allocations;
    gemm(device, stream, problem, operands);
    device->synchronize(stream);
    return counting->allocations - before;
  };
  int first = allocated_by({});
  EXPECT_GT(first, 0);
  EXPECT_EQ(allocated_by({}), 0);
  EXPECT_EQ(allocated_by(other), first);
  EXPECT_EQ(allocated_by(other), 0);
  EXPECT_EQ(allocated_by({}), 0);
}

// On the simulator of a B200: the kernel is that device's, and its factors are
// given by name.
TEST(CallOnBlackwell, GemmWithFactors) {
  auto device = open_sim({.device = DeviceDescription::b200()});
  auto random = [](Type type, std::int64_t count, unsigned seed, double least) {
    std::vector<std::uint8_t> bytes(bytes_of(type, count));
    fill_random(type, bytes.data(), count, seed, least, 4);
    return bytes;
  };
  for (auto [type, scaling] :
       {std::pair{e2m1, Scaling::nv}, {e5m2, Scaling::tensor}}) {
    GemmProblem problem{
        .m = 70, .n = 40, .k = 96, .type = type, .scaling = scaling};
    ReferenceGemm reference = reference_of(problem);
    Type factor = block_of(scaling).type;
    auto a = random(type, reference.a_elements(), 1, -4),
         b = random(type, reference.b_elements(), 2, -4),
         of_a = random(factor, reference.a_scale_count(), 3, 0.25),
         of_b = random(factor, reference.b_scale_count(), 4, 0.25);
    std::vector<float> d(70 * 40, NAN);
    Buffer out = copied(*device, d);
    gemm(device, {}, problem,
         {.a = copied(*device, a),
          .b = copied(*device, b),
          .d = out,
          .a_scales = copied(*device, of_a),
          .b_scales = copied(*device, of_b)});
    device->copy_out(d.data(), out, out.bytes());
    reference.a = a.data(), reference.b = b.data();
    reference.a_scales = of_a.data(), reference.b_scales = of_b.data();
    EXPECT_TRUE(compare_gemm(reference, d.data()).ok) << problem.to_string();
  }
}

// Described as its driver describes it: by its compute capability.
TEST(CallOnEachFamily, GemmHasAKernelOrSaysThatItHasNone) {
  for (const char *gpu : {"h20", "b200", "gb300", "thor", "a100", "a10", "l40s",
                          "rtx5090", "gb10"}) {
    SCOPED_TRACE(gpu);
    Product(5).run(open_sim({.device = DeviceDescription::by_name(gpu)}));
  }
  DeviceDescription turing = DeviceDescription::by_name("a10");
  turing.name = "NVIDIA T4";
  turing.compute_major = 7;
  turing.compute_minor = 5;
  auto device = open_sim({.device = turing});
  Buffer some = device->allocate(4096);
  try {
    gemm(device, {}, {.m = 8, .n = 8, .k = 64}, {some, some, some});
    ADD_FAILURE();
  } catch (const UserError &error) {
    EXPECT_EQ(error.message(),
              "gemm has no kernel for sm_75 (NVIDIA T4), which has mma.sync; "
              "it multiplies with wgmma.mma_async (sm_90a), tcgen05.mma "
              "(sm_100a, sm_103a, sm_110a) or mma.sync.m16n8k16 (sm_80, sm_86, "
              "sm_89, sm_120a, sm_121a)");
  }
}

TEST_P(Call, NumbersAndBiasAreGivenByName) {
  SKIP_WITHOUT_DEVICE();
  std::shared_ptr<Device> device = opened(GetParam());
  Product product(3);
  GemmProblem problem = product.problem;
  problem.has_alpha = problem.has_beta = true;
  problem.bias = GemmBias::row;
  std::vector<float> c(70 * 40, 3), bias(70, 5), zeros(96 * 70);
  Buffer d = copied(*device, product.d);
  Buffer nothing = device->allocate(product.a.size() * 2);
  device->fill(nothing, 0);
  GemmArguments operands{.a = nothing,
                         .b = copied(*device, product.b),
                         .d = d,
                         .c = copied(*device, c),
                         .bias = copied(*device, bias),
                         .beta = 2};
  for (double beta : {2.0, 4.0}) {
    operands.beta = beta;
    gemm(device, {}, problem, operands);
    device->copy_out(product.d.data(), d, d.bytes());
    EXPECT_THAT(product.d, testing::Each(3 * beta + 5));
  }
}

TEST_P(Call, Attention) {
  SKIP_WITHOUT_DEVICE();
  std::shared_ptr<Device> device = opened(GetParam());
  AttentionProblem problem{
      .heads = 2, .queries = 70, .keys = 50, .head_dim = 64, .type = f16};
  auto q = random_halves(2 * 70 * 64, 1), k = random_halves(2 * 50 * 64, 2),
       v = random_halves(2 * 50 * 64, 3), o = q;
  std::vector<float> lse(2 * 70, NAN);
  Buffer out = device->allocate(o.size() * 2), of_lse = copied(*device, lse);
  attention(device, {}, problem,
            {.q = copied(*device, q),
             .k = copied(*device, k),
             .v = copied(*device, v),
             .o = out,
             .lse = of_lse});
  device->copy_out(o.data(), out, out.bytes());
  device->copy_out(lse.data(), of_lse, of_lse.bytes());
  AttentionComparison found = compare_attention(problem, q.data(), k.data(),
                                                v.data(), o.data(), lse.data());
  EXPECT_TRUE(found.ok()) << found.first_wrong;
}

TEST_P(Call, GroupedGemm) {
  SKIP_WITHOUT_DEVICE();
  std::shared_ptr<Device> device = opened(GetParam());
  GroupedGemmProblem problem{
      .groups = 2, .rows = 90, .n = 64, .k = 64, .type = f16, .out = f16};
  std::vector<int> rows = {20, 70};
  auto a = random_halves(90 * 64, 1), b = random_halves(2 * 64 * 64, 2), d = a;
  Buffer out = device->allocate(d.size() * 2);
  grouped_gemm(device, {}, problem,
               {.a = copied(*device, a),
                .b = copied(*device, b),
                .d = out,
                .rows = copied(*device, row_numbers(problem, rows))});
  device->copy_out(d.data(), out, out.bytes());
  GroupedComparison found =
      compare_grouped_gemm(problem, rows, {a.data(), b.data()}, d.data());
  EXPECT_TRUE(found.ok()) << found.first_wrong;
}

TEST_P(Call, FromThreadsAndDevicesThatCome) {
  SKIP_WITHOUT_DEVICE();
  for (int round = 0; round < 2; ++round) {
    std::shared_ptr<Device> device = opened(GetParam());
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; ++i)
      threads.emplace_back(
          [=] { Product(i).run(device, device->create_stream()); });
    for (std::thread &thread : threads)
      thread.join();
  }
}

TEST(CallErrors, WhatIsMissingIsNamed) {
  auto message = [](auto &&call) -> std::string {
    try {
      call();
    } catch (const UserError &error) {
      return error.message();
    }
    return "";
  };
  using testing::HasSubstr;
  EXPECT_THAT(message([] { gemm(nullptr, {}, {}, {}); }),
              HasSubstr("a call without a device; open_cuda and open_sim give "
                        "one"));
  std::shared_ptr<Device> device = open_sim();
  Buffer some = device->allocate(1 << 20);
  GemmProblem problem{.m = 64, .n = 64, .k = 64, .bias = GemmBias::row};
  EXPECT_THAT(message([&] {
                gemm(device, {}, problem, {.a = some, .b = some, .d = some});
              }),
              HasSubstr("takes 'bias', and the call has no buffer for it"));
  problem = {.m = Dim::argument("m"), .n = 64, .k = 64};
  EXPECT_THAT(message([&] {
                gemm(device, {}, problem, {.a = some, .b = some, .d = some});
              }),
              HasSubstr("takes 'm', and a call has no such operand; give a "
                        "number in the problem"));
}
