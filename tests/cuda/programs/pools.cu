// pools: memory in the order of streams, pools, and addresses that memory is
// mapped at.
// status: 0
// nvcc: -lcuda
#include "check.h"

#include <cuda.h>
#include <string>

#define DRIVER(call)                                                           \
  do {                                                                         \
    CUresult result = call;                                                    \
    const char *name = "?";                                                    \
    cuGetErrorName(result, &name);                                             \
    if (result != CUDA_SUCCESS) {                                              \
      std::printf("%s:%d: %s is %s\n", __FILE__, __LINE__, #call, name);       \
      std::exit(1);                                                            \
    }                                                                          \
  } while (false)

__global__ void fill(int *x, int value) { x[blockIdx.x * 256 + threadIdx.x] = value; }
__global__ void wait_for(volatile int *flag, int *x) {
  while (*flag == 0)
    ;
  *x = 7;
}

static unsigned long long attribute(cudaMemPool_t pool, cudaMemPoolAttr which) {
  unsigned long long value = 0;
  OK(cudaMemPoolGetAttribute(pool, which, &value));
  return value;
}

static void pools() {
  cudaStream_t stream, other;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  properties.maxSize = 1 << 20;
  cudaMemPool_t pool, standard, current;
  OK(cudaMemPoolCreate(&pool, &properties));
  OK(cudaDeviceGetDefaultMemPool(&standard, 0));
  OK(cudaDeviceGetMemPool(&current, 0));
  CHECK(current == standard && pool != standard);
  int *x, *y;
  OK(cudaMallocFromPoolAsync(&x, 1024, pool, stream));
  CHECK(attribute(pool, cudaMemPoolAttrUsedMemCurrent) == 1024);
  CHECK(attribute(standard, cudaMemPoolAttrUsedMemCurrent) == 0);
  CHECK(cudaMallocFromPoolAsync(&y, 1 << 20, pool, stream) ==
        cudaErrorMemoryAllocation);
  cudaGetLastError();
  unsigned long long keep = ~0ull;
  OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  CHECK(attribute(pool, cudaMemPoolAttrReleaseThreshold) == keep);
  OK(cudaDeviceSetMemPool(0, pool));
  OK(cudaMallocAsync(&y, 256, stream));
  CHECK(attribute(pool, cudaMemPoolAttrUsedMemHigh) == 1280);
  OK(cudaFreeAsync(y, stream));
  CHECK(attribute(pool, cudaMemPoolAttrUsedMemCurrent) == 1024);
  CHECK(cudaFreeAsync(y, stream) == cudaErrorInvalidValue);
  cudaGetLastError();

  // What is freed behind a kernel that waits is there for it.
  volatile int *flag;
  OK(cudaMallocManaged(const_cast<int **>(&flag), sizeof(int)));
  *flag = 0;
  int *left, back = 0;
  OK(cudaMallocAsync(&left, sizeof(int), stream));
  wait_for<<<1, 1, 0, stream>>>(flag, left);
  OK(cudaMemcpyAsync(&back, left, sizeof(int), cudaMemcpyDeviceToHost, stream));
  OK(cudaFreeAsync(left, stream));
  CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
  fill<<<1, 256, 0, other>>>(x, 3);
  *flag = 1;
  OK(cudaStreamSynchronize(stream));
  CHECK(back == 7);
  OK(cudaFree(x));
  CHECK(attribute(pool, cudaMemPoolAttrUsedMemCurrent) == 0);
  OK(cudaMemPoolTrimTo(pool, 0));
  CHECK(attribute(pool, cudaMemPoolAttrReservedMemCurrent) == 0);
  OK(cudaMemPoolDestroy(pool));
  CHECK(cudaMemPoolDestroy(pool) == cudaErrorInvalidValue);
  CHECK(cudaMemPoolDestroy(standard) == cudaErrorInvalidValue);
  OK(cudaDeviceGetMemPool(&current, 0));
  CHECK(current == standard);
  cudaGetLastError();
}

/// What graphs allocate is counted by itself.
static void graphMemory() {
  auto number = [](cudaGraphMemAttributeType which) {
    unsigned long long value = 77;
    OK(cudaDeviceGetGraphMemAttribute(0, which, &value));
    return value;
  };
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  void *memory;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  OK(cudaMallocAsync(&memory, 4096, stream));
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(number(cudaGraphMemAttrUsedMemCurrent) == 0);
  OK(cudaGraphLaunch(exec, stream));
  CHECK(number(cudaGraphMemAttrUsedMemCurrent) == 4096);
  CHECK(number(cudaGraphMemAttrReservedMemCurrent) == 2 << 20);
  OK(cudaFreeAsync(memory, stream));
  OK(cudaStreamSynchronize(stream));
  CHECK(number(cudaGraphMemAttrUsedMemCurrent) == 0);
  CHECK(number(cudaGraphMemAttrUsedMemHigh) == 4096);
  OK(cudaDeviceGraphMemTrim(0));
  CHECK(number(cudaGraphMemAttrReservedMemCurrent) == 0);
  unsigned long long zero = 0;
  OK(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &zero));
  CHECK(number(cudaGraphMemAttrUsedMemHigh) == 0);
  CHECK(cudaDeviceGetGraphMemAttribute(1, cudaGraphMemAttrUsedMemHigh, &zero) ==
        cudaErrorInvalidDevice);
  cudaGetLastError();
}

