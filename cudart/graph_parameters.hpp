// SPDX-License-Identifier: Apache-2.0
// Parameters of graph nodes as programs pass them, and the operations they become.
#pragma once
#include "abi.hpp"
#include "graphs.hpp"
#include "operations.hpp"

namespace manyscale::cudart {

struct KernelNodeParameters {
  void* function;
  Dim3 grid, block;
  unsigned shared;
  void** arguments;
  void** extra;
};

struct FillNodeParameters {
  void* target;
  std::size_t pitch;
  unsigned value;
  unsigned element;
  std::size_t width, rows;
};

struct HostNodeParameters {
  HostFunction function;
  void* data;
};

struct AllocateNodeParameters {
  MemoryPoolProperties properties;
  const void* accesses;
  std::size_t access_count;
  std::size_t bytes;
  void* pointer;
};

// Any kind of node (cudaGraphAddNode).
struct NodeParameters {
  int type;
  int reserved[3];
  union {
    long long room[29];
    KernelNodeParameters kernel;
    struct {
      int flags;
      int reserved[3];
      Copy3DParameters parameters;
    } copy;
    FillNodeParameters fill;
    HostNodeParameters host;
    Graph* graph;
    Event* event;
    AllocateNodeParameters allocation;
    void* freed;
  };
  long long reserved_too;
};

Error kernel_operation(const KernelNodeParameters* given, Operation& made);
Error copy_operation(const Copy3DParameters* given, Operation& made);
Error flat_copy_operation(void* target, const void* source, std::size_t bytes, CopyKind kind,
                          Operation& made);
Error to_symbol_operation(const void* symbol, const void* source, std::size_t bytes, std::size_t offset,
                          CopyKind kind, Operation& made);
Error from_symbol_operation(void* target, const void* symbol, std::size_t bytes, std::size_t offset,
                            CopyKind kind, Operation& made);
Error fill_operation(const FillNodeParameters* given, Operation& made);
Error host_operation(const HostNodeParameters* given, Operation& made);
// Everything but child graphs and allocations, which need more than an operation.
Error node_operation(const NodeParameters* given, Operation& made);

// Replaces what a node does by another of its kind.
Error replace_operation(GraphNode& node, Operation operation);
// Any kind of node added to a graph.
Error add_any_node(GraphNode** made, Graph* graph, GraphNode* const* dependencies, std::size_t count,
                   NodeParameters* given);

}  // namespace manyscale::cudart
