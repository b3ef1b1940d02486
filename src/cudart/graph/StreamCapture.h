// StreamCapture: streams whose work becomes a graph instead of being done.
//
// A capture begins in one stream and takes in others, which wait for an event
// of a stream that is in it. What would tie it to work outside makes it invalid
// until it ends, and so does a call that is not permitted meanwhile; the errors
// are CUDA's.
#pragma once

#include "cudart/StreamHandles.h"
#include "cudart/graph/Graph.h"

#include <span>
#include <thread>

namespace kiln::cudart {

enum class CaptureMode : int { global = 0, threadLocal = 1, relaxed = 2 };
enum class CaptureStatus : int { none = 0, active = 1, invalidated = 2 };

class StreamCapture {
public:
  // What programs ask for. All throw CudaError.
  static void begin(CudaStream *stream, CaptureMode mode);
  /// Into a graph of the program's.
  static void begin(CudaStream *stream, Graph &graph,
                    std::vector<GraphDependency> dependencies,
                    CaptureMode mode);
  /// The graph, which is the caller's from now on.
  static Graph *end(CudaStream *stream);
  /// Whether what is captured goes to a graph that the program has.
  static bool isIntoGraph(const CudaStream *stream);
  static CaptureStatus statusOf(const CudaStream *stream);
  /// Of this thread; returns the mode it had.
  static CaptureMode exchangeMode(CaptureMode mode);

  // What the functions of CUDA's interface do before their work.
  /// Whether the work of a stream goes to a graph. Throws where its capture is
  /// invalid. null: the legacy default stream, which no capture allows beside
  /// it.
  static StreamCapture *of(CudaStream *stream);
  /// Throws where a call that a capture does not permit is made during one.
  static void checkPermitted();
  /// Likewise of a call that waits for a stream, or for all of them.
  static void checkMayWait(const CudaStream *stream);
  static void checkMayWait();

  GraphNode &add(CudaStream *stream, Work work);
  /// `isExternal`: a node that records the event whenever the graph runs.
  void record(CudaStream *stream, CudaEvent *event, bool isExternal);
  /// The same for an event in mid-kernel: what waits for it is a dependent
  /// launch.
  void recordAt(CudaStream *stream, CudaEvent *event, GraphEdge::Port port);
  /// Let the stream wait for the event; it joins its capture where it is in
  /// none.
  static void wait(CudaStream *stream, CudaEvent *event, bool isExternal);
  /// What was asked for cannot be captured.
  static void invalidate(CudaStream *stream);
  /// The stream is about to be destroyed.
  static void forget(CudaStream *stream);

  /// cudaStreamUpdateCaptureDependencies
  void depend(CudaStream *stream, std::vector<GraphDependency> dependencies,
              bool isReplaced);
  Graph *graph() { return graph_; }
  std::uint64_t id() const { return id_; }
  bool isValid() const { return isValid_; }

private:
  StreamCapture(CudaStream *origin, Graph *graph, bool isOwner,
                CaptureMode mode);
  static void start(CudaStream *stream, Graph *graph, bool isOwner,
                    std::vector<GraphDependency> dependencies,
                    CaptureMode mode);
  [[noreturn]] void fail(int code, const std::string &why);
  bool isJoined() const;
  void leave();

  CudaStream *origin_;
  Graph *graph_;
  bool isOwner_; ///< else the graph is the program's
  CaptureMode mode_;
  std::thread::id thread_;
  std::uint64_t id_;
  bool isValid_ = true;
  std::vector<CudaStream *> streams_;
  std::vector<GraphDependency> destroyed_; ///< what streams ended with that are gone
};

} // namespace kiln::cudart
