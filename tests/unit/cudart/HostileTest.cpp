// Hostile: what a program must never hand over, and what comes back: an error
// of CUDA, and never a signal.
#include "cudart/Fatbin.h"
#include "kiln/base/error.h"
#include "support/limits/MappedMemory.h"

#include <cstring>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::cudart {

namespace {
/// Two pages, behind which nothing is mapped.
class Pages {
public:
  static constexpr std::size_t kBytes = 8192;

  Pages()
      : data_(static_cast<char *>(::mmap(nullptr, 2 * kBytes, PROT_NONE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    ::mprotect(data_, kBytes, PROT_READ | PROT_WRITE);
  }
  ~Pages() { ::munmap(data_, 2 * kBytes); }
  Pages(const Pages &) = delete;

  char *data() const { return data_; }
  char *end() const { return data_ + kBytes; }
  void protect(int how) const { ::mprotect(data_, kBytes, how); }

private:
  char *data_;
};

class Library {
public:
  explicit Library(const char *path)
      : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {}
  template <typename... Parameters>
  int operator()(const char *name, Parameters... parameters) const {
    auto *function =
        reinterpret_cast<int (*)(Parameters...)>(dlsym(handle_, name));
    return function ? function(parameters...) : -1;
  }

private:
  void *handle_;
};
} // namespace

static std::string refusalOf(const void *image) {
  try {
    readImage(image, DeviceDescription::h200());
  } catch (const UserError &error) {
    return error.message();
  }
  return "";
}

TEST(MappedMemory, SaysHowFarItGoes) {
  Pages pages;
  EXPECT_EQ(mappedBytes(pages.data(), 100), 100u);
  EXPECT_EQ(mappedBytes(pages.data() + 8, SIZE_MAX), Pages::kBytes - 8);
  EXPECT_EQ(mappedBytes(pages.data(), 100, MemoryUse::write), 100u);
  pages.protect(PROT_READ);
  EXPECT_EQ(mappedBytes(pages.data(), 100), 100u);
  EXPECT_EQ(mappedBytes(pages.data(), 100, MemoryUse::write), 0u);
  pages.protect(PROT_NONE);
  EXPECT_EQ(mappedBytes(pages.data(), 100), 0u);
  EXPECT_EQ(mappedBytes(nullptr, 1), 0u);
}

TEST(Hostile, AFatBinaryEndsWhereMemoryDoes) {
  struct Container {
    std::uint32_t magic = 0xBA55ED50;
    std::uint16_t version = 1, headerBytes = 16;
    std::uint64_t bytes = 0;
  };
  auto refusal = [](const Container &container) {
    Pages pages;
    char *at = pages.end() - sizeof(container);
    std::memcpy(at, &container, sizeof(container));
    return refusalOf(at);
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({.bytes = 0xffff}),
            "the fat binary has 16 bytes, and its header says 65551");
  EXPECT_THAT(refusal({.bytes = ~std::uint64_t(0)}),
              testing::HasSubstr("the fat binary has 16 bytes"));
  EXPECT_THAT(refusal({.headerBytes = 0xffff}),
              testing::HasSubstr("the fat binary has 16 bytes"));
  EXPECT_EQ(refusal({.headerBytes = 8}), "");
}

TEST(Hostile, AnEntryIsNoLargerUnpackedThanItIs) {
  struct {
    std::uint32_t magic = 0xBA55ED50;
    std::uint16_t version = 1, headerBytes = 16;
    std::uint64_t bytes = 64;
    std::uint16_t kind = 1, entryVersion = 0;
    std::uint32_t entryHeaderBytes = 64;
    std::uint64_t storedBytes = 0;
    std::uint32_t compressedBytes = 100, unused = 0;
    std::uint16_t minor = 0, major = 8;
    std::uint32_t arch = 90;
    std::uint32_t name[2] = {};
    std::uint64_t flags = 0, unused2 = 0, plainBytes = 1000;
  } image;
  EXPECT_EQ(refusalOf(&image), "an entry of the fat binary has 0 bytes, and its "
                               "header says 100");
}

TEST(Hostile, AWrapperLeadsIntoMemory) {
  struct {
    std::uint32_t magic = 0x466243b1, version = 1;
    const void *data = nullptr;
    const void *more = nullptr;
  } wrapper;
  auto refusal = [&] {
    try {
      readFatbin(&wrapper, DeviceDescription::h200());
    } catch (const UserError &error) {
      return std::string(error.message());
    }
    return std::string();
  };
  EXPECT_THAT(refusal(), testing::HasSubstr("is not in memory"));
  wrapper.data = reinterpret_cast<const void *>(0x1234);
  EXPECT_THAT(refusal(), testing::HasSubstr("is not in memory"));
  wrapper.version = 2;
  wrapper.more = reinterpret_cast<const void *>(0x1238);
  EXPECT_THAT(refusal(), testing::HasSubstr("is not in memory"));
}

TEST(Hostile, TextEndsWhereMemoryDoes) {
  Pages pages;
  std::memset(pages.data(), 'x', Pages::kBytes);
  EXPECT_THAT(refusalOf(pages.data()),
              testing::HasSubstr("does not end within 8192 bytes"));
  EXPECT_THAT(refusalOf(pages.end() - 2),
              testing::HasSubstr("is not in memory"));
}

TEST(Hostile, SizesDoNotWrapAround) {
  Library cuda(KILN_CUDART_13);
  void *pointer = nullptr;
  std::size_t pitch = 0;
  EXPECT_EQ(cuda("cudaMallocPitch", &pointer, &pitch, SIZE_MAX, SIZE_MAX), 1);
  EXPECT_EQ(cuda("cudaMallocPitch", &pointer, &pitch, std::size_t(1) << 40,
                 std::size_t(1) << 40),
            2);
  EXPECT_EQ(cuda("cudaMallocPitch", &pointer, &pitch, std::size_t(5),
                 std::size_t(3)),
            0);
  EXPECT_EQ(pitch, 512u);
  EXPECT_EQ(cuda("cudaFree", pointer), 0);
}

TEST(Hostile, OnlyMemoryThatIsThereIsRegistered) {
  Library cuda(KILN_CUDART_13);
  Pages pages;
  EXPECT_EQ(cuda("cudaHostRegister", static_cast<void *>(pages.end()),
                 std::size_t(4096), 0u),
            1);
  EXPECT_EQ(cuda("cudaHostRegister", static_cast<void *>(pages.data()),
                 Pages::kBytes + 1, 0u),
            1);
  EXPECT_EQ(cuda("cudaHostRegister", static_cast<void *>(pages.data()),
                 Pages::kBytes, 0u),
            0);
  EXPECT_EQ(cuda("cudaHostUnregister", static_cast<void *>(pages.data())), 0);
}

TEST(Hostile, HandlesAreThoseThatWereGiven) {
  Library cuda(KILN_CUDART_13);
  char garbage[64] = {};
  for (void *handle : {static_cast<void *>(garbage),
                       reinterpret_cast<void *>(0x123456789)}) {
    for (const char *name : {"cudaStreamSynchronize", "cudaStreamQuery",
                             "cudaStreamDestroy", "cudaEventQuery",
                             "cudaEventSynchronize", "cudaEventDestroy"})
      EXPECT_EQ(cuda(name, handle), 400) << name;
    EXPECT_EQ(cuda("cudaEventRecord", handle, nullptr), 400);
    EXPECT_EQ(cuda("cudaStreamWaitEvent", nullptr, handle, 0u), 400);
    unsigned flags = 0;
    EXPECT_EQ(cuda("cudaStreamGetFlags", handle, &flags), 400);
    struct Size {
      unsigned x = 1, y = 1, z = 1;
    };
    EXPECT_EQ(cuda("cudaLaunchKernel", static_cast<void *>(garbage), Size(),
                   Size(), static_cast<void **>(nullptr), std::size_t(0),
                   handle),
              400);
  }
  void *stream = nullptr, *event = nullptr;
  ASSERT_EQ(cuda("cudaStreamCreate", &stream), 0);
  ASSERT_EQ(cuda("cudaEventCreate", &event), 0);
  EXPECT_EQ(cuda("cudaEventRecord", event, stream), 0);
  EXPECT_EQ(cuda("cudaStreamQuery", event), 400);
  EXPECT_EQ(cuda("cudaStreamDestroy", stream), 0);
  EXPECT_EQ(cuda("cudaStreamDestroy", stream), 400);
  EXPECT_EQ(cuda("cudaStreamQuery", stream), 400);
  EXPECT_EQ(cuda("cudaEventDestroy", event), 0);
  EXPECT_EQ(cuda("cudaEventDestroy", event), 400);
  EXPECT_EQ(cuda("cudaStreamCreate", static_cast<void *>(nullptr)), 1);
}

TEST(Hostile, ModulesOfTheDriverInterface) {
  Library cuda(KILN_CUDA_DRIVER);
  void *module = nullptr, *function = nullptr;
  EXPECT_EQ(cuda("cuModuleLoadData", &module, static_cast<void *>(nullptr)), 1);
  EXPECT_EQ(cuda("cuModuleLoadData", &module, reinterpret_cast<void *>(0x1234)),
            1);
  EXPECT_NE(cuda("cuModuleLoadData", &module, "no PTX at all"), 0);
  EXPECT_EQ(module, nullptr);
  char garbage[256] = {};
  EXPECT_EQ(cuda("cuModuleGetFunction", &function, +garbage, "k"), 400);
  EXPECT_EQ(cuda("cuModuleUnload", +garbage), 400);
  const char *name = nullptr;
  EXPECT_EQ(cuda("cuFuncGetName", &name, +garbage), 400);
  static const char ptx[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                            ".visible .entry k()\n{\nret;\n}\n";
  ASSERT_EQ(cuda("cuModuleLoadData", &module, +ptx), 0);
  EXPECT_EQ(cuda("cuModuleGetFunction", &function, module, "k"), 0);
  EXPECT_EQ(cuda("cuFuncGetName", &name, function), 0);
  EXPECT_STREQ(name, "k");
  EXPECT_EQ(cuda("cuModuleUnload", module), 0);
  EXPECT_EQ(cuda("cuModuleUnload", module), 400);
}

// It has the locks of its parent's threads, and not the threads.
TEST(Hostile, AForkedChildIsToldAtOnce) {
  Library cuda(KILN_CUDART_13);
  void *pointer = nullptr;
  ASSERT_EQ(cuda("cudaMalloc", &pointer, std::size_t(16)), 0);
  pid_t child = ::fork();
  if (child == 0) {
    ::alarm(5);
    bool isTold = cuda("cudaMalloc", &pointer, std::size_t(16)) == 3 &&
                  cuda("cudaDeviceSynchronize") == 3 &&
                  cuda("cudaGraphCreate", nullptr, 0) == 3;
    ::_exit(isTold ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(cuda("cudaFree", pointer), 0);
}

} // namespace kiln::cudart
