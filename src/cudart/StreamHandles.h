// StreamHandles: streams and events as programs hold them.
#pragma once

#include "cudart/graph/GraphEdge.h"
#include "cudart/graph/Work.h"
#include "kiln/run/buffer.h"

#include <array>
#include <map>
#include <memory>
#include <vector>

namespace kiln::cudart {

class StreamCapture;

/// What a stream or an event has to do with a capture: what comes next depends
/// on these nodes.
struct CapturePoint {
  std::shared_ptr<StreamCapture> capture; ///< null: none
  std::vector<GraphDependency> dependencies;
};

} // namespace kiln::cudart

struct CudaStream {
  kiln::Stream stream;
  unsigned flags = 0;
  int priority = 0;
  unsigned long long id = 0;
  /// What was set of cudaStreamSetAttribute's, by its number.
  std::map<int, std::array<std::byte, 64>> attributes = {};
  kiln::cudart::CapturePoint point = {};
};

struct CudaEvent {
  kiln::Event event;
  unsigned flags = 0;
  bool isRecorded = false;
  kiln::cudart::CapturePoint point = {};
};

namespace kiln::cudart {

/// The stream that a program's handle means: its own, the thread's for
/// cudaStreamPerThread, and for 0 where the program was compiled so; null for
/// the legacy default stream. Throws InvalidHandle.
CudaStream *streamHandleOf(CudaStream *stream);
/// The device's stream behind it.
Stream streamOf(CudaStream *stream);
/// Whether 0 means the thread's default stream in the call at hand.
bool &usesThreadStream();
/// Put work into the stream, or into the graph that it is captured in.
void submit(CudaStream *stream, Work work);

} // namespace kiln::cudart
