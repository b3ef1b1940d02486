// driver: a program that loads PTX by itself, with the driver's functions.
// status: 0
// stderr: add takes parameters and was given none
// nvcc: -lcuda
#include "check.h"

#include <cuda.h>

static const char *kPtx = R"(.version 8.0
.target sm_90
.address_size 64
.visible .global .align 4 .u32 count = 5;
.visible .entry add(.param .u64 out, .param .u32 by)
{
.reg .u32 %r<4>;
.reg .u64 %a<3>;
ld.param.u64 %a1, [out];
ld.param.u32 %r1, [by];
cvta.to.global.u64 %a2, %a1;
ld.global.u32 %r2, [count];
add.u32 %r3, %r1, %r2;
st.global.u32 [%a2], %r3;
ret;
}
)";

int main() {
  CHECK(cuInit(0) == CUDA_SUCCESS);
  CUdevice device;
  CUcontext context;
  CHECK(cuDeviceGet(&device, 0) == CUDA_SUCCESS);
  CHECK(cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS);
  CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
  char name[64];
  CHECK(cuDeviceGetName(name, sizeof(name), device) == CUDA_SUCCESS);
  CUmodule module;
  CUfunction add;
  CHECK(cuModuleLoadData(&module, kPtx) == CUDA_SUCCESS);
  CHECK(cuModuleGetFunction(&add, module, "none") == CUDA_ERROR_NOT_FOUND);
  CHECK(cuModuleGetFunction(&add, module, "add") == CUDA_SUCCESS);
  CUdeviceptr out, count;
  std::size_t bytes;
  CHECK(cuModuleGetGlobal(&count, &bytes, module, "count") == CUDA_SUCCESS);
  CHECK(bytes == 4);
  CHECK(cuMemsetD32(count, 7, 1) == CUDA_SUCCESS);
  CHECK(cuMemAlloc(&out, 4) == CUDA_SUCCESS);
  int by = 35, back = 0;
  void *parameters[] = {&out, &by};
  CHECK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters,
                       nullptr) == CUDA_SUCCESS);
  CHECK(cuMemcpyDtoH(&back, out, 4) == CUDA_SUCCESS);
  CHECK(back == 42);
  // What is missing is an error, no crash.
  CHECK(cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters,
                       nullptr) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) ==
        CUDA_ERROR_INVALID_VALUE);
  // The runtime sees the same memory.
  OK(cudaMemcpy(&back, reinterpret_cast<void *>(count), 4,
                cudaMemcpyDeviceToHost));
  CHECK(back == 7);
  CHECK(cuModuleUnload(module) == CUDA_SUCCESS);
  CHECK(cuMemFree(out) == CUDA_SUCCESS);
  std::printf("PASS\n");
  return 0;
}
