// Mgpu: MLIR's runtime functions as lowered programs call them, and what each
// says where it cannot: a sentence, and the exit status of the process.
#include "Sanitized.h"
#include "kiln/base/file.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace kiln::mgpu {

namespace {
/// The library, in a process that ends with the test: its session keeps what
/// went wrong.
class Library {
public:
  Library() : handle_(dlopen(KILN_MLIR_RUNTIME, RTLD_NOW | RTLD_LOCAL)) {}

  template <typename Result, typename... Parameters>
  Result call(const char *name, Parameters... parameters) const {
    auto *function =
        reinterpret_cast<Result (*)(Parameters...)>(dlsym(handle_, name));
    if (!function) {
      std::fprintf(stderr, "there is no %s\n", name);
      std::_Exit(99);
    }
    return function(parameters...);
  }
  void *pointer(const char *name, auto... parameters) const {
    return call<void *>(name, parameters...);
  }
  void operator()(const char *name, auto... parameters) const {
    call<void>(name, parameters...);
  }

private:
  void *handle_;
};

struct Memref {
  void *allocated, *aligned;
  std::int64_t offset, numbers[4];
};

using Size = std::int64_t;

class Mgpu : public testing::Test {
protected:
  Mgpu() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    setenv("KILN_DEVICE", "sim", 1);
  }
};
} // namespace

static std::string fatbin() {
  return read_file(KILN_SOURCE_DIR "/tests/unit/cudart/fatbins/zstd.fatbin");
}

/// The kernel scale(float *x, int n), which multiplies by a constant that is 0.
static void *findScale(const Library &mgpu) {
  static std::string image = fatbin();
  void *module = mgpu.pointer("mgpuModuleLoad", image.data(), image.size());
  return mgpu.pointer("mgpuModuleGetFunction", module, "scale");
}

static void launch(const Library &mgpu, void *function, void **parameters,
                   std::size_t count, Size threads = 32) {
  mgpu("mgpuLaunchKernel", function, Size(1), Size(1), Size(1), threads,
       Size(1), Size(1), 0, nullptr, parameters, nullptr, count);
}

TEST_F(Mgpu, RunsAKernelOfAFatBinary) {
  auto body = [] {
    Library mgpu;
    void *function = findScale(mgpu);
    void *stream = mgpu.pointer("mgpuStreamCreate");
    void *x = mgpu.pointer("mgpuMemAlloc", std::uint64_t(16), stream, false);
    float host[4] = {1, 2, 3, 4};
    mgpu("mgpuMemcpy", x, +host, std::size_t(16), stream);
    mgpu("mgpuStreamSynchronize", stream);
    int n = 4;
    void *parameters[] = {&x, &n};
    launch(mgpu, function, parameters, 2);
    mgpu("mgpuMemcpy", +host, x, std::size_t(16), nullptr);
    mgpu("mgpuStreamSynchronize", nullptr);
    mgpu("mgpuMemFree", x, stream);
    mgpu("mgpuStreamDestroy", stream);
    std::exit(host[3] == 0 ? 0 : 1);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(0),
              "kiln: 1 launch, 1 checked: 0 errors, 0 warnings");
}

TEST_F(Mgpu, TakesAStreamForWhatHasBeenPutIntoIt) {
  auto body = [] {
    Library mgpu;
    void *function = findScale(mgpu);
    void *first = mgpu.pointer("mgpuStreamCreate");
    void *second = mgpu.pointer("mgpuStreamCreate");
    void *x = mgpu.pointer("mgpuMemAlloc", std::uint64_t(16), first, false);
    float host[4] = {1, 2, 3, 4};
    mgpu("mgpuMemcpy", x, +host, std::size_t(16), first);
    mgpu("mgpuStreamWaitEvent", second, first); // as async.execute has it
    mgpu("mgpuEventDestroy", first);
    mgpu("mgpuEventDestroy", first);
    int n = 4;
    void *parameters[] = {&x, &n};
    mgpu("mgpuLaunchKernel", function, Size(1), Size(1), Size(1), Size(32),
         Size(1), Size(1), 0, second, +parameters, nullptr, std::size_t(2));
    mgpu("mgpuMemcpy", +host, x, std::size_t(16), second);
    mgpu("mgpuEventSynchronize", second);
    std::exit(host[3] == 0 ? 0 : 1);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(0),
              "kiln: 1 launch, 1 checked: 0 errors, 0 warnings");
}