static void mapped() {
  int isSupported = 0;
  DRIVER(cuDeviceGetAttribute(
      &isSupported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
  CHECK(isSupported == 1);
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  std::size_t piece = 0;
  DRIVER(cuMemGetAllocationGranularity(&piece, &properties,
                                       CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUdeviceptr base;
  DRIVER(cuMemAddressReserve(&base, 4 * piece, 0, 0, 0));
  CUmemGenericAllocationHandle one, two;
  DRIVER(cuMemCreate(&one, piece, &properties, 0));
  DRIVER(cuMemCreate(&two, piece, &properties, 0));
  DRIVER(cuMemMap(base, piece, 0, one, 0));
  CHECK(cuMemMap(base, piece, 0, two, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemMap(base + 4 * piece, piece, 0, two, 0) ==
        CUDA_ERROR_INVALID_VALUE);
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                            CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  DRIVER(cuMemSetAccess(base, piece, &access, 1));
  int *x = reinterpret_cast<int *>(base);
  fill<<<1, 256>>>(x, 1);
  // It grows in place: one buffer of two pieces.
  DRIVER(cuMemMap(base + piece, piece, 0, two, 0));
  DRIVER(cuMemSetAccess(base + piece, piece, &access, 1));
  int ints = static_cast<int>(piece / sizeof(int));
  DRIVER(cuMemsetD32(base + piece - 1024, 5, 512));
  int back[2];
  OK(cudaMemcpy(back, x + ints - 1, sizeof(back), cudaMemcpyDeviceToHost));
  CHECK(back[0] == 5 && back[1] == 5);
  // The same memory at a second address.
  DRIVER(cuMemMap(base + 2 * piece, piece, 0, one, 0));
  DRIVER(cuMemSetAccess(base + 2 * piece, piece, &access, 1));
  OK(cudaMemcpy(back, x + 2 * ints, sizeof(int), cudaMemcpyDefault));
  CHECK(back[0] == 1);
  fill<<<1, 256>>>(x + 2 * ints, 9);
  OK(cudaMemcpy(back, x, sizeof(int), cudaMemcpyDefault));
  CHECK(back[0] == 9);
  cudaPointerAttributes attributes;
  OK(cudaPointerGetAttributes(&attributes, x + 5));
  CHECK(attributes.type == cudaMemoryTypeDevice);
  CHECK(cudaFree(x) == cudaErrorInvalidValue);
  cudaGetLastError();
  unsigned long long flags = 0;
  CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  DRIVER(cuMemGetAccess(&flags, &here, base));
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  // Its memory lives as long as it is mapped.
  DRIVER(cuMemRelease(one));
  CHECK(cuMemRelease(one) == CUDA_ERROR_INVALID_VALUE);
  OK(cudaMemcpy(back, x, sizeof(int), cudaMemcpyDefault));
  CHECK(back[0] == 9);
  CHECK(cuMemUnmap(base, piece / 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAddressFree(base, 4 * piece) == CUDA_ERROR_INVALID_VALUE);
  DRIVER(cuMemUnmap(base, 3 * piece));
  DRIVER(cuMemRelease(two));
  DRIVER(cuMemAddressFree(base, 4 * piece));
}

// PTX that is linked while the program runs.
static void linked() {
  static const char one[] = R"(.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b32 r) twice (.param .b32 x);
.visible .entry run(.param .u64 out)
{
.reg .b32 %r<3>;
.reg .b64 %a;
ld.param.u64 %a, [out];
mov.b32 %r1, 21;
{
.param .b32 x;
.param .b32 r;
st.param.b32 [x], %r1;
call.uni (r), twice, (x);
ld.param.b32 %r2, [r];
}
st.global.b32 [%a], %r2;
ret;
}
)";
  static const char two[] = R"(.version 8.0
.target sm_90
.address_size 64
.visible .func (.param .b32 r) twice (.param .b32 x)
{
.reg .b32 %r<3>;
ld.param.b32 %r1, [x];
shl.b32 %r2, %r1, 1;
st.param.b32 [r], %r2;
ret;
}
)";
  CUlinkState link;
  char log[200] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log))};
  void *image;
  std::size_t bytes = 0;
  DRIVER(cuLinkCreate(2, options, values, &link));
  for (int i = 0; i < 2; ++i)
    DRIVER(cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char *>(two),
                         sizeof(two), "two", 0, nullptr, nullptr));
  CHECK(cuLinkComplete(link, &image, &bytes) == CUDA_ERROR_INVALID_PTX);
  CHECK(std::string(log).find("twice") != std::string::npos);
  DRIVER(cuLinkDestroy(link));
  DRIVER(cuLinkCreate(0, nullptr, nullptr, &link));
  DRIVER(cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char *>(one),
                       sizeof(one), "one", 0, nullptr, nullptr));
  DRIVER(cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char *>(two),
                       sizeof(two), "two", 0, nullptr, nullptr));
  DRIVER(cuLinkComplete(link, &image, &bytes));
  CHECK(bytes > 0);
  CUmodule module;
  CUfunction function;
  DRIVER(cuModuleLoadData(&module, image));
  DRIVER(cuLinkDestroy(link));
  CHECK(cuLinkDestroy(link) == CUDA_ERROR_INVALID_HANDLE);
  DRIVER(cuModuleGetFunction(&function, module, "run"));
  int *out, back = 0;
  OK(cudaMalloc(&out, sizeof(int)));
  void *arguments[] = {&out};
  DRIVER(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments,
                        nullptr));
  OK(cudaMemcpy(&back, out, sizeof(int), cudaMemcpyDefault));
  CHECK(back == 42);
}

int main() {
  linked();
  pools();
  graphMemory();
  mapped();
  std::printf("PASS\n");
}
