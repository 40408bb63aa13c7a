// SPDX-License-Identifier: Apache-2.0
#include "graphs.hpp"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <unordered_set>

#include "graph_lanes.hpp"
#include "memory.hpp"
#include "process.hpp"
#include "registry.hpp"
#include "user_objects.hpp"

namespace manyscale::cudart {

namespace {

struct Known {
  std::recursive_mutex mutex;
  std::unordered_map<const void*, std::unique_ptr<Graph>> graphs;  // that the program made
  std::unordered_set<const void*> alive;                           // with those inside of others
  std::unordered_set<const void*> nodes;
};

Known& known() {
  static Known& only = *new Known;
  return only;
}

}  // namespace

Graph::Graph() {
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  all.alive.insert(this);
}

Graph::~Graph() {
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  all.alive.erase(this);
  for (const auto& node : nodes) all.nodes.erase(node.get());
  for (UserObject* object : objects) release_object(object, 1);
}

NodeType type_of(const GraphNode& node) {
  constexpr NodeType types[] = {NodeType::empty,    NodeType::kernel, NodeType::copy, NodeType::fill,
                                NodeType::host,     NodeType::record, NodeType::wait, NodeType::copy,
                                NodeType::allocate, NodeType::free,   NodeType::graph};
  static_assert(std::size(types) == std::variant_size_v<Operation>);
  return types[node.operation.index()];
}

Graph* find_graph(Graph* handle) {
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  return all.alive.contains(handle) ? handle : nullptr;
}

GraphNode* find_node(GraphNode* handle) {
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  return all.nodes.contains(handle) ? handle : nullptr;
}

Graph* create_graph() {
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  auto made = std::make_unique<Graph>();
  Graph* graph = made.get();
  all.graphs.emplace(graph, std::move(made));
  return graph;
}

void destroy_graph(Graph* graph) {
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  all.graphs.erase(graph);
}

// Pointers to a kernel's parameters, as cudaGraphKernelNodeGetParams hands them out.
void refresh(GraphNode& node) {
  auto* launch = std::get_if<LaunchOperation>(&node.operation);
  if (launch == nullptr) return;
  node.parameters.clear();
  const FunctionLayout* layout = nullptr;
  if (lay_out(*launch->function, layout) != Error::success) return;
  for (const auto& parameter : layout->parameters)
    node.parameters.push_back(launch->parameters.data() + parameter.offset);
}

GraphNode& add_node(Graph& graph, Operation operation, std::vector<GraphNode*> dependencies) {
  auto made = std::make_unique<GraphNode>();
  made->graph = &graph;
  made->operation = std::move(operation);
  made->dependencies = std::move(dependencies);
  refresh(*made);
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  all.nodes.insert(made.get());
  graph.nodes.push_back(std::move(made));
  return *graph.nodes.back();
}

std::unique_ptr<Graph> clone(const Graph& graph) {
  auto made = std::make_unique<Graph>();
  for (const auto& node : graph.nodes) {
    GraphNode& copy = add_node(*made, node->operation, {});
    copy.owned = node->owned;
    if (auto* child = std::get_if<ChildOperation>(&copy.operation)) {
      std::shared_ptr<Graph> inner = clone(*child->graph);
      child->graph = inner.get();
      copy.owned = inner;
    }
    made->clones.emplace(node.get(), &copy);
  }
  for (const auto& node : graph.nodes)
    for (GraphNode* before : node->dependencies)
      made->clones.at(node.get())->dependencies.push_back(made->clones.at(before));
  return made;
}

std::vector<GraphNode*> in_order(const Graph& graph) {
  std::unordered_map<const GraphNode*, std::size_t> waits_for;
  std::unordered_map<const GraphNode*, std::vector<GraphNode*>> dependents;
  std::vector<GraphNode*> order;
  for (const auto& node : graph.nodes) {
    waits_for[node.get()] = node->dependencies.size();
    for (const GraphNode* before : node->dependencies) dependents[before].push_back(node.get());
    if (node->dependencies.empty()) order.push_back(node.get());
  }
  for (std::size_t i = 0; i < order.size(); ++i)
    for (GraphNode* after : dependents[order[i]])
      if (--waits_for[after] == 0) order.push_back(after);
  if (order.size() != graph.nodes.size()) order.clear();
  return order;
}

Error perform_graph(Stream& stream, Graph& graph, const std::set<const GraphNode*>& without) {
  if (graph.lanes == nullptr) graph.lanes = std::make_unique<GraphLanes>();
  return graph.lanes->perform(stream, graph, without);
}

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

namespace {

// Hands out a list the way CUDA does: all of it if there is no room to write, at most `count` otherwise.
template <class Pointer>
Error list(const std::vector<Pointer>& nodes, Pointer* to, std::size_t* count) {
  if (count == nullptr) return Error::invalid_value;
  if (to != nullptr) {
    for (std::size_t i = 0; i < *count; ++i) to[i] = i < nodes.size() ? nodes[i] : nullptr;
    *count = std::min(*count, nodes.size());
  } else {
    *count = nodes.size();
  }
  return Error::success;
}

std::vector<GraphNode*> nodes_of(const Graph& graph, bool roots_only) {
  std::vector<GraphNode*> nodes;
  for (const auto& node : graph.nodes)
    if (!roots_only || node->dependencies.empty()) nodes.push_back(node.get());
  return nodes;
}

const char* name_of(NodeType type) {
  switch (type) {
    case NodeType::kernel:
      return "kernel";
    case NodeType::copy:
      return "copy";
    case NodeType::fill:
      return "fill";
    case NodeType::host:
      return "host function";
    case NodeType::graph:
      return "graph";
    case NodeType::wait:
      return "wait";
    case NodeType::record:
      return "record";
    case NodeType::allocate:
      return "allocate";
    case NodeType::free:
      return "free";
    case NodeType::empty:
      break;
  }
  return "empty";
}

Error write_dot(const Graph& graph, const char* path) {
  std::FILE* file = path != nullptr ? std::fopen(path, "w") : nullptr;
  if (file == nullptr) return Error::invalid_value;
  std::fprintf(file, "digraph graph_0 {\n");
  for (const auto& node : graph.nodes) {
    const auto* launch = std::get_if<LaunchOperation>(&node->operation);
    std::fprintf(file, "  \"%p\" [label=\"%s%s%s\"];\n", static_cast<const void*>(node.get()),
                 name_of(type_of(*node)), launch != nullptr ? " " : "",
                 launch != nullptr ? launch->function->name.c_str() : "");
    for (const GraphNode* before : node->dependencies)
      std::fprintf(file, "  \"%p\" -> \"%p\";\n", static_cast<const void*>(before),
                   static_cast<const void*>(node.get()));
  }
  std::fprintf(file, "}\n");
  return std::fclose(file) == 0 ? Error::success : Error::invalid_value;
}

}  // namespace

namespace manyscale::cudart {

Error list_edges(Graph* handle, GraphNode** from, GraphNode** to, std::size_t* count) {
  const Graph* graph = find_graph(handle);
  if (graph == nullptr || count == nullptr) return Error::invalid_value;
  std::vector<GraphNode*> sources;
  std::vector<GraphNode*> targets;
  for (const auto& node : graph->nodes)
    for (GraphNode* before : node->dependencies) {
      sources.push_back(before);
      targets.push_back(node.get());
    }
  std::size_t room = *count;
  if (const Error error = list(sources, from, count); error != Error::success) return error;
  return list(targets, to, to != nullptr ? &room : count);
}

Error list_dependencies(GraphNode* handle, GraphNode** nodes, std::size_t* count) {
  const GraphNode* node = find_node(handle);
  return node == nullptr ? Error::invalid_value : list(node->dependencies, nodes, count);
}

Error list_dependents(GraphNode* handle, GraphNode** nodes, std::size_t* count) {
  GraphNode* node = find_node(handle);
  if (node == nullptr) return Error::invalid_value;
  std::vector<GraphNode*> after;
  for (const auto& each : node->graph->nodes)
    if (std::ranges::find(each->dependencies, node) != each->dependencies.end()) after.push_back(each.get());
  return list(after, nodes, count);
}

Error change_dependencies(Graph* handle, GraphNode* const* from, GraphNode* const* to, std::size_t count,
                          bool add) {
  if (find_graph(handle) == nullptr || (count != 0 && (from == nullptr || to == nullptr)))
    return Error::invalid_value;
  for (std::size_t i = 0; i < count; ++i) {
    GraphNode* before = find_node(from[i]);
    GraphNode* after = find_node(to[i]);
    if (before == nullptr || after == nullptr || before == after) return Error::invalid_value;
    auto& dependencies = after->dependencies;
    const auto found = std::ranges::find(dependencies, before);
    if ((found == dependencies.end()) != add) return Error::invalid_value;
    if (add) {
      dependencies.push_back(before);
    } else {
      dependencies.erase(found);
    }
  }
  return Error::success;
}

}  // namespace manyscale::cudart

extern "C" {

Error cudaGraphCreate(Graph** graph, unsigned flags) {
  if (graph == nullptr || flags != 0) return finish(Error::invalid_value);
  *graph = create_graph();
  return finish(Error::success);
}

Error cudaGraphDestroy(Graph* graph) {
  if (find_graph(graph) == nullptr) return finish(Error::invalid_value);
  destroy_graph(graph);
  return finish(Error::success);
}

Error cudaGraphClone(Graph** made, Graph* original) {
  const Graph* graph = find_graph(original);
  if (graph == nullptr || made == nullptr) return finish(Error::invalid_value);
  auto copy = clone(*graph);
  *made = copy.get();
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  all.graphs.emplace(copy.get(), std::move(copy));
  return finish(Error::success);
}

Error cudaGraphNodeFindInClone(GraphNode** node, GraphNode* original, Graph* copy) {
  const Graph* graph = find_graph(copy);
  if (graph == nullptr || node == nullptr) return finish(Error::invalid_value);
  const auto found = graph->clones.find(original);
  if (found == graph->clones.end()) return finish(Error::invalid_value);
  *node = found->second;
  return finish(Error::success);
}

Error cudaGraphGetNodes(Graph* handle, GraphNode** nodes, std::size_t* count) {
  const Graph* graph = find_graph(handle);
  return finish(graph == nullptr ? Error::invalid_value : list(nodes_of(*graph, false), nodes, count));
}

Error cudaGraphGetRootNodes(Graph* handle, GraphNode** nodes, std::size_t* count) {
  const Graph* graph = find_graph(handle);
  return finish(graph == nullptr ? Error::invalid_value : list(nodes_of(*graph, true), nodes, count));
}

Error cudaGraphDestroyNode(GraphNode* handle) {
  GraphNode* node = find_node(handle);
  if (node == nullptr) return finish(Error::invalid_value);
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  all.nodes.erase(node);
  Graph& graph = *node->graph;
  for (const auto& each : graph.nodes) std::erase(each->dependencies, node);
  std::erase_if(graph.nodes, [&](const auto& each) { return each.get() == node; });
  return finish(Error::success);
}

Error cudaGraphNodeGetType(GraphNode* handle, int* type) {
  const GraphNode* node = find_node(handle);
  if (node == nullptr || type == nullptr) return finish(Error::invalid_value);
  *type = static_cast<int>(type_of(*node));
  return finish(Error::success);
}

Error cudaGraphDebugDotPrint(Graph* handle, const char* path, unsigned) {
  const Graph* graph = find_graph(handle);
  return finish(graph == nullptr ? Error::invalid_value : write_dot(*graph, path));
}

}  // extern "C"