TEST_F(Mgpu, RefusesWhatIsNotAnEvent) {
  auto body = [] {
    Library mgpu;
    int something = 0;
    mgpu("mgpuStreamWaitEvent", nullptr, &something);
    std::exit(0);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(3),
              "kiln: mgpuStreamWaitEvent: 0x[0-9a-f]+ is not an event of this "
              "program; mgpuEventCreate makes one");
}

TEST_F(Mgpu, RefusesMachineCode) {
  auto body = [] {
    Library mgpu;
    std::string cubin("\177ELF\2\1\1\0", 8);
    void *module = mgpu.pointer("mgpuModuleLoad", cubin.data(), cubin.size());
    void *function = mgpu.pointer("mgpuModuleGetFunction", module, "scale");
    launch(mgpu, function, nullptr, 0);
    mgpu("mgpuModuleUnload", module);
    std::exit(function ? 1 : 0);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(3),
              "kiln: mgpuModuleGetFunction: the module is machine code \\(a "
              "cubin\\), which cannot be simulated; lower it with the option "
              "cubin-format=isa of gpu-lower-to-nvvm-pipeline, which gives "
              "PTX");
}

TEST_F(Mgpu, RefusesAFatBinaryThatWasCutOff) {
  auto body = [] {
    Library mgpu;
    std::string image = fatbin();
    mgpu.pointer("mgpuModuleLoad", image.data(), std::size_t(100));
    std::exit(0);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(3),
              "kiln: mgpuModuleLoad: the fat binary has 100 bytes, and its "
              "header says [0-9]+");
}

TEST_F(Mgpu, RefusesPtxThatIsNone) {
  auto body = [] {
    Library mgpu;
    void *module = mgpu.pointer("mgpuModuleLoadJIT", "what is this", 2);
    mgpu.pointer("mgpuModuleGetFunction", module, "kernel");
    std::exit(0);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(3),
              "kiln: mgpuModuleGetFunction: ");
}

TEST_F(Mgpu, RefusesLaunchesByReason) {
  auto refused = [](int which) {
    Library mgpu;
    void *function = findScale(mgpu);
    void *x = mgpu.pointer("mgpuMemAlloc", std::uint64_t(16), nullptr, true);
    int n = 0;
    void *parameters[] = {&x, &n};
    if (which == 0)
      launch(mgpu, function, parameters, 3);
    if (which == 1)
      launch(mgpu, function, parameters, 2, 0);
    if (which == 2)
      launch(mgpu, function, parameters, 2, 2048);
    if (which == 3)
      mgpu("mgpuLaunchKernel", function, Size(1), Size(1), Size(1), Size(32),
           Size(1), Size(1), -1, nullptr, +parameters, nullptr, std::size_t(2));
    if (which == 4)
      mgpu("mgpuLaunchClusterKernel", function, Size(0), Size(1), Size(1),
           Size(1), Size(1), Size(1), Size(32), Size(1), Size(1), 0, nullptr,
           +parameters, nullptr);
    std::exit(0);
  };
  EXPECT_EXIT(refused(0), testing::ExitedWithCode(3),
              "kiln: mgpuLaunchKernel: scale takes 2 parameters and was given "
              "3");
  EXPECT_EXIT(refused(1), testing::ExitedWithCode(3),
              "kiln: mgpuLaunchKernel: a block of 0 x 1 x 1 cannot be "
              "launched; each number must be at least 1");
  EXPECT_EXIT(refused(2), testing::ExitedWithCode(3),
              "kiln: launch 1 of scale.*, grid 1x1x1, block 2048x1x1 was "
              "refused: (.|\n)*kiln: mgpuLaunchKernel has launched nothing");
  EXPECT_EXIT(refused(3), testing::ExitedWithCode(3),
              "kiln: mgpuLaunchKernel: -1 bytes of dynamic shared memory "
              "cannot be launched");
  EXPECT_EXIT(refused(4), testing::ExitedWithCode(3),
              "kiln: mgpuLaunchClusterKernel: a cluster of 0 x 1 x 1 cannot "
              "be launched");
}

TEST_F(Mgpu, NamesAKernelThatIsNotThere) {
  auto body = [] {
    Library mgpu;
    static std::string image = fatbin();
    void *module = mgpu.pointer("mgpuModuleLoad", image.data(), image.size());
    void *function = mgpu.pointer("mgpuModuleGetFunction", module, "other");
    launch(mgpu, function, nullptr, 0);
    std::exit(0);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(3),
              "kiln: mgpuModuleGetFunction: .*other.*scale");
}

