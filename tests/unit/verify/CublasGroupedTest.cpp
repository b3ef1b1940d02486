// CublasGrouped: what is asked of cuBLAS, on a fake one.
#include "unit/runtime/fake_cuda/FakeCublas.h"
#include "unit/runtime/fake_cuda/FakeCudaTest.h"

#include <dlfcn.h>
#include <gmock/gmock.h>

namespace kiln {
namespace {

using namespace cublas;
using test::messageOf;
using testing::HasSubstr;

class CublasGroupedTest : public test::FakeCudaTest {
protected:
  void SetUp() override {
    FakeCudaTest::SetUp();
    void *library = dlopen(KILN_FAKE_CUBLAS, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    auto state =
        reinterpret_cast<test::FakeCublas *(*)()>(dlsym(library, "fakeCublas"));
    seen = state();
    *seen = test::FakeCublas();
    driver = CudaDriver::load(KILN_FAKE_CUDA);
    device = openCuda(driver, 0);
  }
  void TearDown() override {
    EXPECT_EQ(seen->live, 0);
    device.reset();
    EXPECT_EQ(fake->contexts, 0);
    FakeCudaTest::TearDown();
  }
  std::shared_ptr<CublasGrouped> open() {
    return openCublasGrouped(*device, 0, driver, KILN_FAKE_CUBLAS);
  }

  test::FakeCublas *seen = nullptr;
  std::shared_ptr<const CudaDriver> driver;
  std::shared_ptr<Device> device;
  Buffer a{0x1000, 16}, b{0x20000, 16}, d{0x300000, 16};
};

TEST_F(CublasGroupedTest, GroupsWithRowsAreProducts) {
  CublasGroups groups{.rows = {3, 0, 5}, .n = 16, .k = 8};
  auto launch = open()->plan(groups, a, b, d);
  launch({});
  ASSERT_EQ(seen->calls.size(), 2u);
  auto at = [](std::uint64_t address) {
    return reinterpret_cast<const void *>(address);
  };
  // The transposed of D: 16 x rows of it, by columns.
  test::FakeCublas::Group first = {
      CUBLAS_OP_T, CUBLAS_OP_N, 16, 3,
      8,           8,           8,  16,
      1,           1,           0,  {at(0x20000), at(0x1000), at(0x300000)}};
  test::FakeCublas::Group second = {CUBLAS_OP_T,
                                    CUBLAS_OP_N,
                                    16,
                                    5,
                                    8,
                                    8,
                                    8,
                                    16,
                                    1,
                                    1,
                                    0,
                                    {at(0x20000 + 2 * 16 * 8 * 2),
                                     at(0x1000 + 3 * 8 * 2),
                                     at(0x300000 + 3 * 16 * 2)}};
  EXPECT_THAT(seen->calls.back(), testing::ElementsAre(first, second));
  EXPECT_EQ(seen->type, CUDA_R_16BF);
  EXPECT_EQ(open()->version(), "13.1.0");
}

TEST_F(CublasGroupedTest, NothingToDoIsNoCall) {
  open()->plan({.rows = {0, 0}, .n = 16, .k = 8}, a, b, d)({});
  EXPECT_TRUE(seen->calls.empty());
}

TEST_F(CublasGroupedTest, SaysWhatItCannotDo) {
  CublasGroups groups{
      .rows = {3}, .n = 16, .k = 8, .type = Type::f16, .out = Type::f32};
  seen->status = CUBLAS_STATUS_NOT_SUPPORTED;
  EXPECT_EQ(messageOf<UserError>([&] { open()->plan(groups, a, b, d); }),
            "cuBLAS 13.1.0 has no grouped product of f16 to f32");
  seen->status = CUBLAS_STATUS_INVALID_VALUE;
  EXPECT_EQ(messageOf<RuntimeError>([&] { open()->plan(groups, a, b, d); }),
            "cublasGemmGroupedBatchedEx failed with "
            "CUBLAS_STATUS_INVALID_VALUE (7)");
  EXPECT_THAT(messageOf<RuntimeError>([&] {
                openCublasGrouped(*device, 0, driver, KILN_FAKE_CUBLASLT);
              }),
              HasSubstr("has no cublasCreate_v2; grouped products need cuBLAS "
                        "12.5 or newer"));
}

} // namespace
} // namespace kiln
