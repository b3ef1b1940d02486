// driver: a program that loads PTX by itself, with the driver's functions.
// status: 0
// stderr: add takes parameters and was given none
// stderr: cuTexObjectCreate is not supported by Kiln
// nvcc: -lcuda
#include "check.h"

#include <cstring>
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

/// Rows of 3 bytes out of and into pitched memory, and slices of them.
static void copyRows() {
  constexpr std::size_t kWidth = 3, kHeight = 2, kDepth = 2;
  CUdeviceptr rows;
  std::size_t pitch = 0;
  CHECK(cuMemAllocPitch(&rows, &pitch, kWidth, kHeight * kDepth, 4) ==
        CUDA_SUCCESS);
  CHECK(pitch >= kWidth);
  CHECK(cuMemsetD2D8(rows, pitch, 'x', kWidth, kHeight * kDepth) ==
        CUDA_SUCCESS);
  const char *text = "abcdef";
  CUDA_MEMCPY2D in = {};
  in.srcMemoryType = CU_MEMORYTYPE_HOST;
  in.srcHost = text;
  in.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  in.dstDevice = rows;
  in.dstPitch = pitch;
  in.dstY = 1;
  in.WidthInBytes = kWidth;
  in.Height = kHeight;
  CHECK(cuMemcpy2D(&in) == CUDA_SUCCESS);
  char back[kDepth * kHeight * kWidth + 1] = {};
  CUDA_MEMCPY3D out = {};
  out.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  out.srcDevice = rows;
  out.srcPitch = pitch;
  out.srcHeight = kHeight;
  out.dstMemoryType = CU_MEMORYTYPE_HOST;
  out.dstHost = back;
  out.WidthInBytes = kWidth;
  out.Height = kHeight;
  out.Depth = kDepth;
  CHECK(cuMemcpy3D(&out) == CUDA_SUCCESS);
  CHECK(std::strcmp(back, "xxxabcdefxxx") == 0);
  in.dstPitch = 1;
  CHECK(cuMemcpy2D(&in) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpy2D(nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree(rows) == CUDA_SUCCESS);
}

/// Every public name is there, and what Kiln lacks says so; nobody who asks for
/// its address is told that it is there.
static void ask() {
  CUtexObject texture;
  CHECK(cuTexObjectCreate(&texture, nullptr, nullptr, nullptr) ==
        CUDA_ERROR_NOT_SUPPORTED);
  void *found;
  CUdriverProcAddressQueryResult status;
  CHECK(cuGetProcAddress("cuTexObjectCreate", &found, 13000, 0, &status) ==
        CUDA_ERROR_NOT_FOUND);
  CHECK(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  CHECK(cuGetProcAddress("cuMemcpy2D", &found, 13000, 0, &status) ==
        CUDA_SUCCESS);
}

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
  int grid = 0, block = 0;
  CHECK(cuOccupancyMaxPotentialBlockSize(&grid, &block, add, nullptr, 0, 0) ==
        CUDA_SUCCESS);
  CHECK(block == 1024 && grid == 2 * 132);
  CHECK(cuOccupancyMaxPotentialBlockSize(&grid, &block, add, nullptr, 0,
                                         128) == CUDA_SUCCESS);
  CHECK(block == 128 && grid == 16 * 132);
  copyRows();
  ask();
  CHECK(cuModuleUnload(module) == CUDA_SUCCESS);
  CHECK(cuMemFree(out) == CUDA_SUCCESS);
  std::printf("PASS\n");
  return 0;
}
