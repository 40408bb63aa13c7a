// SPDX-License-Identifier: Apache-2.0
// Graphs of operations, kept by the program's side: when one is launched, its nodes go to streams, each after
// those it depends on.
#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "abi.hpp"
#include "operations.hpp"

namespace manyscale::cudart {

struct UserObject;
class GraphLanes;

struct GraphNode {
  Graph* graph = nullptr;
  Operation operation;
  std::vector<GraphNode*> dependencies;
  std::vector<void*> parameters;  // of a kernel: one pointer each, into the operation's bytes
  std::shared_ptr<void> owned;    // memory of an allocation node, or a child's graph
};

struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;  // in the order in which they were added
  std::unordered_map<const GraphNode*, GraphNode*>
      clones;  // of nodes of the graph that this one is a clone of
  std::vector<UserObject*> objects;
  std::unique_ptr<GraphLanes> lanes;  // that its launches run in

  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
};

struct GraphExecution {
  std::unique_ptr<Graph> graph;  // a clone
  std::set<const GraphNode*> disabled;
  unsigned long long flags = 0;
};

// The numbers of cudaGraphNodeType.
enum class NodeType : int {
  kernel = 0,
  copy = 1,
  fill = 2,
  host = 3,
  graph = 4,
  empty = 5,
  wait = 6,
  record = 7,
  allocate = 10,
  free = 11,
};

NodeType type_of(const GraphNode& node);

// Null unless the handle is of a graph, node or execution that is there.
Graph* find_graph(Graph* handle);
GraphNode* find_node(GraphNode* handle);
GraphExecution* find_execution(GraphExecution* handle);

Graph* create_graph();
void destroy_graph(Graph* graph);
std::unique_ptr<Graph> clone(const Graph& graph);
GraphNode& add_node(Graph& graph, Operation operation, std::vector<GraphNode*> dependencies);
// To be called when what a node does has changed.
void refresh(GraphNode& node);
// Nodes so that each comes after those it depends on; empty if there is a circle.
std::vector<GraphNode*> in_order(const Graph& graph);

Error perform_graph(Stream& stream, Graph& graph, const std::set<const GraphNode*>& without = {});

// What the interface tells and changes of edges; versions of it differ in the data of edges, which we have
// none of.
Error list_edges(Graph* graph, GraphNode** from, GraphNode** to, std::size_t* count);
Error list_dependencies(GraphNode* node, GraphNode** nodes, std::size_t* count);
Error list_dependents(GraphNode* node, GraphNode** nodes, std::size_t* count);
Error change_dependencies(Graph* graph, GraphNode* const* from, GraphNode* const* to, std::size_t count,
                          bool add);

}  // namespace manyscale::cudart
