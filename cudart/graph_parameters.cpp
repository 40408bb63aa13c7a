// SPDX-License-Identifier: Apache-2.0
#include "graph_parameters.hpp"

#include "graph_memory.hpp"
#include "launch.hpp"
#include "process.hpp"
#include "registry.hpp"
#include "three_dimensional.hpp"

namespace manyscale::cudart {

Error kernel_operation(const KernelNodeParameters* given, Operation& made) {
  if (given == nullptr) return Error::invalid_value;
  LaunchOperation launch;
  const Error error = make_launch(given->function, given->grid, given->block, given->arguments, given->extra,
                                  given->shared, 0, launch);
  made = std::move(launch);
  return error;
}

Error copy_operation(const Copy3DParameters* given, Operation& made) {
  if (given == nullptr) return Error::invalid_value;
  CopyOperation copy;
  const Error error = volume_copy(*given, copy);
  made = copy;
  return error;
}

Error flat_copy_operation(void* target, const void* source, std::size_t bytes, CopyKind kind,
                          Operation& made) {
  made = CopyOperation{{target, bytes, bytes}, {const_cast<void*>(source), bytes, bytes}, bytes, 1, 1, kind};
  return Error::success;
}

Error to_symbol_operation(const void* symbol, const void* source, std::size_t bytes, std::size_t offset,
                          CopyKind kind, Operation& made) {
  wire::Symbol::Answer variable{};
  if (const Error error = find_symbol(symbol, variable); error != Error::success) return error;
  return flat_copy_operation(reinterpret_cast<void*>(variable.address + offset), source, bytes, kind, made);
}

Error from_symbol_operation(void* target, const void* symbol, std::size_t bytes, std::size_t offset,
                            CopyKind kind, Operation& made) {
  wire::Symbol::Answer variable{};
  if (const Error error = find_symbol(symbol, variable); error != Error::success) return error;
  return flat_copy_operation(target, reinterpret_cast<void*>(variable.address + offset), bytes, kind, made);
}

Error fill_operation(const FillNodeParameters* given, Operation& made) {
  if (given == nullptr || (given->element != 1 && given->element != 2 && given->element != 4))
    return Error::invalid_value;
  made = FillOperation{{given->target, given->pitch, given->pitch * given->rows},
                       given->width,
                       given->rows,
                       1,
                       given->value,
                       given->element};
  return Error::success;
}

Error host_operation(const HostNodeParameters* given, Operation& made) {
  if (given == nullptr || given->function == nullptr) return Error::invalid_value;
  made = HostOperation{given->function, given->data};
  return Error::success;
}

Error node_operation(const NodeParameters* given, Operation& made) {
  if (given == nullptr) return Error::invalid_value;
  switch (static_cast<NodeType>(given->type)) {
    case NodeType::kernel:
      return kernel_operation(&given->kernel, made);
    case NodeType::copy:
      return copy_operation(&given->copy.parameters, made);
    case NodeType::fill:
      return fill_operation(&given->fill, made);
    case NodeType::host:
      return host_operation(&given->host, made);
    case NodeType::empty:
      made = EmptyOperation{};
      return Error::success;
    case NodeType::wait:
      made = WaitOperation{given->event};
      return find_event(given->event) != nullptr ? Error::success : Error::invalid_handle;
    case NodeType::record:
      made = RecordOperation{given->event};
      return find_event(given->event) != nullptr ? Error::success : Error::invalid_handle;
    case NodeType::free:
      made = FreeOperation{given->freed};
      return Error::success;
    case NodeType::allocate:
      made = AllocateOperation{given->allocation.properties, given->allocation.bytes, nullptr};
      return Error::success;
    case NodeType::graph:
      made = ChildOperation{given->graph};
      return find_graph(given->graph) != nullptr ? Error::success : Error::invalid_value;
  }
  report_once("nodes of type " + std::to_string(given->type) +
              " in graphs (conditional nodes, semaphores) are not supported; launch the work from streams");
  return Error::not_supported;
}

Error replace_operation(GraphNode& node, Operation operation) {
  if (operation.index() != node.operation.index()) return Error::invalid_value;
  node.operation = std::move(operation);
  refresh(node);
  return Error::success;
}

Error add_any_node(GraphNode** made, Graph* handle, GraphNode* const* dependencies, std::size_t count,
                   NodeParameters* given) {
  Graph* graph = find_graph(handle);
  if (graph == nullptr || made == nullptr || (count != 0 && dependencies == nullptr))
    return Error::invalid_value;
  for (std::size_t i = 0; i < count; ++i)
    if (find_node(dependencies[i]) == nullptr || dependencies[i]->graph != graph) return Error::invalid_value;
  Operation operation;
  if (const Error error = node_operation(given, operation); error != Error::success) return error;
  std::shared_ptr<Graph> child;
  if (auto* inner = std::get_if<ChildOperation>(&operation)) {
    child = clone(*inner->graph);
    inner->graph = child.get();
  }
  GraphNode& node = add_node(*graph, std::move(operation), {dependencies, dependencies + count});
  if (child != nullptr) node.owned = child;
  if (auto* memory = std::get_if<AllocateOperation>(&node.operation)) {
    if (const Error error = own_memory(node); error != Error::success) return error;
    given->allocation.pointer = memory->pointer;
  }
  *made = &node;
  return Error::success;
}

}  // namespace manyscale::cudart
