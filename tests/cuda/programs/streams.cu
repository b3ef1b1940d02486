// streams: streams and events; kernels that wait for each other, and for the
// host.
// status: 0
// stderr: cudaStreamQuery was called in a function of the host
#include "check.h"

#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

__global__ void add(int *x, int by) { atomicAdd(x, by); }

__global__ void wait_and_set(volatile int *wanted, volatile int *set) {
  while (*wanted == 0)
    ;
  __threadfence_system();
  *set = 1;
}

static void count(void *data) { ++*static_cast<int *>(data); }

// A function of the host that wants a lock, and asks what it may not.
static std::mutex lock;
static cudaError_t answer;
static void take_lock(void *stream) {
  std::lock_guard<std::mutex> guard(lock);
  answer = cudaStreamQuery(static_cast<cudaStream_t>(stream));
}

int main() {
  cudaStream_t one, two;
  OK(cudaStreamCreate(&one));
  OK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
  cudaEvent_t begin, end;
  OK(cudaEventCreate(&begin));
  OK(cudaEventCreate(&end));
  int *x;
  OK(cudaMallocManaged(&x, 4 * sizeof(int)));
  x[0] = x[1] = x[2] = x[3] = 0;
  OK(cudaEventRecord(begin, one));
  for (int i = 0; i < 10; ++i)
    add<<<1, 32, 0, one>>>(x, 1);
  OK(cudaEventRecord(end, one));
  OK(cudaStreamWaitEvent(two, end, 0));
  add<<<1, 1, 0, two>>>(x, 1000);
  int called = 0;
  OK(cudaLaunchHostFunc(two, count, &called));
  OK(cudaStreamSynchronize(two));
  CHECK(x[0] == 1320 && called == 1);
  OK(cudaEventSynchronize(end));
  float milliseconds = -1;
  OK(cudaEventElapsedTime(&milliseconds, begin, end));
  CHECK(milliseconds >= 0);
  OK(cudaEventQuery(end));

  // Whoever holds that lock may put more into the stream.
  {
    std::lock_guard<std::mutex> guard(lock);
    OK(cudaLaunchHostFunc(one, take_lock, one));
    add<<<1, 1, 0, one>>>(x, -1000);
    CHECK(cudaStreamQuery(one) == cudaErrorNotReady && x[0] == 1320);
  }
  OK(cudaStreamSynchronize(one));
  CHECK(answer == cudaErrorNotPermitted && x[0] == 320);
  x[0] = 1320;

  // Two kernels that each wait for the other's number, the first before the
  // second was launched.
  cudaStream_t three;
  OK(cudaStreamCreateWithFlags(&three, cudaStreamNonBlocking));
  wait_and_set<<<1, 1, 0, two>>>(x + 1, x + 2);
  CHECK(cudaStreamQuery(two) == cudaErrorNotReady);
  wait_and_set<<<1, 1, 0, three>>>(x + 3, x + 1);
  CHECK(cudaStreamQuery(three) == cudaErrorNotReady);
  // What is behind it waits, too.
  add<<<1, 1, 0, two>>>(x, 1);
  CHECK(x[0] == 1320);
  // The host lets them go.
  *static_cast<volatile int *>(x + 3) = 1;
  OK(cudaDeviceSynchronize());
  CHECK(x[2] == 1 && x[0] == 1321);

  // The host waits for a kernel that waits for the host, without asking CUDA.
  x[1] = x[2] = 0;
  wait_and_set<<<1, 1, 0, two>>>(x + 1, x + 2);
  *static_cast<volatile int *>(x + 1) = 1;
  while (*static_cast<volatile int *>(x + 2) == 0)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  OK(cudaStreamDestroy(one));
  OK(cudaStreamDestroy(two));
  OK(cudaStreamDestroy(three));
  OK(cudaEventDestroy(begin));

  // Several host threads.
  std::vector<std::thread> threads;
  x[0] = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      cudaStream_t own;
      OK(cudaStreamCreate(&own));
      for (int i = 0; i < 5; ++i)
        add<<<2, 32, 0, own>>>(x, 1);
      OK(cudaStreamSynchronize(own));
      OK(cudaStreamDestroy(own));
    });
  for (std::thread &thread : threads)
    thread.join();
  OK(cudaDeviceSynchronize());
  CHECK(x[0] == 4 * 5 * 64);
  std::printf("PASS\n");
  return 0;
}
