// SPDX-License-Identifier: Apache-2.0
// Nodes of each kind: adding them to graphs, and getting and setting their parameters.
#include <algorithm>

#include "graph_parameters.hpp"
#include "graphs.hpp"
#include "process.hpp"
#include "registry.hpp"

namespace manyscale::cudart {

namespace {

Error add(GraphNode** made, Graph* handle, GraphNode* const* dependencies, std::size_t count, NodeType type,
          Error error, Operation operation) {
  if (error != Error::success) return error;
  Graph* graph = find_graph(handle);
  if (graph == nullptr || made == nullptr || (count != 0 && dependencies == nullptr))
    return Error::invalid_value;
  for (std::size_t i = 0; i < count; ++i)
    if (find_node(dependencies[i]) == nullptr) return Error::invalid_value;
  *made = &add_node(*graph, std::move(operation), {dependencies, dependencies + count});
  return type_of(**made) == type ? Error::success : Error::invalid_value;
}

// The operation of a node of a kind; null if it is of another.
template <class Wanted>
Wanted* operation_of(GraphNode* handle) {
  GraphNode* node = find_node(handle);
  return node != nullptr ? std::get_if<Wanted>(&node->operation) : nullptr;
}

Error change(GraphNode* handle, Error error, Operation operation) {
  if (error != Error::success) return error;
  GraphNode* node = find_node(handle);
  return node == nullptr ? Error::invalid_value : replace_operation(*node, std::move(operation));
}

Error add_event_node(GraphNode** made, Graph* graph, GraphNode* const* dependencies, std::size_t count,
                     Event* event, NodeType type) {
  NodeParameters given{};
  given.type = static_cast<int>(type);
  given.event = event;
  return add_any_node(made, graph, dependencies, count, &given);
}

}  // namespace

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

extern "C" {

Error cudaGraphAddKernelNode(GraphNode** made, Graph* graph, GraphNode* const* dependencies,
                             std::size_t count, const KernelNodeParameters* given) {
  Operation operation;
  const Error error = kernel_operation(given, operation);
  return finish(add(made, graph, dependencies, count, NodeType::kernel, error, std::move(operation)));
}

Error cudaGraphKernelNodeGetParams(GraphNode* handle, KernelNodeParameters* to) {
  const auto* launch = operation_of<LaunchOperation>(handle);
  if (launch == nullptr || to == nullptr) return finish(Error::invalid_value);
  *to = {launch->function,          launch->grid, launch->block, static_cast<unsigned>(launch->shared),
         handle->parameters.data(), nullptr};
  return finish(Error::success);
}

Error cudaGraphKernelNodeSetParams(GraphNode* handle, const KernelNodeParameters* given) {
  Operation operation;
  const Error error = kernel_operation(given, operation);
  return finish(change(handle, error, std::move(operation)));
}

Error cudaGraphKernelNodeSetAttribute(GraphNode* handle, unsigned id, const void* value) {
  auto* launch = operation_of<LaunchOperation>(handle);
  if (launch == nullptr || value == nullptr) return finish(Error::invalid_value);
  constexpr unsigned cooperative = 2;
  if (id == cooperative) launch->flags = *static_cast<const int*>(value) != 0 ? wire::kCooperative : 0;
  return finish(Error::success);
}

Error cudaGraphKernelNodeGetAttribute(GraphNode* handle, unsigned id, void* value) {
  const auto* launch = operation_of<LaunchOperation>(handle);
  if (launch == nullptr || value == nullptr) return finish(Error::invalid_value);
  constexpr unsigned cooperative = 2;
  LaunchAttribute attribute{};
  if (id == cooperative) attribute.value.cooperative = static_cast<int>(launch->flags & wire::kCooperative);
  std::copy_n(attribute.value.bytes, sizeof attribute.value.bytes, static_cast<char*>(value));
  return finish(Error::success);
}

Error cudaGraphKernelNodeCopyAttributes(GraphNode* to, GraphNode* from) {
  auto* target = operation_of<LaunchOperation>(to);
  const auto* source = operation_of<LaunchOperation>(from);
  if (target == nullptr || source == nullptr) return finish(Error::invalid_value);
  target->flags = source->flags;
  return finish(Error::success);
}

Error cudaGraphAddMemcpyNode(GraphNode** made, Graph* graph, GraphNode* const* dependencies,
                             std::size_t count, const Copy3DParameters* given) {
  Operation operation;
  const Error error = copy_operation(given, operation);
  return finish(add(made, graph, dependencies, count, NodeType::copy, error, std::move(operation)));
}

Error cudaGraphAddMemcpyNode1D(GraphNode** made, Graph* graph, GraphNode* const* dependencies,
                               std::size_t count, void* to, const void* from, std::size_t bytes,
                               CopyKind kind) {
  Operation operation;
  const Error error = flat_copy_operation(to, from, bytes, kind, operation);
  return finish(add(made, graph, dependencies, count, NodeType::copy, error, std::move(operation)));
}

Error cudaGraphAddMemcpyNodeToSymbol(GraphNode** made, Graph* graph, GraphNode* const* dependencies,
                                     std::size_t count, const void* symbol, const void* from,
                                     std::size_t bytes, std::size_t offset, CopyKind kind) {
  Operation operation;
  const Error error = to_symbol_operation(symbol, from, bytes, offset, kind, operation);
  return finish(add(made, graph, dependencies, count, NodeType::copy, error, std::move(operation)));
}

Error cudaGraphAddMemcpyNodeFromSymbol(GraphNode** made, Graph* graph, GraphNode* const* dependencies,
                                       std::size_t count, void* to, const void* symbol, std::size_t bytes,
                                       std::size_t offset, CopyKind kind) {
  Operation operation;
  const Error error = from_symbol_operation(to, symbol, bytes, offset, kind, operation);
  return finish(add(made, graph, dependencies, count, NodeType::copy, error, std::move(operation)));
}

Error cudaGraphMemcpyNodeGetParams(GraphNode* handle, Copy3DParameters* to) {
  const auto* copy = operation_of<CopyOperation>(handle);
  if (copy == nullptr || to == nullptr) return finish(Error::invalid_value);
  auto side = [&](const Region& region) {
    return PitchedPointer{region.pointer, region.pitch, copy->width,
                          region.pitch != 0 ? region.slice / region.pitch : copy->rows};
  };
  *to = {nullptr,
         {},
         side(copy->source),
         nullptr,
         {},
         side(copy->target),
         {copy->width, copy->rows, copy->slices},
         copy->kind};
  return finish(Error::success);
}

Error cudaGraphMemcpyNodeSetParams(GraphNode* handle, const Copy3DParameters* given) {
  Operation operation;
  const Error error = copy_operation(given, operation);
  return finish(change(handle, error, std::move(operation)));
}

Error cudaGraphMemcpyNodeSetParams1D(GraphNode* handle, void* to, const void* from, std::size_t bytes,
                                     CopyKind kind) {
  Operation operation;
  const Error error = flat_copy_operation(to, from, bytes, kind, operation);
  return finish(change(handle, error, std::move(operation)));
}

Error cudaGraphMemcpyNodeSetParamsToSymbol(GraphNode* handle, const void* symbol, const void* from,
                                           std::size_t bytes, std::size_t offset, CopyKind kind) {
  Operation operation;
  const Error error = to_symbol_operation(symbol, from, bytes, offset, kind, operation);
  return finish(change(handle, error, std::move(operation)));
}

Error cudaGraphMemcpyNodeSetParamsFromSymbol(GraphNode* handle, void* to, const void* symbol,
                                             std::size_t bytes, std::size_t offset, CopyKind kind) {
  Operation operation;
  const Error error = from_symbol_operation(to, symbol, bytes, offset, kind, operation);
  return finish(change(handle, error, std::move(operation)));
}

Error cudaGraphAddMemsetNode(GraphNode** made, Graph* graph, GraphNode* const* dependencies,
                             std::size_t count, const FillNodeParameters* given) {
  Operation operation;
  const Error error = fill_operation(given, operation);
  return finish(add(made, graph, dependencies, count, NodeType::fill, error, std::move(operation)));
}

Error cudaGraphMemsetNodeGetParams(GraphNode* handle, FillNodeParameters* to) {
  const auto* fill = operation_of<FillOperation>(handle);
  if (fill == nullptr || to == nullptr) return finish(Error::invalid_value);
  *to = {fill->target.pointer, fill->target.pitch, static_cast<unsigned>(fill->value),
         fill->element,        fill->width,        fill->rows};
  return finish(Error::success);
}

Error cudaGraphMemsetNodeSetParams(GraphNode* handle, const FillNodeParameters* given) {
  Operation operation;
  const Error error = fill_operation(given, operation);
  return finish(change(handle, error, std::move(operation)));
}

Error cudaGraphAddHostNode(GraphNode** made, Graph* graph, GraphNode* const* dependencies, std::size_t count,
                           const HostNodeParameters* given) {
  Operation operation;
  const Error error = host_operation(given, operation);
  return finish(add(made, graph, dependencies, count, NodeType::host, error, std::move(operation)));
}

Error cudaGraphHostNodeGetParams(GraphNode* handle, HostNodeParameters* to) {
  const auto* host = operation_of<HostOperation>(handle);
  if (host == nullptr || to == nullptr) return finish(Error::invalid_value);
  *to = {host->function, host->data};
  return finish(Error::success);
}

Error cudaGraphHostNodeSetParams(GraphNode* handle, const HostNodeParameters* given) {
  Operation operation;
  const Error error = host_operation(given, operation);
  return finish(change(handle, error, std::move(operation)));
}

Error cudaGraphAddEmptyNode(GraphNode** made, Graph* graph, GraphNode* const* dependencies,
                            std::size_t count) {
  return finish(add(made, graph, dependencies, count, NodeType::empty, Error::success, EmptyOperation{}));
}

Error cudaGraphAddChildGraphNode(GraphNode** made, Graph* graph, GraphNode* const* dependencies,
                                 std::size_t count, Graph* child) {
  NodeParameters given{};
  given.type = static_cast<int>(NodeType::graph);
  given.graph = child;
  return finish(add_any_node(made, graph, dependencies, count, &given));
}

Error cudaGraphChildGraphNodeGetGraph(GraphNode* handle, Graph** graph) {
  const auto* child = operation_of<ChildOperation>(handle);
  if (child == nullptr || graph == nullptr) return finish(Error::invalid_value);
  *graph = child->graph;
  return finish(Error::success);
}

Error cudaGraphAddEventRecordNode(GraphNode** made, Graph* graph, GraphNode* const* dependencies,
                                  std::size_t count, Event* event) {
  return finish(add_event_node(made, graph, dependencies, count, event, NodeType::record));
}

Error cudaGraphAddEventWaitNode(GraphNode** made, Graph* graph, GraphNode* const* dependencies,
                                std::size_t count, Event* event) {
  return finish(add_event_node(made, graph, dependencies, count, event, NodeType::wait));
}

Error cudaGraphEventRecordNodeGetEvent(GraphNode* handle, Event** event) {
  const auto* record = operation_of<RecordOperation>(handle);
  if (record == nullptr || event == nullptr) return finish(Error::invalid_value);
  *event = record->event;
  return finish(Error::success);
}

Error cudaGraphEventRecordNodeSetEvent(GraphNode* handle, Event* event) {
  const Error error = find_event(event) != nullptr ? Error::success : Error::invalid_handle;
  return finish(change(handle, error, RecordOperation{event}));
}

Error cudaGraphEventWaitNodeGetEvent(GraphNode* handle, Event** event) {
  const auto* wait = operation_of<WaitOperation>(handle);
  if (wait == nullptr || event == nullptr) return finish(Error::invalid_value);
  *event = wait->event;
  return finish(Error::success);
}

Error cudaGraphEventWaitNodeSetEvent(GraphNode* handle, Event* event) {
  const Error error = find_event(event) != nullptr ? Error::success : Error::invalid_handle;
  return finish(change(handle, error, WaitOperation{event}));
}

Error cudaGraphAddMemAllocNode(GraphNode** made, Graph* graph, GraphNode* const* dependencies,
                               std::size_t count, AllocateNodeParameters* given) {
  if (given == nullptr) return finish(Error::invalid_value);
  NodeParameters any{};
  any.type = static_cast<int>(NodeType::allocate);
  any.allocation = *given;
  const Error error = add_any_node(made, graph, dependencies, count, &any);
  given->pointer = any.allocation.pointer;
  return finish(error);
}

Error cudaGraphMemAllocNodeGetParams(GraphNode* handle, AllocateNodeParameters* to) {
  const auto* allocation = operation_of<AllocateOperation>(handle);
  if (allocation == nullptr || to == nullptr) return finish(Error::invalid_value);
  *to = {allocation->properties, nullptr, 0, allocation->bytes, allocation->pointer};
  return finish(Error::success);
}

Error cudaGraphAddMemFreeNode(GraphNode** made, Graph* graph, GraphNode* const* dependencies,
                              std::size_t count, void* pointer) {
  return finish(
      add(made, graph, dependencies, count, NodeType::free, Error::success, FreeOperation{pointer}));
}

Error cudaGraphMemFreeNodeGetParams(GraphNode* handle, void* to) {
  const auto* freed = operation_of<FreeOperation>(handle);
  if (freed == nullptr || to == nullptr) return finish(Error::invalid_value);
  *static_cast<void**>(to) = freed->pointer;
  return finish(Error::success);
}

Error cudaGraphNodeSetParams(GraphNode* handle, const NodeParameters* given) {
  Operation operation;
  const Error error = node_operation(given, operation);
  return finish(change(handle, error, std::move(operation)));
}

}  // extern "C"
