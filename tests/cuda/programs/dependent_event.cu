// dependent_event: a launch tells of its trigger by an event, and a launch of
// another stream waits for that: it may overlap the first as a dependent launch
// may, and is held to the same wait.
// status: 2
// stderr: error pdl-wait at .*dependent_event.cu:23: this reads global address
// stderr: of fills\(int\*\) at .*dependent_event.cu:16 writes
// stderr: 6 launches, 6 checked: 1 error, 0 warnings
#include "check.h"

static constexpr int kCount = 256;

__global__ void fills(int *values) {
  cudaTriggerProgrammaticLaunchCompletion();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  // Behind the trigger.
  values[i] = 3 * i;
}

__global__ void copies(const int *values, int *out, bool waits) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (waits)
    cudaGridDependencySynchronize();
  out[i] = values[i];
}

static int *values, *out;

static void run(bool isByTrigger, bool waits) {
  cudaStream_t first, second;
  cudaEvent_t event;
  OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeProgrammaticEvent;
  attribute.val.programmaticEvent.event = event;
  attribute.val.programmaticEvent.flags = 0;
  attribute.val.programmaticEvent.triggerAtBlockStart = 0;
  cudaLaunchConfig_t config = {};
  config.gridDim = kCount / 64;
  config.blockDim = 64;
  config.stream = first;
  config.attrs = &attribute;
  config.numAttrs = isByTrigger;
  OK(cudaLaunchKernelEx(&config, fills, values));
  if (!isByTrigger)
    OK(cudaEventRecord(event, first));
  OK(cudaStreamWaitEvent(second, event, 0));
  copies<<<kCount / 64, 64, 0, second>>>(values, out, waits);
  OK(cudaDeviceSynchronize());
  for (int i = 0; i < kCount; ++i)
    CHECK(out[i] == 3 * i);
}

int main() {
  OK(cudaMallocManaged(&values, kCount * sizeof(int)));
  OK(cudaMallocManaged(&out, kCount * sizeof(int)));
  run(true, false); // the defect
  run(true, true);
  run(false, false);
  std::printf("PASS\n");
  return 0;
}
