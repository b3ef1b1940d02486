// Driver: what libcuda's functions answer to frameworks that ask a lot before
// they launch, each called by its name as those do.
#include "kiln/base/file.h"

#include <array>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace kiln::cudart {

namespace {
enum : int {
  success = 0,
  invalidValue = 1,
  noBinaryForGpu = 209,
  invalidPtx = 218,
  invalidHandle = 400,
  notFound = 500,
  notSupported = 801,
};

struct Driver : testing::Test {
  void *library = dlopen(KILN_CUDA_DRIVER, RTLD_NOW | RTLD_LOCAL);

  template <typename... Parameters>
  int operator()(const char *name, Parameters... parameters) const {
    auto *function =
        reinterpret_cast<int (*)(Parameters...)>(dlsym(library, name));
    if (!function) {
      ADD_FAILURE() << "there is no " << name;
      return -1;
    }
    return function(parameters...);
  }
};
} // namespace

static std::string ptxFor(const std::string &target) {
  return ".version 8.8\n.target " + target + R"(
.address_size 64
.visible .global .attribute(.managed) .align 4 .u32 shared = 1;
.visible .global .align 4 .u32 plain = 2;
.visible .entry first(.param .u64 p, .param .u32 n) { ret; }
.visible .entry second() .maxntid 64 { ret; }
)";
}

TEST_F(Driver, LimitsAreKept) {
  std::size_t value = 0;
  EXPECT_EQ((*this)("cuCtxSetLimit", 1, std::size_t(12345)), success);
  EXPECT_EQ((*this)("cuCtxGetLimit", &value, 1), success);
  EXPECT_EQ(value, 12345u);
  EXPECT_EQ((*this)("cuCtxGetLimit", &value, 77), 215);
  EXPECT_EQ((*this)("cuCtxSetLimit", 77, std::size_t(1)), 215);
  EXPECT_EQ((*this)("cuCtxGetLimit", static_cast<std::size_t *>(nullptr), 1),
            invalidValue);
}

TEST_F(Driver, LibrariesTellTheirKernels) {
  std::string path = testing::TempDir() + "/kiln_driver_test.ptx";
  std::ofstream(path) << ptxFor("sm_90");
  void *library = nullptr;
  ASSERT_EQ((*this)("cuLibraryLoadFromFile", &library, path.c_str(), nullptr,
                    nullptr, 0u, nullptr, nullptr, 0u),
            success);
  std::filesystem::remove(path);
  unsigned count = 0;
  ASSERT_EQ((*this)("cuLibraryGetKernelCount", &count, library), success);
  EXPECT_EQ(count, 2u);
  std::array<void *, 3> kernels{};
  ASSERT_EQ((*this)("cuLibraryEnumerateKernels", kernels.data(), 2u, library),
            success);
  const char *name = nullptr;
  EXPECT_EQ((*this)("cuKernelGetName", &name, kernels[0]), success);
  EXPECT_STREQ(name, "first");
  int threads = 0;
  EXPECT_EQ((*this)("cuKernelGetAttribute", &threads, 0, kernels[1], 0),
            success);
  EXPECT_EQ(threads, 64);
  EXPECT_EQ((*this)("cuKernelGetAttribute", &threads, 99, kernels[1], 0),
            invalidValue);
  std::size_t offset = 0, bytes = 0;
  EXPECT_EQ((*this)("cuFuncGetParamInfo", kernels[0], std::size_t(1), &offset,
                    &bytes),
            success);
  EXPECT_EQ(offset, 8u);
  EXPECT_EQ(bytes, 4u);
  // A managed variable is one that says so.
  std::uint64_t address = 0;
  EXPECT_EQ((*this)("cuLibraryGetManaged", &address, &bytes, library, "shared"),
            success);
  EXPECT_NE(address, 0u);
  EXPECT_EQ((*this)("cuLibraryGetManaged", &address, &bytes, library, "plain"),
            notFound);
  EXPECT_EQ((*this)("cuLibraryGetManaged", &address, &bytes, library, "none"),
            notFound);
  EXPECT_EQ((*this)("cuLibraryGetGlobal", &address, &bytes, library, "plain"),
            success);
  EXPECT_EQ((*this)("cuLibraryGetKernelCount", &count, &count), invalidHandle);
  EXPECT_EQ((*this)("cuLibraryUnload", library), success);
  EXPECT_EQ((*this)("cuKernelGetName", &name, kernels[0]), invalidHandle);
}

