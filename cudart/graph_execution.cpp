// SPDX-License-Identifier: Apache-2.0
// Graph instantiation, launch and update.
#include <algorithm>
#include <mutex>

#include "graph_instantiation.hpp"
#include "graph_memory.hpp"
#include "graph_parameters.hpp"
#include "graphs.hpp"
#include "process.hpp"

namespace manyscale::cudart {

namespace {

struct Executions {
  std::mutex mutex;
  std::unordered_map<const void*, std::unique_ptr<GraphExecution>> known;
};

Executions& executions() {
  static Executions& only = *new Executions;
  return only;
}

// The node of an execution that a node of the graph became.
GraphNode* node_in(GraphExecution* handle, GraphNode* original) {
  const GraphExecution* execution = find_execution(handle);
  if (execution == nullptr) return nullptr;
  const auto found = execution->graph->clones.find(original);
  return found == execution->graph->clones.end() ? nullptr : found->second;
}

Error change(GraphExecution* handle, GraphNode* original, Error error, Operation operation) {
  if (error != Error::success) return error;
  GraphNode* node = node_in(handle, original);
  return node == nullptr ? Error::invalid_value : replace_operation(*node, std::move(operation));
}

Error launch(GraphExecution* handle, Stream* stream_handle, DefaultStream when_null) {
  const GraphExecution* execution = find_execution(handle);
  if (execution == nullptr) return Error::invalid_value;
  return with_stream(stream_handle, when_null, [&](Stream& stream) {
    if (stream.capture != nullptr) {
      // A graph launched into a captured stream becomes a child of the captured graph.
      return enqueue(stream, ChildOperation{execution->graph.get()}, Wait::no);
    }
    return perform_graph(stream, *execution->graph, execution->disabled);
  });
}

std::size_t index_of(const Graph& graph, const GraphNode* node) {
  return static_cast<std::size_t>(
      std::ranges::find_if(graph.nodes, [&](const auto& each) { return each.get() == node; }) -
      graph.nodes.begin());
}

bool same_shape(const Graph& a, const Graph& b) {
  if (a.nodes.size() != b.nodes.size()) return false;
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    const auto& before_a = a.nodes[i]->dependencies;
    const auto& before_b = b.nodes[i]->dependencies;
    if (a.nodes[i]->operation.index() != b.nodes[i]->operation.index() || before_a.size() != before_b.size())
      return false;
    for (std::size_t d = 0; d < before_a.size(); ++d)
      if (index_of(a, before_a[d]) != index_of(b, before_b[d])) return false;
  }
  return true;
}

}  // namespace

GraphExecution* find_execution(GraphExecution* handle) {
  Executions& all = executions();
  const std::lock_guard lock(all.mutex);
  const auto found = all.known.find(handle);
  return found == all.known.end() ? nullptr : found->second.get();
}

Error instantiate(GraphExecution** made, Graph* handle, unsigned long long flags) {
  const Graph* graph = find_graph(handle);
  if (graph == nullptr || made == nullptr) return Error::invalid_value;
  if (in_order(*graph).empty() && !graph->nodes.empty()) return Error::invalid_value;  // it has a circle
  auto execution = std::make_unique<GraphExecution>();
  execution->graph = clone(*graph);
  execution->flags = flags;
  *made = execution.get();
  Executions& all = executions();
  const std::lock_guard lock(all.mutex);
  all.known.emplace(*made, std::move(execution));
  return Error::success;
}

bool update(GraphExecution* handle, Graph* with) {
  GraphExecution* execution = find_execution(handle);
  const Graph* graph = find_graph(with);
  if (execution == nullptr || graph == nullptr || !same_shape(*execution->graph, *graph)) return false;
  for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
    GraphNode& node = *execution->graph->nodes[i];
    if (type_of(node) == NodeType::graph || type_of(node) == NodeType::allocate) continue;
    node.operation = graph->nodes[i]->operation;
    refresh(node);
  }
  return true;
}

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

