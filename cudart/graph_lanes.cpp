// SPDX-License-Identifier: Apache-2.0
#include "graph_lanes.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "graphs.hpp"
#include "process.hpp"

namespace manyscale::cudart {

namespace {

constexpr std::size_t kMostLanes = 32;
constexpr std::size_t kNone = ~std::size_t{0};

// A node in its lane.
struct Step {
  const GraphNode* node = nullptr;
  std::size_t lane = 0;
  bool first = false;              // in a lane that is not the first
  std::vector<std::size_t> waits;  // steps of other lanes that it depends on
  std::size_t event = kNone;       // that says when it is done, if others wait for it
};

struct Plan {
  std::vector<Step> steps;
  std::size_t lanes = 0;
  std::size_t events = 0;
};

// The server answers some operations only when they are done: these come after all others that can go.
bool holds_the_host(const GraphNode& node) {
  return type_of(node) == NodeType::host || type_of(node) == NodeType::copy;
}

// Nodes so that each comes after those it depends on, those that hold the host as late as possible.
std::vector<const GraphNode*> giving_order(const Graph& graph) {
  std::unordered_map<const GraphNode*, std::size_t> waits_for;
  std::unordered_map<const GraphNode*, std::vector<const GraphNode*>> dependents;
  std::vector<const GraphNode*> ready, holding, order;
  const auto add = [&](const GraphNode* node) { (holds_the_host(*node) ? holding : ready).push_back(node); };
  for (const auto& node : graph.nodes) {
    waits_for[node.get()] = node->dependencies.size();
    for (const GraphNode* before : node->dependencies) dependents[before].push_back(node.get());
    if (node->dependencies.empty()) add(node.get());
  }
  std::size_t next_ready = 0, next_holding = 0;
  while (next_ready < ready.size() || next_holding < holding.size()) {
    const GraphNode* node = next_ready < ready.size() ? ready[next_ready++] : holding[next_holding++];
    order.push_back(node);
    for (const GraphNode* after : dependents[node])
      if (--waits_for[after] == 0) add(after);
  }
  return order;
}

// A node follows one it depends on in its lane if nothing else does yet; else it begins a lane.
Plan plan_of(const Graph& graph) {
  Plan plan;
  std::vector<std::size_t> last;  // by lane: its last step
  std::unordered_map<const GraphNode*, std::size_t> step_of;
  for (const GraphNode* node : giving_order(graph)) {
    const std::size_t index = plan.steps.size();
    Step step{.node = node, .lane = kNone, .waits = {}};
    for (const GraphNode* before : node->dependencies) {
      const std::size_t at = step_of.at(before);
      if (step.lane == kNone && last[plan.steps[at].lane] == at) step.lane = plan.steps[at].lane;
    }
    if (step.lane == kNone) {
      step.lane = last.size() < kMostLanes ? last.size() : index % kMostLanes;
      if (step.lane == last.size()) {
        last.push_back(index);
        step.first = step.lane != 0;
      }
    }
    for (const GraphNode* before : node->dependencies) {
      const std::size_t at = step_of.at(before);
      if (plan.steps[at].lane == step.lane) continue;
      step.waits.push_back(at);
      if (plan.steps[at].event == kNone) plan.steps[at].event = plan.events++;
    }
    last[step.lane] = index;
    step_of.emplace(node, index);
    plan.steps.push_back(std::move(step));
  }
  plan.lanes = last.size();
  return plan;
}

// While it lives, requests go to the device of a stream.
class DeviceOf {
 public:
  explicit DeviceOf(const Stream& stream) : before_(current_device()) {
    if (stream.number != 0) set_current_device(stream.device);
  }
  ~DeviceOf() { set_current_device(before_); }
  DeviceOf(const DeviceOf&) = delete;
  DeviceOf& operator=(const DeviceOf&) = delete;

 private:
  int before_;
};

}  // namespace

GraphLanes::~GraphLanes() {
  give_back();
}

void GraphLanes::give_back() {
  const UntimedCalls untimed;
  for (Stream* stream : streams_) destroy_stream(stream);
  for (Event* event : events_) destroy_event(event);
  streams_.clear();
  events_.clear();
}

Error GraphLanes::provide(std::size_t streams, std::size_t events, const Stream& like) {
  const UntimedCalls untimed;
  Error error = Error::success;
  // After cudaDeviceReset they are gone; a launch on another device needs others.
  const bool usable = streams_.empty() || (find_stream(streams_.front(), DefaultStream::legacy, error) &&
                                           streams_.front()->device == current_device() &&
                                           streams_.front()->priority == like.priority);
  if (!usable) give_back();
  while (streams_.size() < streams) {
    Stream* made = nullptr;
    error = create_stream(&made, wire::kNonBlocking, like.priority);
    if (error != Error::success) return error;
    streams_.push_back(made);
  }
  while (events_.size() < events) {
    Event* made = nullptr;
    constexpr unsigned without_time = 2;
    error = create_event(&made, without_time);
    if (error != Error::success) return error;
    events_.push_back(made);
  }
  return Error::success;
}

Error GraphLanes::perform(Stream& stream, const Graph& graph, const std::set<const GraphNode*>& without) {
  if (const Error error = connect_thread(); error != Error::success) return error;
  const DeviceOf device(stream);
  const Plan plan = plan_of(graph);
  const std::size_t others = plan.lanes > 1 ? plan.lanes - 1 : 0;
  // One event for the beginning, and one for the end of each lane beside the first.
  const std::size_t begin = plan.events;
  if (others != 0)
    if (const Error error = provide(others, plan.events + 1 + others, stream); error != Error::success)
      return error;
  const auto lane = [&](std::size_t number) -> Stream& {
    return number == 0 ? stream : *streams_[number - 1];
  };
  std::optional<UntimedCalls> untimed;
  const auto give = [&](Stream& to, const Operation& operation) {
    const Error error = manyscale::cudart::perform(to, operation, Wait::no);
    if (!untimed) untimed.emplace();  // from the second on
    return error;
  };
  const auto record = [&](std::size_t event, Stream& in) {
    return give(in, RecordOperation{events_[event]});
  };
  const auto wait = [&](Stream& in, std::size_t event) { return give(in, WaitOperation{events_[event]}); };

  Error error = others != 0 ? record(begin, stream) : Error::success;
  for (const Step& step : plan.steps) {
    Stream& in = lane(step.lane);
    if (error == Error::success && step.first) error = wait(in, begin);
    for (const std::size_t before : step.waits)
      if (error == Error::success) error = wait(in, plan.steps[before].event);
    if (error == Error::success && !without.contains(step.node)) error = give(in, step.node->operation);
    if (error == Error::success && step.event != kNone) error = record(step.event, in);
    if (error != Error::success) return error;
  }
  for (std::size_t i = 1; i <= others; ++i) {
    if (error == Error::success) error = record(begin + i, lane(i));
    if (error == Error::success) error = wait(stream, begin + i);
  }
  return error;
}

}  // namespace manyscale::cudart