TEST_F(Driver, UnknownFunctionAttributesAreRefused) {
  void *module = nullptr, *function = nullptr;
  ASSERT_EQ((*this)("cuModuleLoadData", &module, ptxFor("sm_90").c_str()),
            success);
  ASSERT_EQ((*this)("cuModuleGetFunction", &function, module, "first"),
            success);
  constexpr int kDynamicSmem = 8, kNonPortable = 14, kScheduling = 15;
  EXPECT_EQ((*this)("cuFuncSetAttribute", function, kDynamicSmem, 232448),
            success);
  EXPECT_EQ((*this)("cuFuncSetAttribute", function, kDynamicSmem, 232449),
            invalidValue);
  EXPECT_EQ((*this)("cuFuncSetAttribute", function, kNonPortable, 1), success);
  int value = 0;
  EXPECT_EQ((*this)("cuFuncGetAttribute", &value, kNonPortable, function),
            success);
  EXPECT_EQ(value, 1);
  EXPECT_EQ((*this)("cuFuncSetAttribute", function, kScheduling, 9),
            invalidValue);
  EXPECT_EQ((*this)("cuFuncSetAttribute", function, 11, 2), notSupported);
  for (int unknown : {-1, 0, 4, 16, 17, 100})
    EXPECT_EQ((*this)("cuFuncSetAttribute", function, unknown, 1), invalidValue)
        << unknown;
  EXPECT_EQ((*this)("cuModuleUnload", module), success);
}

TEST_F(Driver, PtxThatNothingRunsIsAnError) {
  void *module = nullptr;
  // The first module says which GPU there is.
  ASSERT_EQ((*this)("cuModuleLoadData", &module, ptxFor("sm_90").c_str()),
            success);
  EXPECT_EQ((*this)("cuModuleLoadData", &module, ptxFor("sm_100a").c_str()),
            noBinaryForGpu);
  EXPECT_EQ((*this)("cuModuleLoadData", &module, ptxFor("sm_999").c_str()),
            noBinaryForGpu);
  std::string wrong = ptxFor("sm_90") + "nonsense";
  EXPECT_EQ((*this)("cuModuleLoadData", &module, wrong.c_str()), invalidPtx);
}

TEST_F(Driver, PointersTellWhatTheyAre) {
  std::uint64_t memory = 0;
  ASSERT_EQ((*this)("cuMemAlloc", &memory, std::size_t(1000)), success);
  std::uint64_t base = 0;
  std::size_t bytes = 0;
  EXPECT_EQ((*this)("cuMemGetAddressRange", &base, &bytes, memory + 10),
            success);
  EXPECT_EQ(base, memory);
  EXPECT_EQ(bytes, 1000u);
  EXPECT_EQ((*this)("cuMemGetAddressRange_v2", &base, &bytes, memory + 1000),
            notFound);
  std::uint64_t start = 0, hostPointer = 1;
  unsigned type = 0;
  int ordinal = 7;
  int attributes[] = {2, 11, 4, 9};
  void *data[] = {&type, &start, &hostPointer, &ordinal};
  EXPECT_EQ((*this)("cuPointerGetAttributes", 4u, +attributes, +data, memory),
            success);
  EXPECT_EQ(type, 2u);
  EXPECT_EQ(start, memory);
  EXPECT_EQ(hostPointer, 0u);
  EXPECT_EQ(ordinal, 0);
  // An address that nobody allocated is an error of one function alone.
  std::uint64_t nowhere = reinterpret_cast<std::uint64_t>(&data);
  EXPECT_EQ((*this)("cuPointerGetAttribute", &type, 2, nowhere), invalidValue);
  EXPECT_EQ((*this)("cuPointerGetAttributes", 4u, +attributes, +data, nowhere),
            success);
  EXPECT_EQ(type, 0u);
  EXPECT_EQ(ordinal, -2);
  EXPECT_EQ((*this)("cuMemFree", memory), success);
}