extern "C" {

Error cudaGraphInstantiateWithFlags(GraphExecution** made, Graph* graph, unsigned long long flags) {
  return finish(instantiate(made, graph, flags));
}

struct InstantiateParameters {
  unsigned long long flags;
  Stream* upload;
  GraphNode* wrong;
  int result;
};

Error cudaGraphInstantiateWithParams(GraphExecution** made, Graph* graph, InstantiateParameters* parameters) {
  if (parameters == nullptr) return finish(Error::invalid_value);
  const Error error = instantiate(made, graph, parameters->flags);
  parameters->wrong = nullptr;
  parameters->result = error == Error::success ? 0 : 2;  // cudaGraphInstantiateInvalidStructure
  return finish(error);
}

Error cudaGraphInstantiateWithParams_ptsz(GraphExecution** made, Graph* graph,
                                          InstantiateParameters* parameters) {
  return cudaGraphInstantiateWithParams(made, graph, parameters);
}

Error cudaGraphExecDestroy(GraphExecution* handle) {
  Executions& all = executions();
  std::unique_ptr<GraphExecution> gone;
  {
    const std::lock_guard lock(all.mutex);
    auto node = all.known.extract(handle);
    if (!node.empty()) gone = std::move(node.mapped());
  }
  return finish(gone != nullptr ? Error::success : Error::invalid_value);
}

Error cudaGraphExecGetFlags(GraphExecution* handle, unsigned long long* flags) {
  const GraphExecution* execution = find_execution(handle);
  if (execution == nullptr || flags == nullptr) return finish(Error::invalid_value);
  *flags = execution->flags;
  return finish(Error::success);
}

Error cudaGraphLaunch(GraphExecution* execution, Stream* stream) {
  return finish(launch(execution, stream, DefaultStream::legacy));
}

Error cudaGraphLaunch_ptsz(GraphExecution* execution, Stream* stream) {
  return finish(launch(execution, stream, DefaultStream::per_thread));
}

Error cudaGraphUpload(GraphExecution* execution, Stream*) {
  return finish(find_execution(execution) != nullptr ? Error::success : Error::invalid_value);
}

Error cudaGraphUpload_ptsz(GraphExecution* execution, Stream* stream) {
  return cudaGraphUpload(execution, stream);
}

Error cudaGraphNodeSetEnabled(GraphExecution* handle, GraphNode* original, unsigned on) {
  GraphNode* node = node_in(handle, original);
  if (node == nullptr) return finish(Error::invalid_value);
  auto& disabled = find_execution(handle)->disabled;
  if (on != 0) {
    disabled.erase(node);
  } else {
    disabled.insert(node);
  }
  return finish(Error::success);
}

Error cudaGraphNodeGetEnabled(GraphExecution* handle, GraphNode* original, unsigned* on) {
  const GraphNode* node = node_in(handle, original);
  if (node == nullptr || on == nullptr) return finish(Error::invalid_value);
  *on = find_execution(handle)->disabled.contains(node) ? 0 : 1;
  return finish(Error::success);
}

Error cudaGraphExecKernelNodeSetParams(GraphExecution* handle, GraphNode* node,
                                       const KernelNodeParameters* given) {
  Operation operation;
  const Error error = kernel_operation(given, operation);
  return finish(change(handle, node, error, std::move(operation)));
}

Error cudaGraphExecMemcpyNodeSetParams(GraphExecution* handle, GraphNode* node,
                                       const Copy3DParameters* given) {
  Operation operation;
  const Error error = copy_operation(given, operation);
  return finish(change(handle, node, error, std::move(operation)));
}

Error cudaGraphExecMemcpyNodeSetParams1D(GraphExecution* handle, GraphNode* node, void* to, const void* from,
                                         std::size_t bytes, CopyKind kind) {
  Operation operation;
  const Error error = flat_copy_operation(to, from, bytes, kind, operation);
  return finish(change(handle, node, error, std::move(operation)));
}

Error cudaGraphExecMemcpyNodeSetParamsToSymbol(GraphExecution* handle, GraphNode* node, const void* symbol,
                                               const void* from, std::size_t bytes, std::size_t offset,
                                               CopyKind kind) {
  Operation operation;
  const Error error = to_symbol_operation(symbol, from, bytes, offset, kind, operation);
  return finish(change(handle, node, error, std::move(operation)));
}

Error cudaGraphExecMemcpyNodeSetParamsFromSymbol(GraphExecution* handle, GraphNode* node, void* to,
                                                 const void* symbol, std::size_t bytes, std::size_t offset,
                                                 CopyKind kind) {
  Operation operation;
  const Error error = from_symbol_operation(to, symbol, bytes, offset, kind, operation);
  return finish(change(handle, node, error, std::move(operation)));
}

Error cudaGraphExecMemsetNodeSetParams(GraphExecution* handle, GraphNode* node,
                                       const FillNodeParameters* given) {
  Operation operation;
  const Error error = fill_operation(given, operation);
  return finish(change(handle, node, error, std::move(operation)));
}

Error cudaGraphExecHostNodeSetParams(GraphExecution* handle, GraphNode* node,
                                     const HostNodeParameters* given) {
  Operation operation;
  const Error error = host_operation(given, operation);
  return finish(change(handle, node, error, std::move(operation)));
}

Error cudaGraphExecEventRecordNodeSetEvent(GraphExecution* handle, GraphNode* node, Event* event) {
  const Error error = find_event(event) != nullptr ? Error::success : Error::invalid_handle;
  return finish(change(handle, node, error, RecordOperation{event}));
}

Error cudaGraphExecEventWaitNodeSetEvent(GraphExecution* handle, GraphNode* node, Event* event) {
  const Error error = find_event(event) != nullptr ? Error::success : Error::invalid_handle;
  return finish(change(handle, node, error, WaitOperation{event}));
}

Error cudaGraphExecChildGraphNodeSetParams(GraphExecution* handle, GraphNode* original, Graph* child) {
  GraphNode* node = node_in(handle, original);
  const Graph* graph = find_graph(child);
  if (node == nullptr || graph == nullptr || type_of(*node) != NodeType::graph)
    return finish(Error::invalid_value);
  std::shared_ptr<Graph> inner = clone(*graph);
  node->operation = ChildOperation{inner.get()};
  node->owned = inner;
  return finish(Error::success);
}

Error cudaGraphExecNodeSetParams(GraphExecution* handle, GraphNode* node, const NodeParameters* given) {
  Operation operation;
  const Error error = node_operation(given, operation);
  return finish(change(handle, node, error, std::move(operation)));
}

// Memory of graphs is counted with the device's.

Error cudaDeviceGraphMemTrim(int) {
  return finish(connect_thread());
}

Error cudaDeviceGetGraphMemAttribute(int, int, void* value) {
  if (value == nullptr) return finish(Error::invalid_value);
  *static_cast<std::uint64_t*>(value) = graph_memory_bytes();
  return finish(Error::success);
}

Error cudaDeviceSetGraphMemAttribute(int, int, void*) {
  return finish(Error::success);
}

}  // extern "C"
