// dependent: the backward pass of an attention, whose second kernel may begin
// before the first has ended (flash-attention, issue 2481): where it does not
// wait, its gradients are wrong and that is found at its line; where it does,
// nothing is.
// status: 2
// stderr: launch 2 of gradients\(float const\*, float const\*, float\*, bool\)
// stderr: error pdl-wait at .*dependent.cu:29: this reads global address
// stderr: of sums\(float const\*, float\*\) at .*dependent.cu:21 writes; the launch
// stderr: 10 launches, 10 checked: 1 error, 0 warnings
#include "check.h"

static constexpr int kRows = 512, kWidth = 16;

/// The sum of each row, as dO * O is added up.
__global__ void sums(const float *x, float *sum) {
  cudaTriggerProgrammaticLaunchCompletion();
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float all = 0;
  for (int i = 0; i < kWidth; ++i)
    all += x[row * kWidth + i];
  sum[row] = all;
}

__global__ void gradients(const float *x, const float *sum, float *out,
                          bool waits) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (waits)
    cudaGridDependencySynchronize();
  float mean = sum[row];
  for (int i = 0; i < kWidth; ++i)
    out[row * kWidth + i] = x[row * kWidth + i] - mean / kWidth;
}

static float *x, *sum, *out;

/// One kernel behind the other, with the attribute or without.
static void run(bool isDependent, bool waits, bool hasEvent) {
  cudaStream_t stream;
  cudaEvent_t event;
  OK(cudaStreamCreate(&stream));
  OK(cudaEventCreate(&event));
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = isDependent;
  cudaLaunchConfig_t config = {};
  config.gridDim = kRows / 128;
  config.blockDim = 128;
  config.stream = stream;
  for (int row = 0; row < kRows; ++row)
    sum[row] = kWidth; // of an earlier step
  sums<<<kRows / 128, 128, 0, stream>>>(x, sum);
  if (hasEvent)
    OK(cudaEventRecord(event, stream));
  config.attrs = &attribute;
  config.numAttrs = 1;
  OK(cudaLaunchKernelEx(&config, gradients, (const float *)x,
                        (const float *)sum, out, waits));
  OK(cudaStreamSynchronize(stream));
  // The second is at its sums before the first has written them.
  bool isStale = isDependent && !waits && !hasEvent;
  float mean = isStale ? 1 : (kWidth - 1) / 2.f;
  for (int i = 0; i < kRows * kWidth; ++i)
    CHECK(out[i] == i % kWidth - mean);
}

int main() {
  OK(cudaMallocManaged(&x, kRows * kWidth * sizeof(float)));
  OK(cudaMallocManaged(&sum, kRows * sizeof(float)));
  OK(cudaMallocManaged(&out, kRows * kWidth * sizeof(float)));
  for (int i = 0; i < kRows * kWidth; ++i)
    x[i] = i % kWidth;
  run(true, false, false); // the defect
  run(true, true, false);
  run(false, false, false);
  run(true, false, true); // the event stands between
  run(false, true, false);
  std::printf("PASS\n");
  return 0;
}
