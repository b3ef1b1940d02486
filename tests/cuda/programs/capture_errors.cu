// capture_errors: what a capture does not permit, and the errors that say so.
// status: 0
// stderr: cudaMalloc: not permitted while a stream is being captured
#include "check.h"

#include <thread>

__global__ void nothing() {}

#define IS(call, error)                                                        \
  do {                                                                         \
    cudaError_t got = call;                                                    \
    if (got != error) {                                                        \
      std::printf("%s:%d: %s is %s, not %s\n", __FILE__, __LINE__, #call,      \
                  cudaGetErrorName(got), #error);                              \
      std::exit(1);                                                            \
    }                                                                          \
    cudaGetLastError();                                                        \
  } while (false)

static cudaStream_t one, two, free_one;
static cudaEvent_t event;

static void begin(cudaStream_t stream,
                  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
  OK(cudaStreamBeginCapture(stream, mode));
}

static void end(cudaStream_t stream, cudaError_t error) {
  cudaGraph_t graph;
  IS(cudaStreamEndCapture(stream, &graph), error);
  CHECK((error == cudaSuccess) == (graph != nullptr));
  if (graph)
    OK(cudaGraphDestroy(graph));
}

int main() {
  OK(cudaStreamCreate(&one));
  OK(cudaStreamCreate(&two));
  OK(cudaStreamCreateWithFlags(&free_one, cudaStreamNonBlocking));
  OK(cudaEventCreate(&event));
  void *memory;
  OK(cudaMalloc(&memory, 64));

  IS(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal),
     cudaErrorStreamCaptureUnsupported);
  IS(cudaStreamBeginCapture(one, cudaStreamCaptureMode(7)),
     cudaErrorInvalidValue);
  end(one, cudaErrorIllegalState);

  begin(one);
  IS(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal),
     cudaErrorIllegalState);
  // A call that is not permitted makes it invalid until it ends.
  void *more;
  IS(cudaMalloc(&more, 64), cudaErrorStreamCaptureUnsupported);
  nothing<<<1, 1, 0, one>>>();
  IS(cudaGetLastError(), cudaErrorStreamCaptureInvalidated);
  IS(cudaMemsetAsync(memory, 0, 64, one), cudaErrorStreamCaptureInvalidated);
  cudaStreamCaptureStatus status;
  OK(cudaStreamIsCapturing(one, &status));
  CHECK(status == cudaStreamCaptureStatusInvalidated);
  end(one, cudaErrorStreamCaptureInvalidated);
  nothing<<<1, 1, 0, one>>>();
  OK(cudaGetLastError());

  // In relaxed mode it is.
  begin(one, cudaStreamCaptureModeRelaxed);
  OK(cudaMalloc(&more, 64));
  OK(cudaFree(more));
  end(one, cudaSuccess);
  // And for a thread that says so.
  begin(one);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  OK(cudaThreadExchangeStreamCaptureMode(&mode));
  CHECK(mode == cudaStreamCaptureModeGlobal);
  OK(cudaMalloc(&more, 64));
  OK(cudaThreadExchangeStreamCaptureMode(&mode));
  end(one, cudaSuccess);
  // Other threads: a global capture is theirs, too.
  for (auto which : {cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeGlobal}) {
    begin(one, which);
    bool is_local = which == cudaStreamCaptureModeThreadLocal;
    std::thread([&] {
      IS(cudaMalloc(&more, 64),
         (is_local ? cudaSuccess : cudaErrorStreamCaptureUnsupported));
      cudaGraph_t graph;
      IS(cudaStreamEndCapture(one, &graph), cudaErrorStreamCaptureWrongThread);
    }).join();
    end(one, is_local ? cudaSuccess : cudaErrorStreamCaptureInvalidated);
  }

  // The host cannot wait for what is not done.
  for (auto *wait : {cudaStreamSynchronize, cudaStreamQuery}) {
    begin(one, cudaStreamCaptureModeRelaxed);
    IS(wait(one), cudaErrorStreamCaptureUnsupported);
    end(one, cudaErrorStreamCaptureInvalidated);
  }
  begin(free_one);
  IS(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
  end(free_one, cudaErrorStreamCaptureInvalidated);
  begin(free_one, cudaStreamCaptureModeRelaxed);
  OK(cudaEventRecord(event, free_one));
  IS(cudaEventQuery(event), cudaErrorCapturedEvent);
  IS(cudaEventSynchronize(event), cudaErrorCapturedEvent);
  end(free_one, cudaSuccess);

  // The legacy stream would wait for a blocking one; not for this one.
  begin(one, cudaStreamCaptureModeRelaxed);
  IS(cudaMemsetAsync(memory, 0, 64, nullptr), cudaErrorStreamCaptureImplicit);
  end(one, cudaErrorStreamCaptureInvalidated);
  begin(free_one, cudaStreamCaptureModeRelaxed);
  OK(cudaMemsetAsync(memory, 0, 64, nullptr));
  end(free_one, cudaSuccess);

  // Streams that join.
  begin(one);
  OK(cudaEventRecord(event, one));
  OK(cudaStreamWaitEvent(two, event, 0));
  nothing<<<1, 1, 0, two>>>();
  cudaGraph_t graph;
  IS(cudaStreamEndCapture(two, &graph), cudaErrorStreamCaptureUnmatched);
  end(one, cudaErrorStreamCaptureInvalidated);
  begin(one);
  OK(cudaEventRecord(event, one));
  OK(cudaStreamWaitEvent(two, event, 0));
  nothing<<<1, 1, 0, two>>>();
  end(one, cudaErrorStreamCaptureUnjoined);
  OK(cudaStreamIsCapturing(two, &status));
  CHECK(status == cudaStreamCaptureStatusNone);
  // A stream that joined may be destroyed: what it did has to be waited for.
  for (bool isJoined : {true, false}) {
    cudaStream_t three;
    OK(cudaStreamCreateWithFlags(&three, cudaStreamNonBlocking));
    begin(one);
    OK(cudaEventRecord(event, one));
    OK(cudaStreamWaitEvent(three, event, 0));
    nothing<<<1, 1, 0, three>>>();
    OK(cudaEventRecord(event, three));
    if (isJoined)
      OK(cudaStreamWaitEvent(one, event, 0));
    OK(cudaStreamDestroy(three));
    end(one, isJoined ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
  }
  // Whoever captures into a graph need not ask for it at the end.
  begin(one);
  IS(cudaStreamEndCapture(one, nullptr), cudaErrorInvalidValue);
  end(one, cudaSuccess);
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaStreamBeginCaptureToGraph(one, graph, nullptr, nullptr, 0,
                                   cudaStreamCaptureModeGlobal));
  nothing<<<1, 1, 0, one>>>();
  OK(cudaStreamEndCapture(one, nullptr));
  std::size_t nodes = 0;
  OK(cudaGraphGetNodes(graph, nullptr, &nodes));
  CHECK(nodes == 1);
  OK(cudaGraphDestroy(graph));
  // Work of outside.
  OK(cudaEventRecord(event, two));
  begin(one);
  IS(cudaStreamWaitEvent(one, event, 0), cudaErrorStreamCaptureIsolation);
  end(one, cudaErrorStreamCaptureInvalidated);
  // Two captures are two graphs.
  begin(one);
  begin(two);
  OK(cudaEventRecord(event, one));
  IS(cudaStreamWaitEvent(two, event, 0), cudaErrorStreamCaptureMerge);
  end(two, cudaErrorStreamCaptureInvalidated);
  end(one, cudaErrorStreamCaptureInvalidated);

  OK(cudaMemset(memory, 0, 64));
  OK(cudaStreamSynchronize(one));
  std::printf("PASS\n");
}
