// SPDX-License-Identifier: Apache-2.0
// Functions that only CUDA 12 exports: signatures of CUDA 13 with a suffix (_v2).
#include "versions.hpp"

namespace manyscale::cudart {

const int kRuntimeVersion = 12090;

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

extern "C" {

Error cudaGetDeviceProperties_v2(std::byte* properties, int device) {
  return finish(tell_properties(properties, device, PropertyVersion::cuda12));
}

Error cudaMemPrefetchAsync_v2(const void* pointer, std::size_t bytes, MemoryLocation location, unsigned,
                              Stream* stream) {
  return finish(prefetch(pointer, bytes, device_of(location), stream, DefaultStream::legacy));
}

Error cudaMemPrefetchAsync_v2_ptsz(const void* pointer, std::size_t bytes, MemoryLocation location, unsigned,
                                   Stream* stream) {
  return finish(prefetch(pointer, bytes, device_of(location), stream, DefaultStream::per_thread));
}

Error cudaMemAdvise_v2(const void* pointer, std::size_t bytes, unsigned advice, MemoryLocation location) {
  return finish(advise(pointer, bytes, advice, device_of(location)));
}

Error cudaStreamGetCaptureInfo_v3(Stream* stream, int* status, unsigned long long* number, Graph** graph,
                                  GraphNode* const** dependencies, const void** edges, std::size_t* count) {
  return finish(
      tell_capture(stream, DefaultStream::legacy, {status, number, graph, dependencies, edges, count}));
}

Error cudaStreamGetCaptureInfo_v3_ptsz(Stream* stream, int* status, unsigned long long* number, Graph** graph,
                                       GraphNode* const** dependencies, const void** edges,
                                       std::size_t* count) {
  return finish(
      tell_capture(stream, DefaultStream::per_thread, {status, number, graph, dependencies, edges, count}));
}

Error cudaStreamUpdateCaptureDependencies_v2(Stream* stream, GraphNode** nodes, const void*,
                                             std::size_t count, unsigned flags) {
  return finish(change_capture(stream, DefaultStream::legacy, nodes, count, flags));
}

Error cudaStreamUpdateCaptureDependencies_v2_ptsz(Stream* stream, GraphNode** nodes, const void*,
                                                  std::size_t count, unsigned flags) {
  return finish(change_capture(stream, DefaultStream::per_thread, nodes, count, flags));
}

Error cudaGraphGetEdges_v2(Graph* graph, GraphNode** from, GraphNode** to, void* edges, std::size_t* count) {
  return finish(list_edges(graph, from, to, plain_edges(edges, count)));
}

Error cudaGraphNodeGetDependencies_v2(GraphNode* node, GraphNode** nodes, void* edges, std::size_t* count) {
  return finish(list_dependencies(node, nodes, plain_edges(edges, count)));
}

Error cudaGraphNodeGetDependentNodes_v2(GraphNode* node, GraphNode** nodes, void* edges, std::size_t* count) {
  return finish(list_dependents(node, nodes, plain_edges(edges, count)));
}

Error cudaGraphAddDependencies_v2(Graph* graph, GraphNode* const* from, GraphNode* const* to, const void*,
                                  std::size_t count) {
  return finish(change_dependencies(graph, from, to, count, true));
}

Error cudaGraphRemoveDependencies_v2(Graph* graph, GraphNode* const* from, GraphNode* const* to, const void*,
                                     std::size_t count) {
  return finish(change_dependencies(graph, from, to, count, false));
}

Error cudaGraphAddNode_v2(GraphNode** made, Graph* graph, GraphNode* const* dependencies, const void*,
                          std::size_t count, NodeParameters* given) {
  return finish(add_any_node(made, graph, dependencies, count, given));
}

}  // extern "C"
