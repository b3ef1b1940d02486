// CublasLt: what is asked of the library, on a fake one, and that our numbers
// are those of its header, where there is one.
#include "unit/runtime/fake_cuda/FakeCublasLt.h"
#include "unit/runtime/fake_cuda/FakeCudaTest.h"

#include "kiln/kernels/gemm.h"

#include <bit>
#include <gmock/gmock.h>

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define KILN_HAS_CUBLASLT_HEADER 1
#endif

namespace kiln {
namespace {

using namespace cublas;
using test::messageOf;
using testing::HasSubstr;

class CublasLtTest : public test::FakeCudaTest {
protected:
  void SetUp() override {
    FakeCudaTest::SetUp();
    void *library = dlopen(KILN_FAKE_CUBLASLT, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    auto state = reinterpret_cast<test::FakeCublasLt *(*)()>(
        dlsym(library, "fakeCublasLt"));
    fakeLt = state();
    *fakeLt = test::FakeCublasLt();
    driver = CudaDriver::load(KILN_FAKE_CUDA);
    device = openCuda(driver, 0);
  }
  void TearDown() override {
    EXPECT_EQ(fakeLt->live, 0) << "something was not destroyed";
    device.reset();
    EXPECT_EQ(fake->contexts, 0);
    FakeCudaTest::TearDown();
  }

  std::shared_ptr<CublasLt> open() {
    return openCublasLt(
        *device, 0, driver,
        std::make_shared<const CublasLibrary>(KILN_FAKE_CUBLASLT));
  }

  /// What cuBLASLt is asked for.
  test::FakeCublasLt::Matmul matmul(const ReferenceGemm &gemm,
                                    const CublasOperands &operands = {}) {
    open()->plans(gemm).front()->enqueue(operands);
    return fakeLt->matmuls.back();
  }

  test::FakeCublasLt *fakeLt = nullptr;
  std::shared_ptr<const CudaDriver> driver;
  std::shared_ptr<Device> device;
};

ReferenceGemm gemmOf(bool aRowMajor, bool bRowMajor, bool dRowMajor) {
  ReferenceGemm gemm = {.m = 10, .n = 20, .k = 30};
  gemm.a_row_major = aRowMajor;
  gemm.b_row_major = bRowMajor;
  gemm.d_row_major = dRowMajor;
  return gemm;
}

TEST_F(CublasLtTest, EveryLayoutIsTheSameProduct) {
  for (int i = 0; i < 8; ++i) {
    bool aRowMajor = i & 1, bRowMajor = i & 2, dRowMajor = i & 4;
    ReferenceGemm gemm = gemmOf(aRowMajor, bRowMajor, dRowMajor);
    SCOPED_TRACE(i);
    auto seen = matmul(
        gemm, {Buffer(0xa00, 1), Buffer(0xb00, 1), {}, {}, Buffer(0xd00, 1)});
    // cuBLASLt computes op(first) * op(second), column-major.
    auto shape = [](const test::FakeCublasLt::Layout &layout,
                    std::int64_t operation) {
      return operation == CUBLAS_OP_T ? std::pair(layout.cols, layout.rows)
                                      : std::pair(layout.rows, layout.cols);
    };
    auto first =
        shape(seen.a, seen.operation.attributes[CUBLASLT_MATMUL_DESC_TRANSA]);
    auto second =
        shape(seen.b, seen.operation.attributes[CUBLASLT_MATMUL_DESC_TRANSB]);
    EXPECT_EQ(first.second, 30u);
    EXPECT_EQ(second.first, 30u);
    EXPECT_EQ(first.first, seen.d.rows);
    EXPECT_EQ(second.second, seen.d.cols);
    EXPECT_EQ(seen.d.rows, dRowMajor ? 20u : 10u);
    // Which memory is which, and its contiguous side.
    auto address = reinterpret_cast<std::uint64_t>(seen.pointers[0]);
    EXPECT_EQ(address, dRowMajor ? 0xb00u : 0xa00u);
    const auto &a = dRowMajor ? seen.b : seen.a;
    const auto &b = dRowMajor ? seen.a : seen.b;
    EXPECT_EQ(a.rows, aRowMajor ? 30u : 10u);
    EXPECT_EQ(a.leading, aRowMajor ? 30 : 10);
    EXPECT_EQ(b.rows, bRowMajor ? 20u : 30u);
    EXPECT_EQ(b.leading, bRowMajor ? 20 : 30);
  }
}

TEST_F(CublasLtTest, KContiguousIsTheFormThatFp8Needs) {
  auto seen = matmul(gemmOf(true, false, true));
  EXPECT_EQ(seen.operation.attributes[CUBLASLT_MATMUL_DESC_TRANSA],
            CUBLAS_OP_T);
  EXPECT_EQ(seen.operation.attributes[CUBLASLT_MATMUL_DESC_TRANSB],
            CUBLAS_OP_N);
}

TEST_F(CublasLtTest, LeadingDimensionsAndBatch) {
  ReferenceGemm gemm = gemmOf(true, false, true);
  gemm.batch = 4;
  gemm.lda = 32, gemm.ldb = 40, gemm.ldc = 28, gemm.ldd = 24;
  auto seen = matmul(gemm);
  EXPECT_EQ(seen.b.leading, 32);
  EXPECT_EQ(seen.a.leading, 40);
  EXPECT_EQ(seen.c.leading, 28);
  EXPECT_EQ(seen.d.leading, 24);
  auto stride = CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET;
  EXPECT_EQ(seen.b.attributes[stride], 32 * 10);
  EXPECT_EQ(seen.a.attributes[stride], 40 * 20);
  EXPECT_EQ(seen.d.attributes[stride], 24 * 10);
  for (auto *layout : {&seen.a, &seen.b, &seen.c, &seen.d})
    EXPECT_EQ(layout->attributes[CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT], 4);
  gemm.batch_stride_a = 0, gemm.batch_stride_c = 300, gemm.batch_stride_d = 777;
  seen = matmul(gemm);
  EXPECT_EQ(seen.b.attributes[stride], 0);
  EXPECT_EQ(seen.a.attributes[stride], 40 * 20);
  EXPECT_EQ(seen.c.attributes[stride], 300);
  EXPECT_EQ(seen.d.attributes[stride], 777);
}

TEST_F(CublasLtTest, TypesAndSums) {
  auto of = [&](Type type, Type out, Type accumulate) {
    ReferenceGemm gemm = gemmOf(true, false, true);
    gemm.type = type, gemm.out = out, gemm.accumulate = accumulate;
    gemm.alpha = 2;
    return matmul(gemm);
  };
  auto seen = of(Type::bf16, Type::f32, Type::f32);
  EXPECT_EQ(seen.a.type, CUDA_R_16BF);
  EXPECT_EQ(seen.d.type, CUDA_R_32F);
  EXPECT_EQ(seen.operation.compute, CUBLAS_COMPUTE_32F);
  EXPECT_EQ(seen.alpha, std::bit_cast<std::uint32_t>(2.0f));
  EXPECT_EQ(seen.beta, 0u);
  seen = of(Type::tf32, Type::f32, Type::f32);
  EXPECT_EQ(seen.a.type, CUDA_R_32F);
  EXPECT_EQ(seen.operation.compute, CUBLAS_COMPUTE_32F_FAST_TF32);
  seen = of(Type::e4m3, Type::e4m3, Type::f32);
  EXPECT_EQ(seen.a.type, CUDA_R_8F_E4M3);
  EXPECT_EQ(seen.c.type, CUDA_R_16BF);
  EXPECT_EQ(seen.operation.attributes[CUBLASLT_MATMUL_DESC_FAST_ACCUM], 1);
  seen = of(Type::i8, Type::i32, Type::i32);
  EXPECT_EQ(seen.operation.compute, CUBLAS_COMPUTE_32I);
  EXPECT_EQ(seen.operation.scale, CUDA_R_32I);
  EXPECT_EQ(seen.alpha, 2u);
  seen = of(Type::f16, Type::f16, Type::f16);
  EXPECT_EQ(seen.operation.compute, CUBLAS_COMPUTE_16F);
  EXPECT_EQ(seen.alpha & 0xffff, to_bits(Type::f16, 2));
}

TEST_F(CublasLtTest, FactorsOfTensorsFollowTheirOperands) {
  for (bool dRowMajor : {true, false}) { // B is the first, or A
    ReferenceGemm gemm = gemmOf(true, false, dRowMajor);
    gemm.type = Type::e4m3, gemm.scaling = Scaling::tensor;
    auto seen =
        matmul(gemm, {{}, {}, {}, {}, {}, Buffer(0xa50, 4), Buffer(0xb50, 4)});
    auto &attributes = seen.operation.attributes;
    EXPECT_EQ(attributes[CUBLASLT_MATMUL_DESC_A_SCALE_POINTER],
              dRowMajor ? 0xb50 : 0xa50);
    EXPECT_EQ(attributes[CUBLASLT_MATMUL_DESC_B_SCALE_POINTER],
              dRowMajor ? 0xa50 : 0xb50);
    gemm.scaling = Scaling::none;
    EXPECT_FALSE(matmul(gemm).operation.attributes.contains(
        CUBLASLT_MATMUL_DESC_A_SCALE_POINTER));
  }
}

TEST_F(CublasLtTest, BiasActivationAndC) {
  ReferenceGemm gemm = gemmOf(true, false, true);
  gemm.bias_kind = GemmBias::column, gemm.act = Activation::gelu;
  gemm.beta = 0.5;
  auto seen = matmul(
      gemm, {{}, {}, Buffer(0xc00, 1), Buffer(0xbb0, 1), Buffer(0xd00, 1)});
  auto &attributes = seen.operation.attributes;
  EXPECT_EQ(attributes[CUBLASLT_MATMUL_DESC_EPILOGUE], 36);
  EXPECT_EQ(attributes[CUBLASLT_MATMUL_DESC_BIAS_POINTER], 0xbb0);
  EXPECT_EQ(seen.pointers[2], reinterpret_cast<void *>(0xc00));
  EXPECT_EQ(seen.beta, std::bit_cast<std::uint32_t>(0.5f));
  gemm.act = Activation::relu, gemm.bias_kind = GemmBias::none, gemm.beta = 0;
  seen = matmul(gemm, {{}, {}, {}, {}, Buffer(0xd00, 1)});
  EXPECT_EQ(seen.operation.attributes[CUBLASLT_MATMUL_DESC_EPILOGUE], 2);
  EXPECT_EQ(seen.pointers[2], seen.pointers[3]) << "D stands in for no C";
}

TEST_F(CublasLtTest, WorkspaceStreamAndWays) {
  std::shared_ptr<CublasLt> library = open();
  EXPECT_EQ(library->version(), "13.0.2");
  auto plans = library->plans(gemmOf(true, true, true), 8);
  ASSERT_EQ(plans.size(), 3u);
  EXPECT_EQ(fakeLt->preferredWorkspaceBytes, 64u << 20);
  Stream stream = device->create_stream();
  library.reset(); // plans hold on to what they need
  plans[2]->enqueue({}, stream);
  EXPECT_EQ(fakeLt->matmuls.back().algo, 102u);
  EXPECT_EQ(fakeLt->matmuls.back().stream, stream.native());
  EXPECT_EQ(fakeLt->matmuls.back().workspaceBytes, 64u << 20);
  EXPECT_EQ(fake->contextDepth, 0);
}

TEST_F(CublasLtTest, WhatItDoesNotDoIsSaid) {
  auto refused = [&](auto change) {
    ReferenceGemm gemm = gemmOf(true, false, true);
    change(gemm);
    return messageOf<UserError>([&] { open()->plans(gemm); });
  };
  EXPECT_EQ(refused([](auto &g) { g.act = Activation::silu; }),
            "cuBLASLt has no silu");
  EXPECT_EQ(refused([](auto &g) { g.type = Type::u8; }),
            "cuBLASLt does not multiply u8");
  EXPECT_EQ(refused([](auto &g) { g.bias_kind = GemmBias::row; }),
            "cuBLASLt adds no bias per row where D is row-major");
  EXPECT_EQ(refused([](auto &g) { g.accumulate = Type::f16; }),
            "cuBLASLt adds up in f16 only f16 to f16, not f16 to f32");
  EXPECT_EQ(refused([](auto &g) {
              g.type = Type::i8;
              g.accumulate = Type::i32;
            }),
            "cuBLASLt writes sums of i8 as i32, not f32");
  EXPECT_EQ(refused([](auto &g) {
              g.out = Type::e4m3;
              g.beta = 1;
            }),
            "cuBLASLt adds no C of type e4m3");
  EXPECT_EQ(refused([](auto &g) { g.scaling = Scaling::nv; }),
            "cuBLASLt is not asked for products with factors of blocks "
            "(scales=nv); use scales=none or scales=tensor");
  fakeLt->ways = 0;
  EXPECT_EQ(refused([](auto &) {}),
            "cuBLASLt 13.0.2 has no way to multiply 10x20x30 of f16 to f32");
}

TEST_F(CublasLtTest, FailuresNameTheCall) {
  fakeLt->failCall = "cublasLtCreate";
  EXPECT_EQ(messageOf<RuntimeError>([&] { open(); }),
            "cublasLtCreate failed with CUBLAS_STATUS_INVALID_VALUE (7) while "
            "starting cuBLASLt");
  fakeLt->failCall = "cublasLtMatmul";
  EXPECT_EQ(messageOf<RuntimeError>([&] { matmul(gemmOf(true, true, true)); }),
            "cublasLtMatmul failed with CUBLAS_STATUS_INVALID_VALUE (7) while "
            "multiplying");
  EXPECT_THAT(messageOf<RuntimeError>([] { CublasLibrary("/no/such/file"); }),
              HasSubstr("cuBLASLt cannot be loaded: /no/such/file"));
  EXPECT_THAT(messageOf<RuntimeError>([] { CublasLibrary(KILN_FAKE_CUDA); }),
              HasSubstr("has no cublasLtGetVersion; Kiln knows cuBLASLt 12 "
                        "and 13"));
}

#if KILN_HAS_CUBLASLT_HEADER
#define KILN_SAME(name)                                                        \
  EXPECT_EQ(static_cast<int>(cublas::name), static_cast<int>(::name)) << #name
TEST(CublasLtHeader, HasOurNumbers) {
  KILN_SAME(CUBLAS_STATUS_INVALID_VALUE);
  KILN_SAME(CUBLAS_STATUS_NOT_SUPPORTED);
  KILN_SAME(CUBLAS_COMPUTE_16F);
  KILN_SAME(CUBLAS_COMPUTE_32F);
  KILN_SAME(CUBLAS_COMPUTE_32I);
  KILN_SAME(CUBLAS_COMPUTE_32F_FAST_TF32);
  KILN_SAME(CUBLAS_OP_N);
  KILN_SAME(CUBLAS_OP_T);
  KILN_SAME(CUDA_R_32F);
  KILN_SAME(CUDA_R_16F);
  KILN_SAME(CUDA_R_8I);
  KILN_SAME(CUDA_R_32I);
  KILN_SAME(CUDA_R_16BF);
  KILN_SAME(CUDA_R_8F_E4M3);
  KILN_SAME(CUDA_R_8F_E5M2);
  KILN_SAME(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  KILN_SAME(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
  KILN_SAME(CUBLASLT_MATMUL_DESC_TRANSA);
  KILN_SAME(CUBLASLT_MATMUL_DESC_TRANSB);
  KILN_SAME(CUBLASLT_MATMUL_DESC_EPILOGUE);
  KILN_SAME(CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  KILN_SAME(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
  KILN_SAME(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
  KILN_SAME(CUBLASLT_MATMUL_DESC_FAST_ACCUM);
  KILN_SAME(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
  KILN_SAME(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  KILN_SAME(CUBLASLT_EPILOGUE_DEFAULT);
  KILN_SAME(CUBLASLT_EPILOGUE_RELU);
  KILN_SAME(CUBLASLT_EPILOGUE_BIAS);
  KILN_SAME(CUBLASLT_EPILOGUE_GELU);
  EXPECT_EQ(sizeof(cublas::cublasLtMatmulHeuristicResult_t),
            sizeof(::cublasLtMatmulHeuristicResult_t));
  EXPECT_EQ(offsetof(cublas::cublasLtMatmulHeuristicResult_t, state),
            offsetof(::cublasLtMatmulHeuristicResult_t, state));
}
#else
TEST(CublasLtHeader, HasOurNumbers) {
  GTEST_SKIP() << "there is no cublasLt.h here; install the CUDA toolkit";
}
#endif

} // namespace
} // namespace kiln
