// SPDX-License-Identifier: Apache-2.0
#include "capture.hpp"

#include <algorithm>
#include <atomic>
#include <set>

#include "graphs.hpp"
#include "process.hpp"

namespace manyscale::cudart {

namespace {

std::atomic<std::uint64_t> captures_begun{0};

void add_missing(std::vector<GraphNode*>& to, const std::vector<GraphNode*>& from) {
  for (GraphNode* node : from)
    if (std::ranges::find(to, node) == to.end()) to.push_back(node);
}

Error begin(Stream& stream, Graph* graph, std::vector<GraphNode*> after) {
  if (stream.number == 0) return Error::capture_unsupported;  // the legacy default stream cannot be captured
  if (stream.capture != nullptr) return Error::illegal_state;
  auto capture = std::make_shared<Capture>();
  capture->owns_graph = graph == nullptr;
  capture->graph = graph != nullptr ? graph : create_graph();
  capture->origin = &stream;
  capture->streams = {&stream};
  capture->number = ++captures_begun;
  stream.capture = std::move(capture);
  stream.last_nodes = std::move(after);
  return Error::success;
}

// Every stream that took part was joined again: its last nodes are behind the first stream's.
bool all_joined(const Capture& capture) {
  std::set<const GraphNode*> reached;
  std::vector<const GraphNode*> open(capture.origin->last_nodes.begin(), capture.origin->last_nodes.end());
  while (!open.empty()) {
    const GraphNode* node = open.back();
    open.pop_back();
    if (reached.insert(node).second)
      open.insert(open.end(), node->dependencies.begin(), node->dependencies.end());
  }
  const auto is_joined = [&](const std::vector<GraphNode*>& nodes) {
    return std::ranges::all_of(nodes, [&](const GraphNode* node) { return reached.contains(node); });
  };
  return is_joined(capture.left) && std::ranges::all_of(capture.streams, [&](const Stream* stream) {
           return is_joined(stream->last_nodes);
         });
}

Error end(Stream& stream, Graph** graph) {
  if (stream.capture == nullptr) return Error::illegal_state;
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture->origin != &stream) return Error::capture_unmatched;
  const bool joined = all_joined(*capture);
  for (Stream* each : capture->streams) {
    each->capture.reset();
    each->last_nodes.clear();
  }
  if (joined && !capture->invalidated) {
    *graph = capture->graph;
    return Error::success;
  }
  if (capture->owns_graph) destroy_graph(capture->graph);
  *graph = nullptr;
  return capture->invalidated ? Error::capture_invalidated : Error::capture_unjoined;
}

Error begin_in_graph(Stream* handle, Graph* graph, GraphNode* const* after, std::size_t count,
                     DefaultStream when_null) {
  Graph* found = find_graph(graph);
  if (found == nullptr || (count != 0 && after == nullptr)) return Error::invalid_value;
  return with_stream(handle, when_null,
                     [&](Stream& stream) { return begin(stream, found, {after, after + count}); });
}

}  // namespace

Error forbid_in_capture(Stream& stream) {
  stream.capture->invalidated = true;
  return Error::capture_unsupported;
}

Error capture_operation(Stream& stream, Operation operation, Wait wait) {
  if (wait == Wait::yes) return forbid_in_capture(stream);
  if (stream.capture->invalidated) return Error::capture_invalidated;
  GraphNode& node = add_node(*stream.capture->graph, std::move(operation), stream.last_nodes);
  stream.last_nodes = {&node};
  return Error::success;
}

Error capture_record(Stream& stream, Event& event) {
  event.capture = stream.capture;
  event.nodes = stream.last_nodes;
  return Error::success;
}

Error capture_wait(Stream& stream, Event& event) {
  if (event.capture == nullptr) {
    stream.capture->invalidated = true;
    return Error::capture_isolation;
  }
  if (event.capture->origin == nullptr || event.capture->origin->capture != event.capture) {
    // That capture is over: the event stands for nothing.
    return stream.capture == nullptr ? Error::captured_event : Error::capture_isolation;
  }
  if (stream.capture == nullptr) {
    if (stream.number == 0) return Error::capture_implicit;
    stream.capture = event.capture;
    stream.last_nodes = event.nodes;
    stream.capture->streams.push_back(&stream);
    return Error::success;
  }
  if (stream.capture != event.capture) {
    stream.capture->invalidated = event.capture->invalidated = true;
    return Error::capture_merge;
  }
  add_missing(stream.last_nodes, event.nodes);
  return Error::success;
}

