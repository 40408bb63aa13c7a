// SPDX-License-Identifier: Apache-2.0
// A simulation: components, the links between them and the events in flight. There is no global state;
// several simulations can run in one process at the same time.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/component.hpp"
#include "engine/partitioner.hpp"
#include "engine/port.hpp"
#include "engine/thread_governor.hpp"

namespace manyscale {

class Exchange;

// Why a run ended.
enum class Outcome {
  finished,     // no event is left and nobody waits
  limit,        // the time limit was reached
  stopped,      // a model asked for the end
  interrupted,  // the caller asked for the end
  deadlock,     // no event is left but somebody waits
};

struct Progress {
  Time now = 0;
  std::uint64_t events = 0;
};

struct RunOptions {
  Time until = never;  // events up to and including this time are run
  std::uint32_t threads = 1;
  // Into how many partitions the system is divided, at least. More than there are threads take turns, so that
  // what a thread works on for a while fits its caches.
  std::uint32_t partitions = 1;
  std::string queue = "radix";
  // Called on the calling thread every few tens of milliseconds; false ends the run.
  std::function<bool(const Progress&)> poll;
  // Where this is one of several processes that run the simulation together, how they meet. Each then has a
  // share of the components, and runs it on one thread.
  Exchange* exchange = nullptr;
};

struct ComponentWait {
  std::string component;
  Wait wait;
};

struct RunReport {
  Outcome outcome = Outcome::finished;
  Time now = 0;
  std::uint64_t events = 0;   // in this run
  std::uint64_t windows = 0;  // in this run
  std::uint32_t threads = 1;
  std::uint32_t processes = 1;
  Time lookahead = never;
  double wall_seconds = 0;
  std::size_t pending_events = 0;
  std::vector<ComponentWait> waits;  // of a deadlock
};

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed = 0) : seed_(seed) {
    before_.queue = std::make_unique<ClosedQueue>();
  }
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Takes a component in under a name that no other has. Throws SimulationError otherwise.
  Component& add(std::string name, std::unique_ptr<Component> component);
  // Joins two ports by a link; what is sent on either side arrives on the other after the latency. The
  // protocol and roles must fit.
  void connect(PortBase& a, PortBase& b, Time latency);
  // Hints for the partitioner.
  void set_group(const Component& component, std::string group);
  void set_weight(const Component& component, double weight);
  // Links shorter than this are never cut; 0 chooses.
  void set_cut_latency(Time latency) { cut_latency_ = latency; }
  // From now on components can emit spans and counters.
  void enable_timeline();

  // Says what is wrong with the graph, one sentence each; empty when it can run.
  std::vector<std::string> problems() const;
  // Runs on from where the last run ended. What a handler throws comes out here; of several, the earliest in
  // simulated time.
  RunReport run(const RunOptions& options);

  const std::vector<std::unique_ptr<Component>>& components() const { return components_; }
  const Graph& graph() const { return graph_; }
  Clustering clusters() const { return make_clusters(graph_, cut_latency_); }
  std::uint64_t seed() const { return seed_; }
  Time now() const { return now_; }
  // Of the components that this process runs.
  StatisticRows statistics();
  // Whether this process runs a component; another one does otherwise.
  bool runs(const Component& component) const;
  // One timeline per component, in their order; empty when not enabled.
  const std::vector<std::unique_ptr<Timeline>>& timelines() const { return timelines_; }

 private:
  void elaborate();
  std::vector<std::uint32_t> assign(const Clustering& clustering, const RunOptions& options) const;
  void partition(const Clustering& clustering, const RunOptions& options);
  void start_components(bool first);
  // Of a run on several processes: simulation_processes.cpp.
  void set_processes(const Exchange* exchange);
  void agree(Exchange& exchange, RunReport& report, bool& stop_requested, bool& interrupted);
  std::vector<ComponentWait> all_waits(Exchange& exchange) const;
  static void collect_outgoing(Partition& partition, std::vector<Event>& events);
  std::vector<ComponentWait> collect_waits() const;

  std::uint64_t seed_;
  Time now_ = 0;
  Time cut_latency_ = 0;
  bool started_ = false;
  bool running_ = false;
  bool timeline_enabled_ = false;
  std::uint32_t process_ = 0;  // of those that run the simulation
  std::uint32_t processes_ = 1;
  ThreadGovernor governor_;
  Graph graph_;
  std::unordered_set<std::string> names_;
  std::vector<std::unique_ptr<Component>> components_;
  std::vector<std::unique_ptr<Timeline>> timelines_;
  std::vector<Endpoint> endpoints_;
  Partition before_;  // where all components are until the first run
  std::vector<std::unique_ptr<Partition>> partitions_;
};

}  // namespace manyscale