TEST_F(Mgpu, RefusesMemoryByReason) {
  SKIP_WHERE_SANITIZED("it asks for more memory than there is");
  auto refused = [](int which) {
    Library mgpu;
    static float data[8];
    if (which == 0)
      mgpu("mgpuMemcpy", nullptr, +data, std::size_t(16), nullptr);
    if (which == 1)
      mgpu("mgpuMemFree", +data, nullptr);
    Memref memref{data, data, 0, {2, 4, 5, 1}};
    if (which == 2)
      mgpu("mgpuMemHostRegisterMemRef", Size(2), &memref, Size(4));
    if (which == 3)
      mgpu("mgpuMemHostUnregisterMemRef", Size(2), &memref, Size(4));
    if (which == 4)
      mgpu.pointer("mgpuMemAlloc", std::uint64_t(1) << 60, nullptr, true);
    if (which == 5)
      mgpu("mgpuMemset32", nullptr, 0u, std::size_t(2), nullptr);
    std::exit(0);
  };
  EXPECT_EXIT(refused(0), testing::ExitedWithCode(3),
              "kiln: mgpuMemcpy: 16 bytes at address 0 are not memory");
  EXPECT_EXIT(refused(1), testing::ExitedWithCode(3),
              "kiln: mgpuMemFree: 0x[0-9a-f]+ is not the address of memory "
              "that mgpuMemAlloc gave");
  EXPECT_EXIT(refused(2), testing::ExitedWithCode(3),
              "kiln: mgpuMemHostRegisterMemRef: the memref is not dense: "
              "dimension 0 has a stride of 5 elements instead of 4; register "
              "the whole of it");
  EXPECT_EXIT(refused(3), testing::ExitedWithCode(3),
              "kiln: mgpuMemHostUnregisterMemRef: the memory at 0x[0-9a-f]+ "
              "is not registered");
  EXPECT_EXIT(refused(4), testing::ExitedWithCode(4),
              "kiln: mgpuMemAlloc: could not allocate 1152921504606846976 bytes of host "
              "memory");
  EXPECT_EXIT(refused(5), testing::ExitedWithCode(3),
              "kiln: mgpuMemset32: 8 bytes at address 0 are not memory");
}

TEST_F(Mgpu, RefusesTensorMapsByReason) {
  auto refused = [](Size type, Size boxed, Size offset) {
    Library mgpu;
    void *x = mgpu.pointer("mgpuMemAlloc", std::uint64_t(4096), nullptr, false);
    Memref memref{x, x, offset, {4, 8, 8, 1}};
    Size box[] = {boxed, 8};
    void *map = mgpu.pointer("mgpuTensorMapEncodeTiledMemref", Size(2), &memref,
                             type, Size(0), Size(0), Size(0), Size(0), +box);
    std::exit(map && offset == 0 ? 1 : 0);
  };
  EXPECT_EXIT(refused(99, 4, 0), testing::ExitedWithCode(3),
              "kiln: mgpuTensorMapEncodeTiledMemref: a tensor map of rank 2, "
              "type 99, interleave 0, swizzle 0, L2 promotion 0 and fill 0 is "
              "not one that the driver knows");
  EXPECT_EXIT(refused(7, 0, 0), testing::ExitedWithCode(3),
              "kiln: mgpuTensorMapEncodeTiledMemref: a box of 0 elements in "
              "dimension 0 is not a valid one");
  EXPECT_EXIT(refused(7, 1000, 0), testing::ExitedWithCode(3),
              "kiln: mgpuTensorMapEncodeTiledMemref: the tensor map of a "
              "memref");
  EXPECT_EXIT(refused(7, 4, 32), testing::ExitedWithCode(0),
              "kiln: the memref of a tensor map begins 32 elements behind its "
              "pointer; MLIR's own runtime takes the map from the pointer");
}

TEST_F(Mgpu, RefusesSparseProductsByName) {
  auto body = [] {
    Library mgpu;
    void *vector =
        mgpu.pointer("mgpuCreateDnVec", Size(4), nullptr, 0, nullptr);
    Size rows = 7, columns = 7, nonzeros = 7;
    mgpu("mgpuSpMatGetSize", nullptr, &rows, &columns, &nonzeros, nullptr);
    std::exit(vector || rows || columns || nonzeros ? 1 : 0);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(3),
              "kiln: mgpuCreateDnVec is not supported by Kiln: products of "
              "sparse matrices need NVIDIA's cuSPARSE; lower them to loops "
              "(.|\n)*mgpuSpMatGetSize is not supported");
}

TEST_F(Mgpu, KeepsTheStatusOfAProgramThatFails) {
  auto body = [] {
    Library mgpu;
    mgpu.pointer("mgpuCreateDnVec", Size(4), nullptr, 0, nullptr);
    std::exit(7);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(7), "");
}

} // namespace kiln::mgpu
