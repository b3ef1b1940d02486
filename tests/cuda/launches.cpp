// launches: a program for `kiln run` that needs no nvcc: it brings its PTX as
// text and speaks to the driver.
//
//     launches sum|race|unwritten|bounds|crash|hang|wait|large
//
// It prints what it computed, and the CUDA error that it ended with.
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

extern "C" {
int cuInit(unsigned);
int cuModuleLoadData(void **module, const void *image);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuModuleGetGlobal_v2(std::uint64_t *address, std::size_t *bytes,
                         void *module, const char *name);
int cuMemAlloc_v2(std::uint64_t *address, std::size_t bytes);
int cuMemHostRegister_v2(void *data, std::size_t bytes, unsigned flags);
int cuMemcpyHtoD_v2(std::uint64_t to, const void *from, std::size_t bytes);
int cuMemcpyDtoH_v2(void *to, std::uint64_t from, std::size_t bytes);
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz,
                   unsigned bx, unsigned by, unsigned bz, unsigned smem,
                   void *stream, void **parameters, void **extra);
int cuCtxSynchronize();
}

static const char *kPtx = R"(.version 8.0
.target sm_90
.address_size 64
.visible .global .align 4 .u32 count = 5;
.visible .const .align 4 .u32 factor = 1;
.extern .shared .align 4 .b8 tile[];

// out[i] = *table[i] * factor + count, and count grows.
.visible .entry sum(.param .u64 out, .param .u64 table, .param .align 8 .b8 more[16])
{
.reg .u32 %r<8>;
.reg .u64 %a<8>;
.reg .pred %p;
ld.param.u64 %a1, [out];
ld.param.u64 %a2, [table];
ld.param.u32 %r6, [more+8];
mov.u32 %r1, %tid.x;
mul.wide.u32 %a3, %r1, 8;
add.u64 %a4, %a2, %a3;
ld.global.u64 %a5, [%a4];
ld.global.u32 %r2, [%a5];
ld.const.u32 %r3, [factor];
ld.global.u32 %r4, [count];
mad.lo.u32 %r5, %r2, %r3, %r4;
add.u32 %r5, %r5, %r6;
mul.wide.u32 %a6, %r1, 4;
add.u64 %a7, %a1, %a6;
st.global.u32 [%a7], %r5;
bar.sync 0;
setp.ne.u32 %p, %r1, 0;
@%p bra done;
add.u32 %r4, %r4, 1;
st.global.u32 [count], %r4;
done:
ret;
}

// Neighbours, without a barrier.
.visible .entry race(.param .u64 out)
{
.reg .u32 %r<6>;
.reg .u64 %a<4>;
ld.param.u64 %a1, [out];
mov.u32 %r1, %tid.x;
mov.u32 %r4, tile;
mad.lo.u32 %r2, %r1, 4, %r4;
st.shared.u32 [%r2], %r1;
xor.b32 %r3, %r1, 32;
mad.lo.u32 %r3, %r3, 4, %r4;
ld.shared.u32 %r5, [%r3];
mul.wide.u32 %a2, %r1, 4;
add.u64 %a3, %a1, %a2;
st.global.u32 [%a3], %r5;
ret;
}

// Copies 8 words, whether they were written or not.
.visible .entry copy(.param .u64 out, .param .u64 in)
{
.reg .pred %p;
.reg .u32 %r<3>;
.reg .u64 %a<5>;
ld.param.u64 %a1, [out];
ld.param.u64 %a2, [in];
mov.u32 %r1, %tid.x;
mul.wide.u32 %a3, %r1, 4;
add.u64 %a2, %a2, %a3;
add.u64 %a1, %a1, %a3;
ld.global.u32 %r2, [%a2];
setp.eq.u32 %p, %r2, 0;
@%p bra done;
st.global.u32 [%a1], %r2;
done:
ret;
}

.visible .entry spin(.param .u64 out)
{
.reg .u64 %a;
.reg .pred %p;
mov.u64 %a, 0;
again:
add.u64 %a, %a, 1;
setp.ne.u64 %p, %a, 0;
@%p bra again;
ret;
}

