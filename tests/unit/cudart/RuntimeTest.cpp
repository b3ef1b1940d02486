// Runtime: libcudart as nvcc's code uses it, with a fat binary that lies beside
// this file, for machines without nvcc.
#include "kiln/base/file.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace kiln::cudart {

namespace {
struct Size {
  unsigned x, y = 1, z = 1;
};

/// A function of one version of the library, by its name.
class Library {
public:
  explicit Library(const char *path)
      : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {}
  explicit operator bool() const { return handle_; }

  template <typename... Parameters>
  int operator()(const char *name, Parameters... parameters) const {
    auto *function =
        reinterpret_cast<int (*)(Parameters...)>(dlsym(handle_, name));
    if (!function) {
      ADD_FAILURE() << "there is no " << name;
      return -1;
    }
    return function(parameters...);
  }
  template <typename Function> Function *find(const char *name) const {
    return reinterpret_cast<Function *>(dlsym(handle_, name));
  }

private:
  void *handle_;
};

class Runtime : public testing::TestWithParam<const char *> {};
} // namespace

/// What nvcc's code does before main.
static void registerScale(const Library &library, const char &stub,
                          char &counter, char &factors) {
  static std::string bytes =
      read_file(KILN_SOURCE_DIR "/tests/unit/cudart/fatbins/zstd.fatbin");
  static const struct {
    std::uint32_t magic = 0x466243b1, version = 1;
    const void *data = bytes.data();
    const void *more = nullptr;
  } wrapper;
  void **module =
      library.find<void **(const void *)>("__cudaRegisterFatBinary")(&wrapper);
  library.find<void(void **, const char *, char *, const char *, int, void *,
                    void *, void *, void *, int *)>("__cudaRegisterFunction")(
      module, &stub, nullptr, "scale", -1, nullptr, nullptr, nullptr, nullptr,
      nullptr);
  auto *variable =
      library.find<void(void **, char *, char *, const char *, int, std::size_t,
                        int, int)>("__cudaRegisterVar");
  variable(module, &counter, nullptr, "counter", 0, 4, 0, 0);
  variable(module, &factors, nullptr, "factors", 0, 16, 1, 0);
}

TEST_P(Runtime, RunsAKernelOfAFatBinary) {
  Library cuda(GetParam());
  ASSERT_TRUE(cuda) << dlerror();
  static char stub, counter, factors;
  registerScale(cuda, stub, counter, factors);
  std::vector<float> host = {1, 2, 3, 4};
  float values[4] = {0, 10, 0, 0};
  void *x = nullptr;
  ASSERT_EQ(cuda("cudaMalloc", &x, std::size_t(16)), 0);
  EXPECT_EQ(cuda("cudaMemcpy", x, host.data(), std::size_t(16), 1), 0);
  EXPECT_EQ(cuda("cudaMemcpyToSymbol", &factors, values, std::size_t(16),
                 std::size_t(0), 1),
            0);
  int n = 4;
  void *parameters[] = {&x, &n};
  EXPECT_EQ(cuda("cudaLaunchKernel", &stub, Size{1}, Size{32}, +parameters,
                 std::size_t(0), static_cast<void *>(nullptr)),
            0);
  EXPECT_EQ(cuda("cudaMemcpy", host.data(), x, std::size_t(16), 2), 0);
  EXPECT_EQ(host, (std::vector<float>{10, 20, 30, 40}));
  int seen = 0;
  EXPECT_EQ(cuda("cudaMemcpyFromSymbol", &seen, &counter, std::size_t(4),
                 std::size_t(0), 2),
            0);
  EXPECT_EQ(seen, 4);
  // A kernel that nobody registered, and a symbol.
  EXPECT_EQ(cuda("cudaLaunchKernel", &n, Size{1}, Size{32}, +parameters,
                 std::size_t(0), static_cast<void *>(nullptr)),
            98);
  EXPECT_EQ(cuda("cudaGetSymbolSize", &n, &n), 13);
  EXPECT_EQ(cuda("cudaGetLastError"), 13);
  EXPECT_EQ(cuda("cudaGetLastError"), 0);
  EXPECT_EQ(cuda("cudaFree", x), 0);
}

TEST_P(Runtime, WhatIsMissingSaysItsNameOnce) {
  Library cuda(GetParam());
  ASSERT_TRUE(cuda) << dlerror();
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuda("cudaMallocArray", nullptr, nullptr), 801);
  std::string first = testing::internal::GetCapturedStderr();
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuda("cudaMallocArray", nullptr, nullptr), 801);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  if (GetParam() == std::string(KILN_CUDART_13)) {
    EXPECT_EQ(first, "kiln: cudaMallocArray is not supported by Kiln; it "
                     "returned cudaErrorNotSupported\n");
  }
}

TEST_P(Runtime, EachVersionHasItsOwnNames) {
  Library cuda(GetParam());
  ASSERT_TRUE(cuda) << dlerror();
  bool is13 = GetParam() == std::string(KILN_CUDART_13);
  EXPECT_NE(cuda.find<int()>("cudaMalloc"), nullptr);
  EXPECT_EQ(cuda.find<int()>("cudaLogsCurrent") != nullptr, is13);
  EXPECT_EQ(cuda.find<int()>("cudaThreadExit") != nullptr, !is13);
  EXPECT_EQ(cuda.find<int()>("cudaProfilerInitialize"), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Versions, Runtime,
                         testing::Values(KILN_CUDART_13, KILN_CUDART_12),
                         [](const auto &info) {
                           return info.index ? "cudart12" : "cudart13";
                         });

} // namespace kiln::cudart
