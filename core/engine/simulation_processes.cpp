// SPDX-License-Identifier: Apache-2.0
// A simulation as one of several processes that run it together: which components are whose, and how all come
// to the same end.
#include <algorithm>

#include "engine/exchange.hpp"
#include "engine/process_runner.hpp"
#include "engine/simulation.hpp"

namespace manyscale {

namespace {

// What a process tells the others when the windows are over.
struct Ending {
  std::uint64_t events, pending;
  Time now;
  std::uint32_t stop_requested, interrupted, failed;
  Time error_time;
  std::uint64_t error_order;
};

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& thrown) {
    return thrown.what();
  } catch (...) {
    return "an unknown error";
  }
}

// The clusters, with those that hold one of the members made one.
Clustering keep_together(Clustering clustering, const std::vector<bool>& member) {
  std::vector<bool> joined(clustering.count, false);
  for (std::size_t node = 0; node < member.size(); ++node) {
    if (member[node]) joined[clustering.cluster[node]] = true;
  }
  constexpr std::uint32_t none = ~0u;
  std::uint32_t count = 0, together = none;
  std::vector<std::uint32_t> number(clustering.count);
  for (std::uint32_t cluster = 0; cluster < clustering.count; ++cluster) {
    if (joined[cluster] && together != none) {
      number[cluster] = together;
      continue;
    }
    if (joined[cluster]) together = count;
    number[cluster] = count++;
  }
  for (auto& cluster : clustering.cluster) cluster = number[cluster];
  clustering.count = count;
  return clustering;
}

}  // namespace

void Simulation::set_processes(const Exchange* exchange) {
  const std::uint32_t processes = exchange == nullptr ? 1 : exchange->processes();
  if (started_ && processes != processes_) {
    throw SimulationError("the simulation was begun by " + std::to_string(processes_) +
                          " processes, which have to run it on together");
  }
  processes_ = processes;
  process_ = exchange == nullptr ? 0 : exchange->process();
}

bool Simulation::runs(const Component& component) const {
  return processes_ == 1 || component.partition_index() == process_;
}

// The partition of each component: for threads by the clusters as they are; for processes so that components
// that have to be together are in the first.
std::vector<std::uint32_t> Simulation::assign(const Clustering& clustering, const RunOptions& options) const {
  if (processes_ == 1)
    return assign_partitions(graph_, clustering, std::max(options.threads, options.partitions));
  std::vector<bool> tied(components_.size());
  const Component* first = nullptr;
  for (const auto& component : components_) {
    const auto* distributable = dynamic_cast<const Distributable*>(component.get());
    if (distributable == nullptr) {
      throw SimulationError("this system cannot be divided among processes: '" + component->name() +
                            "' shares what it works on with others; run it on one process, with several "
                            "threads");
    }
    tied[component->id()] = distributable->stays_with_first();
    if (tied[component->id()] && first == nullptr) first = component.get();
  }
  const Clustering shares = keep_together(clustering, tied);
  if (shares.count == 1) {
    throw SimulationError("this system cannot be divided among processes: " +
                          (first == nullptr || clustering.count == 1
                               ? std::string("no link of it is long enough to be cut")
                               : "'" + first->name() + "' and others have to stay together") +
                          "; run it on one process");
  }
  auto part = assign_partitions(graph_, shares, processes_);
  const std::uint32_t theirs = first == nullptr ? 0 : part[first->id()];
  for (auto& number : part) {
    if (number == theirs || number == 0) number = theirs - number;
  }
  return part;
}

// Makes the numbers of a run those of all processes, and throws what ended it elsewhere.
void Simulation::agree(Exchange& exchange, RunReport& report, bool& stop_requested, bool& interrupted) {
  const Partition& own = *partitions_[process_];
  const Ending ending{report.events, report.pending_events, now_,           stop_requested,
                      interrupted,   own.error != nullptr,  own.error_time, own.error_order};
  Bytes bytes;
  put(bytes, ending);
  put(bytes, own.error ? message_of(own.error) : std::string());
  report.events = report.pending_events = 0;
  const auto all = share_with_all(exchange, bytes);
  std::uint32_t failed = exchange.processes();
  Ending earliest{};
  std::string why;
  for (std::uint32_t process = 0; process < exchange.processes(); ++process) {
    BytesReader reader(all[process]);
    const auto theirs = reader.take<Ending>();
    report.events += theirs.events;
    report.pending_events += theirs.pending;
    now_ = std::max(now_, theirs.now);
    stop_requested |= theirs.stop_requested != 0;
    interrupted |= theirs.interrupted != 0;
    if (theirs.failed != 0 &&
        (failed == exchange.processes() || theirs.error_time < earliest.error_time ||
         (theirs.error_time == earliest.error_time && theirs.error_order < earliest.error_order))) {
      failed = process;
      earliest = theirs;
      why = reader.take_text();
    }
  }
  if (failed < exchange.processes() && failed != process_) throw SimulationError(why);
}

std::vector<ComponentWait> Simulation::all_waits(Exchange& exchange) const {
  Bytes bytes;
  for (const auto& component : components_) {
    if (!runs(*component)) continue;
    for (const auto& wait : component->waits()) {
      put(bytes, component->id());
      put(bytes, wait.what);
      put(bytes, wait.holder);
    }
  }
  std::vector<std::pair<std::uint32_t, Wait>> found;
  for (const auto& theirs : share_with_all(exchange, bytes)) {
    BytesReader reader(theirs);
    while (!reader.empty()) {
      const auto component = reader.take<std::uint32_t>();
      const std::string what = reader.take_text();
      found.push_back({component, {what, reader.take_text()}});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ComponentWait> waits;
  for (auto& [component, wait] : found) waits.push_back({components_.at(component)->name(), std::move(wait)});
  return waits;
}

}  // namespace manyscale
