// Cudnn: what is asked of the library, on a fake one.
#include "unit/runtime/fake_cuda/FakeCudaTest.h"
#include "unit/runtime/fake_cuda/FakeCudnn.h"

#include "kiln/check/sim.h"

#include <cmath>
#include <dlfcn.h>
#include <gmock/gmock.h>

namespace kiln {
namespace {

using namespace cudnn;
using test::messageOf;
using testing::ElementsAre;
using testing::HasSubstr;

class CudnnTest : public test::FakeCudaTest {
protected:
  void SetUp() override {
    FakeCudaTest::SetUp();
    void *library = dlopen(KILN_FAKE_CUDNN, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    auto state =
        reinterpret_cast<test::FakeCudnn *(*)()>(dlsym(library, "fakeCudnn"));
    seen = state();
    *seen = test::FakeCudnn();
    driver = CudaDriver::load(KILN_FAKE_CUDA);
    device = openCuda(driver, 0);
  }
  void TearDown() override {
    EXPECT_EQ(seen->live, 0) << "something was not destroyed";
    device.reset();
    EXPECT_EQ(fake->contexts, 0);
    FakeCudaTest::TearDown();
  }

  std::shared_ptr<Cudnn> open() {
    return openCudnn(*device, 0, driver,
                     std::make_shared<const CudnnLibrary>(KILN_FAKE_CUDNN));
  }
  void run(const CudnnAttention &attention) {
    Buffer q(0x100, 16), k(0x200, 16), v(0x300, 16), o(0x400, 16);
    open()->plan(attention)->enqueue({q, k, v, o});
  }

  test::FakeCudnn *seen = nullptr;
  std::shared_ptr<const CudaDriver> driver;
  std::shared_ptr<Device> device;
};

constexpr CudnnAttention kFull = {.batch = 2,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .queries = 100,
                                  .keys = 200,
                                  .head_dim = 64,
                                  .scale = 0.125f};

TEST_F(CudnnTest, AttentionIsItsChainOfOperations) {
  run(kFull);
  // Q, K, V, O are 1 to 4, the scale is 5.
  EXPECT_THAT(seen->operations,
              ElementsAre("MATMUL 1, 2 -> 104", "MUL 104, 5 -> 105",
                          "REDUCE_MAX 105 -> 107", "SUB 105, 107 -> 108",
                          "EXP 108 -> 109", "REDUCE_ADD 109 -> 110",
                          "LOG 110 -> 111", "ADD 107, 111 -> 112",
                          "DIV 109, 110 -> 113", "MATMUL 113, 3 -> 4"));
  EXPECT_EQ(seen->pointers.at(1), reinterpret_cast<void *>(0x100));
  EXPECT_EQ(seen->pointers.at(4), reinterpret_cast<void *>(0x400));
  EXPECT_EQ(seen->numbers.at(5), 0.125f);
  EXPECT_EQ(seen->tensors.at(113).type, CUDNN_DATA_BFLOAT16);
  EXPECT_EQ(seen->tensors.at(104).type, CUDNN_DATA_FLOAT);
  EXPECT_TRUE(seen->tensors.at(104).isVirtual);
  EXPECT_FALSE(seen->tensors.at(1).isVirtual);
}

TEST_F(CudnnTest, CausalQueriesEndWithTheKeys) {
  CudnnAttention causal = kFull;
  causal.is_causal = true;
  run(causal);
  EXPECT_THAT(
      seen->operations,
      testing::IsSupersetOf(
          {"GEN_INDEX 105 -> 107", "GEN_INDEX 105 -> 108", "ADD 107, 7 -> 109",
           "SUB 109, 8 -> 111", "CMP_GE 111, 108 -> 113",
           "BINARY_SELECT 105, 6, 113 -> 115", "REDUCE_MAX 115 -> 116"}));
  EXPECT_EQ(seen->numbers.at(6), -INFINITY);
  EXPECT_EQ(seen->numbers.at(7), 200);
  EXPECT_EQ(seen->numbers.at(8), 100);
  // Nothing is shifted where there are as many keys as queries.
  causal.keys = causal.queries;
  run(causal);
  EXPECT_THAT(seen->operations, testing::Contains("CMP_GE 107, 108 -> 109"));
  EXPECT_FALSE(seen->numbers.contains(7));
}

TEST_F(CudnnTest, LayoutsAreStrides) {
  run(kFull);
  EXPECT_THAT(seen->tensors.at(1).sizes, ElementsAre(2, 4, 100, 64));
  EXPECT_THAT(seen->tensors.at(1).strides, ElementsAre(25600, 6400, 64, 1));
  // K is given transposed.
  EXPECT_THAT(seen->tensors.at(2).sizes, ElementsAre(2, 2, 64, 200));
  EXPECT_THAT(seen->tensors.at(2).strides, ElementsAre(25600, 12800, 1, 64));
  CudnnAttention other = kFull;
  other.is_bshd = true;
  other.type = Type::f16;
  run(other);
  EXPECT_THAT(seen->tensors.at(1).strides, ElementsAre(25600, 64, 256, 1));
  EXPECT_THAT(seen->tensors.at(3).strides, ElementsAre(25600, 64, 128, 1));
  EXPECT_EQ(seen->tensors.at(3).type, CUDNN_DATA_HALF);
}

TEST_F(CudnnTest, TakesTheFirstWayThatCanBePlanned) {
  seen->bad = 1;
  run(kFull);
  EXPECT_EQ(seen->pointers.size(), 5u);
  seen->bad = 2;
  EXPECT_EQ(messageOf<UserError>([&] { open()->plan(kFull); }),
            "cuDNN 9.19.0 has no way for attention of 4 heads, 100 queries, "
            "200 keys and 64 elements a head");
  seen->ways = 0;
  EXPECT_THAT(messageOf<UserError>([&] { open()->plan(kFull); }),
              HasSubstr("has no way"));
}

TEST_F(CudnnTest, SaysWhatFailed) {
  EXPECT_EQ(open()->version(), "9.19.0");
  seen->failCall = "cudnnBackendExecute";
  EXPECT_EQ(messageOf<RuntimeError>([&] { run(kFull); }),
            "cudnnBackendExecute failed with CUDNN_STATUS_BAD_PARAM (2000) "
            "while running attention");
  seen->failCall = "cudnnCreate";
  EXPECT_THAT(messageOf<RuntimeError>([&] { open(); }),
              HasSubstr("while starting cuDNN"));
  EXPECT_THAT(
      messageOf<RuntimeError>([] { CudnnLibrary library(KILN_FAKE_CUBLASLT); }),
      HasSubstr("has no cudnnGetVersion; Kiln knows cuDNN 9"));
  EXPECT_THAT(
      messageOf<RuntimeError>([] { CudnnLibrary library("/no/libcudnn.so"); }),
      HasSubstr("cuDNN cannot be loaded: /no/libcudnn.so"));
}

} // namespace
} // namespace kiln
