// SPDX-License-Identifier: Apache-2.0
#include "engine/simulation.hpp"

#include <utility>

#include <algorithm>
#include <chrono>

#include "engine/exchange.hpp"
#include "engine/window_runner.hpp"

namespace manyscale {

Component& Simulation::add(std::string name, std::unique_ptr<Component> component) {
  if (started_) throw SimulationError("cannot add '" + name + "': the simulation has started");
  if (!names_.insert(name).second) throw SimulationError("there is already a component named '" + name + "'");
  if (components_.size() > Order::max_source) throw SimulationError("more than 16,777,216 components");
  component->name_ = std::move(name);
  component->id_ = static_cast<std::uint32_t>(components_.size());
  component->partition_ = &before_;
  component->random_ = Random(seed_, hash_name(component->name_));
  graph_.nodes.push_back({component->name_, 1.0, ""});
  components_.push_back(std::move(component));
  return *components_.back();
}

void Simulation::connect(PortBase& a, PortBase& b, Time latency) {
  if (started_) throw SimulationError("cannot connect " + a.path() + ": the simulation has started");
  if (a.protocol() != b.protocol()) {
    throw SimulationError("cannot connect " + a.path() + " to " + b.path() + ": one speaks '" + a.protocol() +
                          "', the other '" + b.protocol() + "'");
  }
  if (a.role() != b.other_role() || b.role() != a.other_role()) {
    throw SimulationError("cannot connect " + a.path() + " to " + b.path() + ": both are '" + a.role() +
                          "' of the protocol '" + a.protocol() + "'; connect to a port that is '" +
                          a.other_role() + "'");
  }
  for (const PortBase* port : {&a, &b}) {
    if (port->links() != Links::many && port->width() == 1) {
      throw SimulationError("cannot connect " + a.path() + " to " + b.path() + ": " + port->path() +
                            " takes one link and is connected to " + port->lanes()[0].peer->path());
    }
  }
  if (latency < 0)
    throw SimulationError("the latency between " + a.path() + " and " + b.path() + " is negative");
  const auto lane_a = a.width();
  const auto lane_b = &a == &b ? lane_a + 1 : b.width();
  a.lanes_.push_back({latency, 0, 0, lane_b, &b});
  b.lanes_.push_back({latency, 0, 0, lane_a, &a});
  graph_.edges.push_back({a.owner().id(), b.owner().id(), latency});
}

void Simulation::set_group(const Component& component, std::string group) {
  graph_.nodes[component.id()].group = std::move(group);
}

void Simulation::set_weight(const Component& component, double weight) {
  graph_.nodes[component.id()].weight = weight;
}

void Simulation::enable_timeline() {
  if (started_) throw SimulationError("ask for a timeline before the first run");
  timeline_enabled_ = true;
}

std::vector<std::string> Simulation::problems() const {
  std::vector<std::string> found;
  if (components_.empty()) found.emplace_back("the system has no components");
  for (const auto& component : components_) {
    for (const PortBase* port : component->ports()) {
      if (port->links() != Links::optional && port->width() == 0) {
        found.push_back("port " + port->path() + " is not connected; it needs a link to a port that is '" +
                        port->other_role() + "' of the protocol '" + port->protocol() + "'");
      }
    }
  }
  // Two groups are a wish to cut between them, which a link without latency cannot grant.
  for (const auto& edge : graph_.edges) {
    const auto& a = graph_.nodes[edge.a];
    const auto& b = graph_.nodes[edge.b];
    if (edge.latency == 0 && !a.group.empty() && !b.group.empty() && a.group != b.group) {
      found.push_back("zero latency across a cut: " + a.name + " (group '" + a.group + "') and " + b.name +
                      " (group '" + b.group +
                      "') are linked with no latency; give the link a latency or put both "
                      "into one group");
    }
  }
  return found;
}

void Simulation::elaborate() {
  endpoints_.clear();
  for (const auto& component : components_) {
    component->first_endpoint_ = static_cast<std::uint32_t>(endpoints_.size());
    endpoints_.insert(endpoints_.end(), component->endpoints().begin(), component->endpoints().end());
  }
  for (const auto& component : components_) {
    for (PortBase* port : component->ports()) {
      for (auto& lane : port->lanes_)
        lane.target = lane.peer->owner().first_endpoint() + lane.peer->endpoint_;
    }
  }
  if (timeline_enabled_) {
    for (const auto& component : components_) {
      timelines_.push_back(std::make_unique<Timeline>());
      component->timeline_ = timelines_.back().get();
    }
  }
}

void Simulation::partition(const Clustering& clustering, const RunOptions& options) {
  std::vector<Event> pending;
  for (const auto& partition : partitions_) {
    partition->queue->drain(pending);
    collect_outgoing(*partition, pending);
  }
  const auto part = assign(clustering, options);
  const std::uint32_t partitions = std::max(1 + *std::max_element(part.begin(), part.end()), processes_);
  partitions_.clear();
  for (std::uint32_t index = 0; index < partitions; ++index) {
    auto partition = std::make_unique<Partition>();
    partition->index = index;
    partition->now = now_;
    partition->queue = make_queue(options.queue);
    for (auto& outgoing : partition->outgoing) outgoing.to.resize(partitions);
    partitions_.push_back(std::move(partition));
  }
  for (const auto& component : components_) component->partition_ = partitions_[part[component->id()]].get();
  for (const auto& component : components_) {
    for (PortBase* port : component->ports()) {
      for (auto& lane : port->lanes_) lane.partition = part[lane.peer->owner().id()];
    }
  }
  for (const Event& event : pending) {
    partitions_[part[endpoints_[event.target].component->id()]]->queue->push(event);
  }
}

// Takes what a partition has sent to others outside of any window.
void Simulation::collect_outgoing(Partition& partition, std::vector<Event>& events) {
  for (auto& outgoing : partition.outgoing) {
    for (auto& box : outgoing.to) {
      events.insert(events.end(), box.begin(), box.end());
      box.clear();
    }
    outgoing.earliest = never;
    outgoing.receivers = 0;
  }
}

void Simulation::start_components(bool first) {
  try {
    if (first && processes_ > 1) {
      for (const auto& component : components_) {
        if (auto* distributable = dynamic_cast<Distributable*>(component.get()))
          distributable->distribute(process_, processes_);
      }
    }
    for (const auto& component : components_) {
      if (!runs(*component)) continue;
      if (first) component->start();
      component->resume();
    }
  } catch (...) {
    if (processes_ == 1) throw;
    // The other processes wait for this one at their first barrier, and get the error there.
    Partition& own = *partitions_[process_];
    own.error = std::current_exception();
    own.error_time = own.now;
  }
  if (processes_ > 1) return;  // what was sent is handed over at the first barrier
  std::vector<Event> sent;
  for (const auto& partition : partitions_) collect_outgoing(*partition, sent);
  for (const Event& event : sent) endpoints_[event.target].component->partition_->queue->push(event);
}

RunReport Simulation::run(const RunOptions& options) {
  if (running_) throw SimulationError("this simulation is running already");
  for (const auto& problem : problems()) throw SimulationError(problem);
  struct Running {
    bool& flag;
    explicit Running(bool& f) : flag(f) { flag = true; }
    ~Running() { flag = false; }
  } running(running_);

  const auto began = std::chrono::steady_clock::now();
  set_processes(options.exchange);
  if (!started_) elaborate();
  const Clustering clustering = clusters();
  partition(clustering, options);
  start_components(!std::exchange(started_, true));

  WindowRunner runner(partitions_, endpoints_, clustering.lookahead, options, governor_);
  runner.run();

  RunReport report;
  const Partition* failed = nullptr;
  bool stop_requested = false, interrupted = runner.interrupted();
  for (const auto& partition : partitions_) {
    if (processes_ > 1 && partition->index != process_) continue;
    report.events += partition->events;
    report.pending_events += partition->queue->size();
    now_ = std::max(now_, partition->now);
    stop_requested |= partition->stop_requested;
    if (partition->error &&
        (failed == nullptr || partition->error_time < failed->error_time ||
         (partition->error_time == failed->error_time && partition->error_order < failed->error_order))) {
      failed = partition.get();
    }
  }
  if (options.exchange != nullptr) agree(*options.exchange, report, stop_requested, interrupted);
  if (failed != nullptr) {
    const std::exception_ptr error = failed->error;
    for (const auto& partition : partitions_) partition->error = nullptr;
    std::rethrow_exception(error);
  }

  if (interrupted) {
    report.outcome = Outcome::interrupted;
  } else if (stop_requested) {
    report.outcome = Outcome::stopped;
  } else if (report.pending_events > 0) {
    report.outcome = Outcome::limit;
    now_ = std::max(now_, options.until);
  } else {
    report.waits = processes_ > 1 ? all_waits(*options.exchange) : collect_waits();
    report.outcome = report.waits.empty() ? Outcome::finished : Outcome::deadlock;
  }
  // Partitions where nothing happened lately are as late as the others: their statistics may depend on the
  // time.
  for (const auto& partition : partitions_) partition->now = now_;
  report.now = now_;
  report.windows = runner.windows();
  report.threads = processes_ > 1 ? 1 : runner.threads();
  report.processes = processes_;
  report.lookahead = clustering.lookahead;
  report.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return report;
}

std::vector<ComponentWait> Simulation::collect_waits() const {
  std::vector<ComponentWait> waits;
  for (const auto& component : components_) {
    if (!runs(*component)) continue;
    for (auto& wait : component->waits()) waits.push_back({component->name(), std::move(wait)});
  }
  return waits;
}

StatisticRows Simulation::statistics() {
  StatisticRows rows;
  for (const auto& component : components_) {
    if (!runs(*component)) continue;
    component->settle();
    for (const auto& info : component->statistics()) rows.add(component->name(), info);
  }
  return rows;
}

}  // namespace manyscale
