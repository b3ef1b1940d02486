// runtime_compiled: a program that compiles its kernel for the GPU by NVRTC, and
// asks for machine code.
// status: 2
// nvcc: -lnvrtc -lcuda
// stderr: error race at .*kernel.cu:4:
#include "check.h"

#include <cstring>
#include <cuda.h>
#include <nvrtc.h>
#include <vector>

static const char *source = R"(
extern "C" __global__ void reverse(int *x) {
  __shared__ int tile[64]; tile[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = tile[63 - threadIdx.x];
}
)";

int main() {
  nvrtcProgram program;
  CHECK(nvrtcCreateProgram(&program, source, "kernel.cu", 0, nullptr,
                           nullptr) == NVRTC_SUCCESS);
  const char *options[] = {"--gpu-architecture=sm_90"};
  CHECK(nvrtcCompileProgram(program, 1, options) == NVRTC_SUCCESS);
  std::size_t bytes = 0;
  CHECK(nvrtcGetCUBINSize(program, &bytes) == NVRTC_SUCCESS);
  std::vector<char> image(bytes);
  CHECK(nvrtcGetCUBIN(program, image.data()) == NVRTC_SUCCESS);
  CHECK(nvrtcDestroyProgram(&program) == NVRTC_SUCCESS);
  int *x, back[64] = {};
  OK(cudaMalloc(&x, sizeof(back)));
  OK(cudaMemset(x, 0, sizeof(back)));
  CUmodule module;
  CUfunction function;
  CHECK(cuModuleLoadData(&module, image.data()) == CUDA_SUCCESS);
  CHECK(cuModuleGetFunction(&function, module, "reverse") == CUDA_SUCCESS);
  void *arguments[] = {&x};
  CHECK(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments,
                       nullptr) == CUDA_SUCCESS);
  OK(cudaMemcpy(back, x, sizeof(back), cudaMemcpyDeviceToHost));
  std::printf("PASS\n");
}
