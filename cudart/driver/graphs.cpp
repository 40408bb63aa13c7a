// SPDX-License-Identifier: Apache-2.0
// Functions of graphs that the runtime has in other forms, or in different ones in its versions.
#include <cstddef>
#include <cstring>

#include "runtime_calls.hpp"
#include "strided_copies.hpp"

using namespace manyscale::cuda_driver;
using manyscale::cudart::Copy3DParameters;

namespace {

// CUDA_KERNEL_NODE_PARAMS of CUDA 12; the runtime's ends before the kernel.
struct KernelNode {
  void* function;
  unsigned sizes[7];
  void **arguments, **extra;
  void *kernel, *context;
};

// The function may be given as a kernel of a library, which is the same here.
KernelNode with_function(const KernelNode& given) {
  KernelNode made = given;
  if (made.function == nullptr) made.function = made.kernel;
  return made;
}

// Edges have data in the runtime since CUDA 13; they have none here.
constexpr std::size_t kEdgeBytes = 8;

void clear_edges(void* edges, const std::size_t* count) {
  if (edges != nullptr && count != nullptr) std::memset(edges, 0, *count * kEdgeBytes);
}

Result list_edges(void* graph, void** from, void** to, std::size_t* count) {
  if (runtime_version() >= 13000)
    return runtime("cudaGraphGetEdges", graph, from, to, static_cast<void*>(nullptr), count);
  return runtime("cudaGraphGetEdges", graph, from, to, count);
}

Result list_neighbours(const char* name, void* node, void** nodes, std::size_t* count) {
  if (runtime_version() >= 13000) return runtime(name, node, nodes, static_cast<void*>(nullptr), count);
  return runtime(name, node, nodes, count);
}

Result change_edges(const char* name, void* graph, const void* from, const void* to, std::size_t count) {
  if (runtime_version() >= 13000)
    return runtime(name, graph, from, to, static_cast<const void*>(nullptr), count);
  return runtime(name, graph, from, to, count);
}

// CUgraphExecUpdateResultInfo
struct UpdateResult {
  int result;
  void *wrong, *wrong_from;
};

Result update(void* execution, void* graph, UpdateResult& made) {
  made = {};
  if (runtime_version() >= 12000) return runtime("cudaGraphExecUpdate", execution, graph, &made);
  return runtime("cudaGraphExecUpdate", execution, graph, &made.wrong, &made.result);
}

}  // namespace

extern "C" {

int cuGraphAddKernelNode_v2(void** node, void* graph, const void* dependencies, std::size_t count,
                            const KernelNode* given) {
  if (given == nullptr) return invalid_value;
  const KernelNode made = with_function(*given);
  return runtime("cudaGraphAddKernelNode", node, graph, dependencies, count, &made);
}

int cuGraphKernelNodeGetParams_v2(void* node, KernelNode* made) {
  if (made == nullptr) return invalid_value;
  *made = {};
  return runtime("cudaGraphKernelNodeGetParams", node, made);
}

int cuGraphKernelNodeSetParams_v2(void* node, const KernelNode* given) {
  if (given == nullptr) return invalid_value;
  const KernelNode made = with_function(*given);
  return runtime("cudaGraphKernelNodeSetParams", node, &made);
}

int cuGraphExecKernelNodeSetParams_v2(void* execution, void* node, const KernelNode* given) {
  if (given == nullptr) return invalid_value;
  const KernelNode made = with_function(*given);
  return runtime("cudaGraphExecKernelNodeSetParams", execution, node, &made);
}

int cuGraphAddMemcpyNode(void** node, void* graph, const void* dependencies, std::size_t count,
                         const Copy3D* copy, void*) {
  Copy3DParameters made{};
  if (copy == nullptr) return invalid_value;
  if (const Result error = to_runtime(*copy, made); error != success) return error;
  return runtime("cudaGraphAddMemcpyNode", node, graph, dependencies, count,
                 static_cast<const Copy3DParameters*>(&made));
}

int cuGraphMemcpyNodeSetParams(void* node, const Copy3D* copy) {
  Copy3DParameters made{};
  if (copy == nullptr) return invalid_value;
  if (const Result error = to_runtime(*copy, made); error != success) return error;
  return runtime("cudaGraphMemcpyNodeSetParams", node, static_cast<const Copy3DParameters*>(&made));
}

int cuGraphExecMemcpyNodeSetParams(void* execution, void* node, const Copy3D* copy, void*) {
  Copy3DParameters made{};
  if (copy == nullptr) return invalid_value;
  if (const Result error = to_runtime(*copy, made); error != success) return error;
  return runtime("cudaGraphExecMemcpyNodeSetParams", execution, node,
                 static_cast<const Copy3DParameters*>(&made));
}

int cuGraphInstantiate_v2(void** execution, void* graph, void** wrong, char* text, std::size_t bytes) {
  if (wrong != nullptr) *wrong = nullptr;
  if (text != nullptr && bytes != 0) *text = '\0';
  return runtime("cudaGraphInstantiateWithFlags", execution, graph, 0ULL);
}

int cuGraphInstantiate(void** execution, void* graph, void** wrong, char* text, std::size_t bytes) {
  return cuGraphInstantiate_v2(execution, graph, wrong, text, bytes);
}

int cuGraphExecUpdate_v2(void* execution, void* graph, UpdateResult* made) {
  return made == nullptr ? invalid_value : update(execution, graph, *made);
}

int cuGraphExecUpdate(void* execution, void* graph, void** wrong, int* result) {
  UpdateResult made{};
  const Result error = update(execution, graph, made);
  if (wrong != nullptr) *wrong = made.wrong;
  if (result != nullptr) *result = made.result;
  return error;
}

int cuGraphGetEdges(void* graph, void** from, void** to, std::size_t* count) {
  return list_edges(graph, from, to, count);
}

int cuGraphGetEdges_v2(void* graph, void** from, void** to, void* edges, std::size_t* count) {
  clear_edges(edges, count);
  return list_edges(graph, from, to, count);
}

int cuGraphNodeGetDependencies(void* node, void** nodes, std::size_t* count) {
  return list_neighbours("cudaGraphNodeGetDependencies", node, nodes, count);
}

int cuGraphNodeGetDependencies_v2(void* node, void** nodes, void* edges, std::size_t* count) {
  clear_edges(edges, count);
  return list_neighbours("cudaGraphNodeGetDependencies", node, nodes, count);
}

int cuGraphNodeGetDependentNodes(void* node, void** nodes, std::size_t* count) {
  return list_neighbours("cudaGraphNodeGetDependentNodes", node, nodes, count);
}

int cuGraphNodeGetDependentNodes_v2(void* node, void** nodes, void* edges, std::size_t* count) {
  clear_edges(edges, count);
  return list_neighbours("cudaGraphNodeGetDependentNodes", node, nodes, count);
}

int cuGraphAddDependencies(void* graph, const void* from, const void* to, std::size_t count) {
  return change_edges("cudaGraphAddDependencies", graph, from, to, count);
}

int cuGraphAddDependencies_v2(void* graph, const void* from, const void* to, const void*, std::size_t count) {
  return change_edges("cudaGraphAddDependencies", graph, from, to, count);
}

int cuGraphRemoveDependencies(void* graph, const void* from, const void* to, std::size_t count) {
  return change_edges("cudaGraphRemoveDependencies", graph, from, to, count);
}

int cuGraphRemoveDependencies_v2(void* graph, const void* from, const void* to, const void*,
                                 std::size_t count) {
  return change_edges("cudaGraphRemoveDependencies", graph, from, to, count);
}

}  // extern "C"
