// SPDX-License-Identifier: Apache-2.0
// Stream capture: operations become nodes of a graph.
#pragma once
#include <cstdint>
#include <vector>

#include "abi.hpp"
#include "operations.hpp"
#include "streams.hpp"

namespace manyscale::cudart {

struct Capture {
  Graph* graph = nullptr;
  bool owns_graph = true;  // false: the program gave the graph
  bool invalidated = false;
  Stream* origin = nullptr;      // null: it was destroyed
  std::vector<Stream*> streams;  // all that take part and exist
  std::vector<GraphNode*> left;  // the last nodes of streams that were destroyed
  std::uint64_t number = 0;
};

Error capture_operation(Stream& stream, Operation operation, Wait wait);
Error capture_record(Stream& stream, Event& event);
Error capture_wait(Stream& stream, Event& event);
// The stream is destroyed: what it has captured stays, and must have been joined in the end.
void leave_capture(Stream& stream);
// The call cannot be captured: the capture is lost, and this is its error.
Error forbid_in_capture(Stream& stream);

// What cudaStreamGetCaptureInfo tells, in all its versions.
struct CaptureInfo {
  int status = 0;  // cudaStreamCaptureStatus
  std::uint64_t number = 0;
  Graph* graph = nullptr;
  GraphNode* const* dependencies = nullptr;
  std::size_t dependency_count = 0;
};
CaptureInfo capture_info(const Stream& stream);
Error update_capture(Stream& stream, GraphNode** nodes, std::size_t count, unsigned flags);

}  // namespace manyscale::cudart
