// SPDX-License-Identifier: Apache-2.0
// Functions whose names or arguments changed between CUDA 11, 12 and 13: the files abi_*.cpp export them
// with the names and arguments of each version.
#pragma once
#include <cstddef>
#include <cstring>

#include "capture.hpp"
#include "device_properties.hpp"
#include "driver_entry_points.hpp"
#include "graph_instantiation.hpp"
#include "graph_parameters.hpp"
#include "managed_api.hpp"
#include "process.hpp"

namespace manyscale::cudart {

inline Error tell_properties(std::byte* properties, int device, PropertyVersion version) {
  if (properties == nullptr) return Error::invalid_value;
  Error error = Error::success;
  const DeviceDescription* description = describe_device(device, error);
  if (description != nullptr) write_properties(*description, version, properties);
  return error;
}

// Where there is no room for an answer, it is not wanted.
struct CaptureAnswer {
  int* status = nullptr;
  unsigned long long* number = nullptr;
  Graph** graph = nullptr;
  GraphNode* const** dependencies = nullptr;
  const void** edges = nullptr;
  std::size_t* count = nullptr;
};

inline Error tell_capture(Stream* handle, DefaultStream when_null, const CaptureAnswer& to) {
  if (to.status == nullptr) return Error::invalid_value;
  return with_stream(handle, when_null, [&](Stream& stream) {
    const CaptureInfo info = capture_info(stream);
    *to.status = info.status;
    if (to.number != nullptr) *to.number = info.number;
    if (to.graph != nullptr) *to.graph = info.graph;
    if (to.dependencies != nullptr) *to.dependencies = info.dependencies;
    if (to.edges != nullptr) *to.edges = nullptr;
    if (to.count != nullptr) *to.count = info.dependency_count;
    return Error::success;
  });
}

inline Error change_capture(Stream* handle, DefaultStream when_null, GraphNode** nodes, std::size_t count,
                            unsigned flags) {
  return with_stream(handle, when_null,
                     [&](Stream& stream) { return update_capture(stream, nodes, count, flags); });
}

// Edges have no data here: clears the edge data, and returns the count.
inline std::size_t* plain_edges(void* edges, std::size_t* count) {
  constexpr std::size_t edge_bytes = 8;
  if (edges != nullptr && count != nullptr) std::memset(edges, 0, *count * edge_bytes);
  return count;
}

// The result of cudaGraphExecUpdate since CUDA 12.
struct UpdateResult {
  int result;  // 0 success, 2 the shape has changed
  GraphNode* wrong;
  GraphNode* wrong_from;
};

inline Error update_execution(GraphExecution* execution, Graph* graph, UpdateResult* result_info) {
  const bool updated = update(execution, graph);
  constexpr int shape_changed = 2;
  if (result_info != nullptr) *result_info = {updated ? 0 : shape_changed, nullptr, nullptr};
  return updated ? Error::success : Error::graph_update_failure;
}

}  // namespace manyscale::cudart
