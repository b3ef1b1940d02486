// StreamCapture: which streams, which nodes, and what makes it invalid.
#include "cudart/graph/StreamCapture.h"
#include "cudart/CudaError.h"
#include "cudart/Handles.h"

#include <algorithm>
#include <atomic>
#include <set>

namespace kiln::cudart {

static constexpr unsigned kNonBlocking = 1;

/// The captures that are under way; most programs have none.
static std::vector<StreamCapture *> &captures() {
  static auto *all = new std::vector<StreamCapture *>; // NOLINT
  return *all;
}
static std::atomic<int> captureCount{0};

static CaptureMode &threadMode() {
  thread_local CaptureMode mode = CaptureMode::global;
  return mode;
}

StreamCapture::StreamCapture(CudaStream *origin, Graph *graph, bool isOwner,
                             CaptureMode mode)
    : origin_(origin), graph_(graph), isOwner_(isOwner), mode_(mode),
      thread_(std::this_thread::get_id()) {
  static std::atomic<std::uint64_t> count{0};
  id_ = ++count;
}

void StreamCapture::fail(int code, const std::string &why) {
  isValid_ = false;
  throw CudaError(code, why);
}

void StreamCapture::start(CudaStream *stream, Graph *graph, bool isOwner,
                          std::vector<GraphDependency> dependencies,
                          CaptureMode mode) {
  auto capture = std::shared_ptr<StreamCapture>(
      new StreamCapture(stream, graph, isOwner, mode));
  capture->streams_ = {stream};
  captures().push_back(capture.get());
  ++captureCount;
  graph->isCaptured = true;
  stream->point = {capture, std::move(dependencies)};
}

/// Throws where no capture can begin there.
static void checkBegin(CudaStream *stream, CaptureMode mode) {
  if (mode < CaptureMode::global || mode > CaptureMode::relaxed)
    throw CudaError(kInvalidValue, "there is no such mode of capture");
  if (!stream)
    throw CudaError(kCaptureUnsupported,
                    "the legacy default stream cannot be captured; capture a "
                    "stream of the program's");
  if (stream->point.capture)
    throw CudaError(kIllegalState, "the stream is being captured already");
}

void StreamCapture::begin(CudaStream *stream, CaptureMode mode) {
  std::lock_guard lock(graphMutex());
  checkBegin(stream, mode);
  start(stream, new Graph, true, {}, mode);
}

void StreamCapture::begin(CudaStream *stream, Graph &graph,
                          std::vector<GraphDependency> dependencies,
                          CaptureMode mode) {
  std::lock_guard lock(graphMutex());
  checkBegin(stream, mode);
  for (const GraphDependency &dependency : dependencies)
    if (dependency.node->graph != &graph)
      throw CudaError(kInvalidValue,
                      "a capture depends on a node of another graph");
  if (graph.isCaptured)
    throw CudaError(kInvalidValue, "another capture is adding to the graph");
  start(stream, &graph, false, std::move(dependencies), mode);
}

/// Whether every stream's last nodes are behind what the first one ends with.
bool StreamCapture::isJoined() const {
  std::set<const GraphNode *> joined;
  std::vector<const GraphNode *> open;
  auto reach = [&](const GraphNode *node) {
    if (joined.insert(node).second)
      open.push_back(node);
  };
  for (const GraphDependency &last : origin_->point.dependencies)
    reach(last.node);
  while (!open.empty()) {
    const GraphNode *node = open.back();
    open.pop_back();
    for (const GraphDependency &dependency : node->dependencies)
      reach(dependency.node);
  }
  auto areJoined = [&](const std::vector<GraphDependency> &last) {
    return std::all_of(last.begin(), last.end(),
                       [&](const GraphDependency &one) {
                         return joined.contains(one.node);
                       });
  };
  return areJoined(destroyed_) &&
         std::all_of(streams_.begin(), streams_.end(),
                     [&](const CudaStream *stream) {
                       return areJoined(stream->point.dependencies);
                     });
}

void StreamCapture::leave() {
  std::erase(captures(), this);
  --captureCount;
  graph_->isCaptured = false;
  std::vector<CudaStream *> streams = std::move(streams_);
  streams_.clear();
  for (CudaStream *stream : streams) // the last one takes this along
    if (stream != origin_)
      stream->point = {};
  auto self = std::exchange(origin_->point, {}).capture;
}

Graph *StreamCapture::end(CudaStream *stream) {
  std::lock_guard lock(graphMutex());
  if (!stream || !stream->point.capture)
    throw CudaError(kIllegalState, "the stream is not being captured");
  std::shared_ptr<StreamCapture> capture = stream->point.capture;
  if (capture->origin_ != stream)
    capture->fail(kCaptureUnmatched,
                  "the capture did not begin in this stream");
  if (capture->mode_ != CaptureMode::relaxed &&
      capture->thread_ != std::this_thread::get_id())
    throw CudaError(kCaptureWrongThread,
                    "the capture was begun by another thread, and not in "
                    "relaxed mode");
  bool isJoined = capture->isJoined(), isValid = capture->isValid_;
  capture->leave();
  if (isValid && isJoined)
    return capture->graph_;
  if (capture->isOwner_)
    delete capture->graph_;
  if (!isValid)
    throw CudaError(kCaptureInvalidated,
                    "a call before has made the capture invalid");
  throw CudaError(kCaptureUnjoined,
                  "a stream that joined the capture has work that the stream "
                  "where it began does not wait for");
}

bool StreamCapture::isIntoGraph(const CudaStream *stream) {
  std::lock_guard lock(graphMutex());
  return stream && stream->point.capture && !stream->point.capture->isOwner_;
}

CaptureStatus StreamCapture::statusOf(const CudaStream *stream) {
  if (!captureCount || !stream)
    return CaptureStatus::none;
  std::lock_guard lock(graphMutex());
  if (!stream->point.capture)
    return CaptureStatus::none;
  return stream->point.capture->isValid_ ? CaptureStatus::active
                                         : CaptureStatus::invalidated;
}

CaptureMode StreamCapture::exchangeMode(CaptureMode mode) {
  if (mode < CaptureMode::global || mode > CaptureMode::relaxed)
    throw CudaError(kInvalidValue, "there is no such mode of capture");
  return std::exchange(threadMode(), mode);
}

StreamCapture *StreamCapture::of(CudaStream *stream) {
  if (!captureCount)
    return nullptr;
  std::lock_guard lock(graphMutex());
  if (!stream) {
    // It would wait for every blocking stream.
    for (StreamCapture *capture : captures())
      for (const CudaStream *one : capture->streams_)
        if (!(one->flags & kNonBlocking))
          capture->fail(kCaptureImplicit,
                        "the legacy default stream waits for a stream that is "
                        "being captured, which is not cudaStreamNonBlocking");
    return nullptr;
  }
  StreamCapture *capture = stream->point.capture.get();
  if (capture && !capture->isValid_)
    throw CudaError(kCaptureInvalidated,
                    "a call before has made the capture invalid");
  return capture;
}

void StreamCapture::checkPermitted() {
  if (!captureCount || threadMode() == CaptureMode::relaxed)
    return;
  std::lock_guard lock(graphMutex());
  for (StreamCapture *capture : captures()) {
    bool isOwn = capture->thread_ == std::this_thread::get_id();
    bool isForbidden = isOwn ? capture->mode_ != CaptureMode::relaxed
                             : capture->mode_ == CaptureMode::global &&
                                   threadMode() == CaptureMode::global;
    if (isForbidden)
      capture->fail(kCaptureUnsupported,
                    "not permitted while a stream is being captured, unless "
                    "with cudaStreamCaptureModeRelaxed; the capture is invalid");
  }
}

void StreamCapture::checkMayWait(const CudaStream *stream) {
  if (!captureCount)
    return;
  std::lock_guard lock(graphMutex());
  for (StreamCapture *capture : captures()) {
    auto waits = [&](const CudaStream *one) {
      return one == stream ||
             (!stream && !(one->flags & kNonBlocking));
    };
    if (std::any_of(capture->streams_.begin(), capture->streams_.end(), waits))
      capture->fail(kCaptureUnsupported,
                    "a stream that is being captured cannot be waited for; the "
                    "capture is invalid");
  }
}

void StreamCapture::checkMayWait() {
  if (!captureCount)
    return;
  std::lock_guard lock(graphMutex());
  for (StreamCapture *capture : captures())
    capture->fail(kCaptureUnsupported,
                  "all streams cannot be waited for while one is being "
                  "captured; the capture is invalid");
}

GraphNode &StreamCapture::add(CudaStream *stream, Work work) {
  std::lock_guard lock(graphMutex());
  std::vector<GraphDependency> dependencies = stream->point.dependencies;
  auto *kernel = std::get_if<KernelWork>(&work);
  for (GraphDependency &dependency : dependencies) {
    bool isAfterKernel =
        std::holds_alternative<KernelWork>(dependency.node->work);
    if (!kernel || !isAfterKernel)
      dependency.edge = {};
    else if (kernel->launch.isDependent)
      dependency.edge = {.from_port = GraphEdge::programmatic,
                         .type = GraphEdge::dependentLaunch};
  }
  GraphNode &node = graph_->add(std::move(work), std::move(dependencies));
  stream->point.dependencies = {{&node, {}}};
  return node;
}

void StreamCapture::record(CudaStream *stream, CudaEvent *event,
                           bool isExternal) {
  if (isExternal)
    add(stream, EventRecordWork{event});
  else
    event->point = stream->point;
}

void StreamCapture::recordAt(CudaStream *stream, CudaEvent *event,
                             GraphEdge::Port port) {
  event->point = stream->point;
  for (GraphDependency &dependency : event->point.dependencies)
    dependency.edge = {.from_port = port, .type = GraphEdge::dependentLaunch};
}

void StreamCapture::depend(CudaStream *stream,
                           std::vector<GraphDependency> dependencies,
                           bool isReplaced) {
  auto &own = stream->point.dependencies;
  for (const GraphDependency &one : dependencies)
    if (one.node->graph != graph_)
      throw CudaError(kInvalidValue,
                      "a capture depends on a node of another graph");
  if (isReplaced)
    own.clear();
  for (const GraphDependency &one : dependencies)
    if (std::none_of(own.begin(), own.end(), [&](const auto &there) {
          return there.node == one.node;
        }))
      own.push_back(one);
}

void StreamCapture::wait(CudaStream *stream, CudaEvent *event,
                         bool isExternal) {
  if (!captureCount && !event->point.capture)
    return perform(EventWaitWork{event}, stream ? stream->stream : Stream());
  std::lock_guard lock(graphMutex());
  StreamCapture *capture = of(stream);
  StreamCapture *other = event->point.capture.get();
  if (isExternal && capture) {
    capture->add(stream, EventWaitWork{event});
    return;
  }
  if (other && other->streams_.empty())
    other = nullptr; // it has ended
  if (!capture && !other) {
    if (event->point.capture)
      throw CudaError(kCapturedEvent,
                      "the event was last recorded in a capture that is over");
    return perform(EventWaitWork{event}, stream ? stream->stream : Stream());
  }
  if (!other)
    capture->fail(kCaptureIsolation,
                  "a stream that is being captured waits for an event that was "
                  "recorded outside the capture");
  if (!other->isValid_)
    throw CudaError(kCaptureInvalidated,
                    "a call before has made the capture invalid");
  if (capture && capture != other) {
    capture->isValid_ = false;
    other->fail(kCaptureMerge, "a stream of one capture waits for an event of "
                               "another capture");
  }
  if (!stream)
    other->fail(kCaptureImplicit, "the legacy default stream waits for an "
                                  "event of a stream that is being captured");
  if (!capture) {
    stream->point.capture = event->point.capture;
    other->streams_.push_back(stream);
  }
  other->depend(stream, event->point.dependencies, false);
}

void StreamCapture::invalidate(CudaStream *stream) {
  std::lock_guard lock(graphMutex());
  if (stream && stream->point.capture)
    stream->point.capture->isValid_ = false;
}

void StreamCapture::forget(CudaStream *stream) {
  std::lock_guard lock(graphMutex());
  std::shared_ptr<StreamCapture> capture = stream->point.capture;
  if (!capture)
    return;
  if (capture->origin_ != stream) {
    const auto &last = stream->point.dependencies;
    capture->destroyed_.insert(capture->destroyed_.end(), last.begin(),
                               last.end());
    std::erase(capture->streams_, stream);
    stream->point = {};
    return;
  }
  capture->leave();
  if (capture->isOwner_)
    delete capture->graph_;
}

} // namespace kiln::cudart