void leave_capture(Stream& stream) {
  const std::shared_ptr<Capture> capture = std::move(stream.capture);
  if (capture == nullptr) return;
  std::erase(capture->streams, &stream);
  add_missing(capture->left, stream.last_nodes);
  if (capture->origin != &stream) return;
  capture->origin = nullptr;  // nobody can end it any more
  capture->invalidated = true;
  for (Stream* each : capture->streams) {
    each->capture.reset();
    each->last_nodes.clear();
  }
  if (capture->owns_graph) destroy_graph(capture->graph);
}

CaptureInfo capture_info(const Stream& stream) {
  if (stream.capture == nullptr) return {};
  return {stream.capture->invalidated ? 2 : 1, stream.capture->number, stream.capture->graph,
          stream.last_nodes.data(), stream.last_nodes.size()};
}

Error update_capture(Stream& stream, GraphNode** nodes, std::size_t count, unsigned flags) {
  if (stream.capture == nullptr) return Error::illegal_state;
  if (flags > 1 || (count != 0 && nodes == nullptr)) return Error::invalid_value;
  if (flags == 1) stream.last_nodes.clear();
  add_missing(stream.last_nodes, {nodes, nodes + count});
  return Error::success;
}

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

namespace {

Error begin_capture(Stream* handle, DefaultStream when_null) {
  if (const Error error = connect_thread(); error != Error::success) return error;
  return with_stream(handle, when_null, [](Stream& stream) { return begin(stream, nullptr, {}); });
}

Error end_capture(Stream* handle, Graph** graph, DefaultStream when_null) {
  if (graph == nullptr) return Error::invalid_value;
  return with_stream(handle, when_null, [&](Stream& stream) { return end(stream, graph); });
}

Error is_capturing(Stream* handle, int* status, DefaultStream when_null) {
  if (status == nullptr) return Error::invalid_value;
  return with_stream(handle, when_null, [&](Stream& stream) {
    *status = capture_info(stream).status;
    return Error::success;
  });
}

thread_local int capture_mode = 0;

}  // namespace

extern "C" {

Error cudaStreamBeginCapture(Stream* stream, int) {
  return finish(begin_capture(stream, DefaultStream::legacy));
}

Error cudaStreamBeginCapture_ptsz(Stream* stream, int) {
  return finish(begin_capture(stream, DefaultStream::per_thread));
}

Error cudaStreamBeginCaptureToGraph(Stream* stream, Graph* graph, GraphNode* const* after, const void*,
                                    std::size_t count, int) {
  return finish(begin_in_graph(stream, graph, after, count, DefaultStream::legacy));
}

Error cudaStreamBeginCaptureToGraph_ptsz(Stream* stream, Graph* graph, GraphNode* const* after, const void*,
                                         std::size_t count, int) {
  return finish(begin_in_graph(stream, graph, after, count, DefaultStream::per_thread));
}

Error cudaStreamEndCapture(Stream* stream, Graph** graph) {
  return finish(end_capture(stream, graph, DefaultStream::legacy));
}

Error cudaStreamEndCapture_ptsz(Stream* stream, Graph** graph) {
  return finish(end_capture(stream, graph, DefaultStream::per_thread));
}

Error cudaStreamIsCapturing(Stream* stream, int* status) {
  return finish(is_capturing(stream, status, DefaultStream::legacy));
}

Error cudaStreamIsCapturing_ptsz(Stream* stream, int* status) {
  return finish(is_capturing(stream, status, DefaultStream::per_thread));
}

Error cudaThreadExchangeStreamCaptureMode(int* mode) {
  if (mode == nullptr) return finish(Error::invalid_value);
  std::swap(*mode, capture_mode);
  return finish(Error::success);
}

}  // extern "C"