TEST_F(Driver, StreamsKeepTheirAttributesAndAreNotCaptured) {
  void *stream = nullptr;
  ASSERT_EQ((*this)("cuStreamCreate", &stream, 0u), success);
  std::array<int, 16> value{2}, back{};
  EXPECT_EQ((*this)("cuStreamSetAttribute", stream, 3, value.data()), success);
  EXPECT_EQ((*this)("cuStreamGetAttribute", stream, 3, back.data()), success);
  EXPECT_EQ(back, value);
  EXPECT_EQ((*this)("cuStreamSetAttribute", stream, 99, value.data()),
            invalidValue);
  int status = 7;
  EXPECT_EQ((*this)("cuStreamIsCapturing", stream, &status), success);
  EXPECT_EQ(status, 0);
  status = 7;
  unsigned long long id = 0;
  EXPECT_EQ((*this)("cuStreamGetCaptureInfo", stream, &status, &id), success);
  EXPECT_EQ(status, 0);
  int least = 1, greatest = 1;
  EXPECT_EQ((*this)("cuCtxGetStreamPriorityRange", &least, &greatest), success);
  EXPECT_EQ(least, 0);
  EXPECT_LT(greatest, 0);
  EXPECT_EQ((*this)("cuStreamDestroy", stream), success);
  EXPECT_EQ((*this)("cuStreamSetAttribute", stream, 3, value.data()),
            invalidHandle);
}

TEST_F(Driver, FunctionsAreFoundByNameAndVersion) {
  void *function = nullptr;
  int status = 7;
  EXPECT_EQ((*this)("cuGetProcAddress_v2", "cuCtxGetLimit", &function, 12000,
                    std::uint64_t(0), &status),
            success);
  EXPECT_EQ(function, dlsym(library, "cuCtxGetLimit"));
  EXPECT_EQ(status, 0);
  EXPECT_EQ((*this)("cuGetProcAddress", "cuMemAlloc", &function, 12000,
                    std::uint64_t(0)),
            success);
  EXPECT_EQ(function, dlsym(library, "cuMemAlloc_v2"));
  // Versions whose parameters differ.
  const std::pair<int, const char *> kContexts[] = {{11000, "cuCtxCreate_v2"},
                                                    {12000, "cuCtxCreate_v3"},
                                                    {13000, "cuCtxCreate_v4"}};
  for (auto [version, name] : kContexts) {
    EXPECT_EQ((*this)("cuGetProcAddress_v2", "cuCtxCreate", &function, version,
                      std::uint64_t(0), &status),
              success);
    EXPECT_EQ(function, dlsym(library, name)) << version;
  }
  EXPECT_EQ((*this)("cuGetProcAddress_v2", "cuNothing", &function, 12000,
                    std::uint64_t(0), &status),
            notFound);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(status, 1);
}

// NVRTC crashes where the function is missing.
TEST_F(Driver, HasNoTablesOfFunctions) {
  const void *table = &table;
  EXPECT_EQ((*this)("cuGetExportTable", &table, nullptr), notSupported);
  EXPECT_EQ(table, nullptr);
}

TEST_F(Driver, MapsOfPixelsNeedEveryArray) {
  std::array<std::uint64_t, 16> map{};
  std::uint64_t dims[] = {64, 8, 8, 1}, strides[] = {128, 1024, 8192};
  int corners[] = {0, 0};
  std::uint32_t steps[] = {1, 1, 1, 1};
  auto encode = [&](const int *lower, std::uint32_t rank) {
    return (*this)("cuTensorMapEncodeIm2col", map.data(), 6, rank,
                   reinterpret_cast<void *>(4096), +dims, +strides, lower,
                   +corners, 64u, 32u, +steps, 0, 3, 0, 0);
  };
  EXPECT_EQ(encode(nullptr, 4), invalidValue);
  EXPECT_EQ(encode(corners, 2), invalidValue);
  EXPECT_EQ(map[0], 0u);
  EXPECT_EQ(encode(corners, 4), success);
  EXPECT_NE(map[0], 0u);
}

TEST_F(Driver, IsThereUnderItsPlainName) {
  std::filesystem::path path = KILN_CUDA_DRIVER;
  EXPECT_TRUE(std::filesystem::exists(path.parent_path() / "libcuda.so"));
}

} // namespace kiln::cudart