.visible .entry wait(.param .u64 out)
{
.reg .u32 %r<2>;
.reg .u64 %a<2>;
.reg .pred %p;
ld.param.u64 %a1, [out];
again:
ld.volatile.global.u32 %r1, [%a1];
setp.eq.u32 %p, %r1, 0;
@%p bra again;
ret;
}
)";

static void *module;
static int status; ///< the last error

static int check(int error) { return error ? status = error : error; }

static void launch(const char *name, unsigned threads,
                   std::vector<void *> parameters) {
  void *function = nullptr;
  check(cuModuleGetFunction(&function, module, name));
  check(cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 1024, nullptr,
                       parameters.data(), nullptr));
  check(cuCtxSynchronize());
}

static std::uint64_t allocate(std::size_t bytes) {
  std::uint64_t address = 0;
  check(cuMemAlloc_v2(&address, bytes));
  return address;
}

static void print(std::uint64_t from, int count) {
  std::vector<std::uint32_t> words(count);
  if (check(cuMemcpyDtoH_v2(words.data(), from, 4 * count)) == 0)
    for (std::uint32_t word : words)
      std::printf("%u ", word);
  std::printf("\n");
}

/// Pointers inside buffers, to memory of every kind.
static void runSum() {
  static std::uint32_t heap[3] = {30, 31, 32};
  check(cuMemHostRegister_v2(heap + 1, 8, 0));
  std::uint64_t out = allocate(16), data = allocate(16), table = allocate(32);
  std::uint64_t count = 0, factor = 0;
  check(cuModuleGetGlobal_v2(&count, nullptr, module, "count"));
  check(cuModuleGetGlobal_v2(&factor, nullptr, module, "factor"));
  std::uint32_t words[4] = {10, 11, 12, 13}, two = 2;
  std::uint64_t pointers[4] = {
      data + 4, reinterpret_cast<std::uint64_t>(heap + 2), count, data + 12};
  check(cuMemcpyHtoD_v2(data, words, 16));
  check(cuMemcpyHtoD_v2(table, pointers, 32));
  check(cuMemcpyHtoD_v2(factor, &two, 4));
  struct {
    std::uint64_t pointer;
    std::uint32_t number = 100, rest = 0;
  } more{data};
  for (int i = 0; i < 2; ++i)
    launch("sum", 4, {&out, &table, &more});
  print(out, 4);
}

/// What nobody wrote of a buffer stays so.
static void runUnwritten() {
  std::uint64_t out = allocate(32), in = allocate(32);
  std::vector<std::uint32_t> words = {1, 2, 3, 4, 5, 6};
  check(cuMemcpyHtoD_v2(in, words.data(), 24));
  launch("copy", 8, {&out, &in});
  print(out, 6);
}

int main(int count, char **words) {
  std::string mode = count > 1 ? words[1] : "";
  check(cuInit(0));
  check(cuModuleLoadData(&module, kPtx));
  std::uint64_t out = allocate(256);
  std::printf("begun\n");
  std::fflush(stdout);
  if (mode == "sum") {
    runSum();
  } else if (mode == "race") {
    launch("race", 64, {&out});
    print(out, 4);
  } else if (mode == "unwritten") {
    runUnwritten();
  } else if (mode == "bounds") {
    out += 252;
    launch("race", 64, {&out});
  } else if (mode == "hang") {
    launch("spin", 1, {&out});
  } else if (mode == "wait") {
    std::uint32_t zero = 0;
    check(cuMemcpyHtoD_v2(out, &zero, 4));
    launch("wait", 1, {&out});
  } else if (mode == "crash") {
    launch("race", 64, {&out});
    std::raise(SIGSEGV);
  } else if (mode == "large") {
    std::uint64_t large = allocate(std::size_t(512) << 20);
    for (int i = 0; i < 20; ++i)
      launch("race", 64, {&out});
    print(large + 4, 0);
  }
  std::printf("ended with %d\n", status);
  return count > 2 ? std::atoi(words[2]) : 0;
}
