// SPDX-License-Identifier: Apache-2.0
// Functions with the signatures of CUDA 11 and 12.
#include "versions.hpp"

using namespace manyscale::cudart;

extern "C" {

// Programs of CUDA 12 call cudaGetDeviceProperties_v2 unless they were compiled with CUDA 11.
Error cudaGetDeviceProperties(std::byte* properties, int device) {
  return finish(tell_properties(properties, device, PropertyVersion::cuda11));
}

Error cudaMemPrefetchAsync(const void* pointer, std::size_t bytes, int device, Stream* stream) {
  return finish(prefetch(pointer, bytes, device, stream, DefaultStream::legacy));
}

Error cudaMemPrefetchAsync_ptsz(const void* pointer, std::size_t bytes, int device, Stream* stream) {
  return finish(prefetch(pointer, bytes, device, stream, DefaultStream::per_thread));
}

Error cudaMemAdvise(const void* pointer, std::size_t bytes, unsigned advice, int device) {
  return finish(advise(pointer, bytes, advice, device));
}

Error cudaStreamGetCaptureInfo(Stream* stream, int* status, unsigned long long* number) {
  return finish(tell_capture(stream, DefaultStream::legacy, {.status = status, .number = number}));
}

Error cudaStreamGetCaptureInfo_ptsz(Stream* stream, int* status, unsigned long long* number) {
  return finish(tell_capture(stream, DefaultStream::per_thread, {.status = status, .number = number}));
}

Error cudaStreamGetCaptureInfo_v2(Stream* stream, int* status, unsigned long long* number, Graph** graph,
                                  GraphNode* const** dependencies, std::size_t* count) {
  return finish(
      tell_capture(stream, DefaultStream::legacy, {status, number, graph, dependencies, nullptr, count}));
}

Error cudaStreamGetCaptureInfo_v2_ptsz(Stream* stream, int* status, unsigned long long* number, Graph** graph,
                                       GraphNode* const** dependencies, std::size_t* count) {
  return finish(
      tell_capture(stream, DefaultStream::per_thread, {status, number, graph, dependencies, nullptr, count}));
}

Error cudaStreamUpdateCaptureDependencies(Stream* stream, GraphNode** nodes, std::size_t count,
                                          unsigned flags) {
  return finish(change_capture(stream, DefaultStream::legacy, nodes, count, flags));
}

Error cudaStreamUpdateCaptureDependencies_ptsz(Stream* stream, GraphNode** nodes, std::size_t count,
                                               unsigned flags) {
  return finish(change_capture(stream, DefaultStream::per_thread, nodes, count, flags));
}

Error cudaGraphGetEdges(Graph* graph, GraphNode** from, GraphNode** to, std::size_t* count) {
  return finish(list_edges(graph, from, to, count));
}

Error cudaGraphNodeGetDependencies(GraphNode* node, GraphNode** nodes, std::size_t* count) {
  return finish(list_dependencies(node, nodes, count));
}

Error cudaGraphNodeGetDependentNodes(GraphNode* node, GraphNode** nodes, std::size_t* count) {
  return finish(list_dependents(node, nodes, count));
}

Error cudaGraphAddDependencies(Graph* graph, GraphNode* const* from, GraphNode* const* to,
                               std::size_t count) {
  return finish(change_dependencies(graph, from, to, count, true));
}

Error cudaGraphRemoveDependencies(Graph* graph, GraphNode* const* from, GraphNode* const* to,
                                  std::size_t count) {
  return finish(change_dependencies(graph, from, to, count, false));
}

Error cudaGraphAddNode(GraphNode** made, Graph* graph, GraphNode* const* dependencies, std::size_t count,
                       NodeParameters* given) {
  return finish(add_any_node(made, graph, dependencies, count, given));
}

}  // extern "C"
