// SPDX-License-Identifier: Apache-2.0
// Functions with the signatures of CUDA 13: with memory locations instead of devices, and with edge data.
#include "versions.hpp"

namespace manyscale::cudart {

const int kRuntimeVersion = 13000;

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

extern "C" {

Error cudaGetDeviceProperties(std::byte* properties, int device) {
  return finish(tell_properties(properties, device, PropertyVersion::cuda13));
}

Error cudaMemPrefetchAsync(const void* pointer, std::size_t bytes, MemoryLocation location, unsigned,
                           Stream* stream) {
  return finish(prefetch(pointer, bytes, device_of(location), stream, DefaultStream::legacy));
}

Error cudaMemPrefetchAsync_ptsz(const void* pointer, std::size_t bytes, MemoryLocation location, unsigned,
                                Stream* stream) {
  return finish(prefetch(pointer, bytes, device_of(location), stream, DefaultStream::per_thread));
}

Error cudaMemAdvise(const void* pointer, std::size_t bytes, unsigned advice, MemoryLocation location) {
  return finish(advise(pointer, bytes, advice, device_of(location)));
}

Error cudaStreamGetCaptureInfo(Stream* stream, int* status, unsigned long long* number, Graph** graph,
                               GraphNode* const** dependencies, const void** edges, std::size_t* count) {
  return finish(
      tell_capture(stream, DefaultStream::legacy, {status, number, graph, dependencies, edges, count}));
}

Error cudaStreamGetCaptureInfo_ptsz(Stream* stream, int* status, unsigned long long* number, Graph** graph,
                                    GraphNode* const** dependencies, const void** edges, std::size_t* count) {
  return finish(
      tell_capture(stream, DefaultStream::per_thread, {status, number, graph, dependencies, edges, count}));
}

Error cudaStreamUpdateCaptureDependencies(Stream* stream, GraphNode** nodes, const void*, std::size_t count,
                                          unsigned flags) {
  return finish(change_capture(stream, DefaultStream::legacy, nodes, count, flags));
}

Error cudaStreamUpdateCaptureDependencies_ptsz(Stream* stream, GraphNode** nodes, const void*,
                                               std::size_t count, unsigned flags) {
  return finish(change_capture(stream, DefaultStream::per_thread, nodes, count, flags));
}

Error cudaGraphGetEdges(Graph* graph, GraphNode** from, GraphNode** to, void* edges, std::size_t* count) {
  return finish(list_edges(graph, from, to, plain_edges(edges, count)));
}

Error cudaGraphNodeGetDependencies(GraphNode* node, GraphNode** nodes, void* edges, std::size_t* count) {
  return finish(list_dependencies(node, nodes, plain_edges(edges, count)));
}

Error cudaGraphNodeGetDependentNodes(GraphNode* node, GraphNode** nodes, void* edges, std::size_t* count) {
  return finish(list_dependents(node, nodes, plain_edges(edges, count)));
}

Error cudaGraphAddDependencies(Graph* graph, GraphNode* const* from, GraphNode* const* to, const void*,
                               std::size_t count) {
  return finish(change_dependencies(graph, from, to, count, true));
}

Error cudaGraphRemoveDependencies(Graph* graph, GraphNode* const* from, GraphNode* const* to, const void*,
                                  std::size_t count) {
  return finish(change_dependencies(graph, from, to, count, false));
}

Error cudaGraphAddNode(GraphNode** made, Graph* graph, GraphNode* const* dependencies, const void*,
                       std::size_t count, NodeParameters* given) {
  return finish(add_any_node(made, graph, dependencies, count, given));
}

}  // extern "C"
