// hopper: clusters at launch, and TMA through the driver's entry point.
// status: 0
#include "check.h"

#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda/barrier>

namespace cg = cooperative_groups;

__global__ void ranks(int *out) {
  __shared__ int own;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0)
    own = static_cast<int>(cluster.block_rank());
  cluster.sync();
  unsigned other = (cluster.block_rank() + 1) % cluster.num_blocks();
  int read = *cluster.map_shared_rank(&own, other);
  cluster.sync();
  if (threadIdx.x == 0)
    out[blockIdx.x] = read;
}

__global__ void load_box(const __grid_constant__ CUtensorMap map, float *out) {
  __shared__ alignas(128) float tile[8 * 16];
  __shared__ alignas(8) unsigned long long barrier;
  auto address = [](void *p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
  };
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(
        address(&barrier)));
    asm volatile("fence.proxy.async.shared::cta;");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" ::"r"(
            address(&barrier)));
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::"
                 "complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
                     address(tile)),
                 "l"(&map), "r"(address(&barrier)), "r"(16), "r"(8)
                 : "memory");
  }
  unsigned done = 0;
  while (!done)
    asm volatile("{\n.reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n"
                 "selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(address(&barrier))
                 : "memory");
  out[threadIdx.x] = tile[threadIdx.x];
}

int main() {
  int *out;
  OK(cudaMallocManaged(&out, 8 * sizeof(int)));
  cudaLaunchConfig_t config = {};
  config.gridDim = 8;
  config.blockDim = 32;
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 4;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  OK(cudaLaunchKernelEx(&config, ranks, out));
  OK(cudaDeviceSynchronize());
  for (int i = 0; i < 8; ++i)
    CHECK(out[i] == (i + 1) % 4);
  attribute.val.clusterDim.x = 3;
  CHECK(cudaLaunchKernelEx(&config, ranks, out) == cudaErrorInvalidClusterSize);
  cudaGetLastError();

  void *function;
  cudaDriverEntryPointQueryResult found;
  OK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                      12000, cudaEnableDefault, &found));
  CHECK(found == cudaDriverEntryPointSuccess && function);
  auto *encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  float *matrix, *box;
  OK(cudaMallocManaged(&matrix, 64 * 64 * sizeof(float)));
  OK(cudaMallocManaged(&box, 8 * 16 * sizeof(float)));
  for (int i = 0; i < 64 * 64; ++i)
    matrix[i] = i;
  CUtensorMap map;
  cuuint64_t dims[2] = {64, 64}, strides[1] = {256};
  cuuint32_t size[2] = {16, 8}, steps[2] = {1, 1};
  CHECK(encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, matrix, dims, strides,
               size, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
               CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  load_box<<<1, 128>>>(map, box);
  OK(cudaDeviceSynchronize());
  for (int i = 0; i < 128; ++i)
    CHECK(box[i] == (8 + i / 16) * 64 + 16 + i % 16);
  std::printf("PASS\n");
  return 0;
}
