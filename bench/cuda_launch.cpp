// cuda_launch: what a launch of a CUDA program costs the host, on Kiln's
// libcudart: ten thousand launches of a kernel of one thread.
//
//     bench_cuda_launch            prints microseconds per launch
//
// KILN_CHECKS=off measures launches that are not checked.
#include <kiln/base/file.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

struct Size {
  unsigned x = 1, y = 1, z = 1;
};

extern "C" {
void **__cudaRegisterFatBinary(const void *wrapper);
void __cudaRegisterFunction(void **module, const char *stub, char *,
                            const char *name, int, void *, void *, void *,
                            void *, int *);
int cudaLaunchKernel(const void *stub, Size grid, Size block, void **parameters,
                     std::size_t smem, void *stream);
int cudaMalloc(void **pointer, std::size_t bytes);
int cudaMemset(void *to, int value, std::size_t bytes);
int cudaDeviceSynchronize();
}

int main() {
  // What nvcc's code does before main.
  std::string bytes = kiln::read_file(
      KILN_SOURCE_DIR "/tests/unit/cudart/fatbins/plain.fatbin");
  struct {
    std::uint32_t magic = 0x466243b1, version = 1;
    const void *data;
    const void *more = nullptr;
  } wrapper;
  wrapper.data = bytes.data();
  static const char stub = 0;
  __cudaRegisterFunction(__cudaRegisterFatBinary(&wrapper), &stub, nullptr,
                         "scale", -1, nullptr, nullptr, nullptr, nullptr,
                         nullptr);
  void *x = nullptr;
  int n = 1, status = cudaMalloc(&x, 4);
  status |= cudaMemset(x, 0, 4);
  void *parameters[] = {&x, &n};
  auto launch = [&](int count) {
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i)
      status |= cudaLaunchKernel(&stub, {}, {}, parameters, 0, nullptr);
    status |= cudaDeviceSynchronize();
    return std::chrono::duration<double, std::micro>(
               std::chrono::steady_clock::now() - start)
               .count() /
           count;
  };
  launch(100);
  double time_us = launch(10000);
  std::printf("%.1f us for each of 10000 launches\n", time_us);
  return status;
}
