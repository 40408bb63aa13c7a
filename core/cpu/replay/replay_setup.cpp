// SPDX-License-Identifier: Apache-2.0
// Set-up of a replay: which core executes which thread and task. Diagnosis of a deadlock.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "cpu/replay/replay_source.hpp"

namespace manyscale::cpu {

void ReplaySource::load_trace(RecordedTrace trace, const std::vector<TaskAssignment>& assignments) {
  if (trace_) throw SimulationError("a trace was given already");
  const auto copies = static_cast<std::uint32_t>(spec_.copies);
  if (!trace.block) throw SimulationError("the trace has no source of blocks");
  trace_ = std::make_unique<const RecordedTrace>(std::move(trace));
  arbiter_ = std::make_unique<Arbiter>(*trace_, copies, spec_.private_locks);
  blocks_ = std::make_unique<TraceBlocks>(*trace_);
  task_queues_.assign(copies, TaskQueueLock(spec_));
  new_workers_.resize(copies);
  if (spec_.offset) offset_.emplace(*trace_, copies);
  worker_of_.assign(arbiter_->threads() + arbiter_->tasks(), Arbiter::none);
  assign_threads();
  scheduler_ = std::make_unique<TaskScheduler>(spec_.scheduler, static_cast<std::uint32_t>(spec_.cores),
                                               copies, task_infos(assignments));
}

ReplaySource::Worker& ReplaySource::add_worker(std::uint32_t lane, std::uint64_t thread) {
  if (thread > 65535) throw SimulationError("there are more than 65,536 threads to replay");
  workers_.push_back(std::make_unique<Worker>());
  Worker& worker = *workers_.back();
  worker.number = static_cast<std::uint32_t>(workers_.size() - 1);
  worker.lane = lane;
  worker.thread = static_cast<std::uint16_t>(thread);
  lanes_[lane]->workers.push_back(&worker);
  return worker;
}

// Gives each thread its core, as the running program would; cores without one have a worker for tasks.
void ReplaySource::assign_threads() {
  std::uint64_t threads = 0;  // numbers in use in one copy
  std::uint32_t processes = 1;
  for (const StreamInfo& stream : trace_->streams) {
    threads = std::max<std::uint64_t>(threads, stream.thread + 1);
    processes = std::max(processes, stream.process + 1);
  }
  // The processes of a copy have parts of its cores, and their threads follow one another there.
  const std::uint32_t part = std::max<std::uint32_t>(cores_of_copy() / processes, 1);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> counts;  // by copy and process
  for (Replica replica = 0; replica < arbiter_->threads(); ++replica) {
    const std::uint32_t copy = arbiter_->copy_of(replica);
    const StreamInfo& stream = trace_->streams[arbiter_->stream_of(replica)];
    const std::uint64_t core = std::uint64_t{stream.process} * part + counts[{copy, stream.process}]++;
    const auto lane = copy * cores_of_copy() + static_cast<std::uint32_t>(core % cores_of_copy());
    Worker& worker = add_worker(lane, copy * threads + stream.thread);
    worker.executions.emplace_back(replica, arbiter_->stream_of(replica));
    worker_of_[replica] = worker.number;
    worker.resuming = true;
    lanes_[lane]->ready.push_back(&worker);
  }
  std::uint64_t next = static_cast<std::uint64_t>(spec_.copies) * threads;
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    if (!lanes_[lane]->workers.empty()) continue;
    add_worker(lane, next++);
    ++new_workers_[lane / cores_of_copy()];
  }
}

// A thread that begins as a worker does not exist before; its core has nothing to execute until then.
void ReplaySource::await_first_region(Worker& worker) {
  if (worker.executions.empty()) return;
  Execution& execution = worker.executions.back();
  const TraceNode* first = execution.cursor.peek(*blocks_, *trace_);
  if (first == nullptr || !first->is_beginning()) return;
  execution.node = *first;
  execution.cursor.next(*blocks_, *trace_);
  if (arbiter_->arrive(execution.replica, execution.node)) return;
  execution.waiting = true;
  worker.resuming = false;
  std::erase(lanes_[worker.lane]->ready, &worker);
}

// The list of task2core: the core of each task, and its turn there.
void ReplaySource::apply_assignments(const std::vector<TaskAssignment>& assignments,
                                     const std::vector<const StreamInfo*>& streams,
                                     std::vector<TaskInfo>& infos) const {
  std::unordered_map<std::uint64_t, std::uint32_t> index;
  for (std::uint32_t i = 0; i < streams.size(); ++i) index.emplace(streams[i]->subject, i);
  std::vector<bool> assigned(streams.size());
  for (std::size_t i = 0; i < assignments.size(); ++i) {
    const auto found = index.find(assignments[i].task);
    if (found == index.end())
      throw SimulationError("task2core: the trace has no task " + std::to_string(assignments[i].task));
    if (assignments[i].core >= cores_of_copy()) {
      throw SimulationError("task2core: task " + std::to_string(assignments[i].task) + " is to run on core " +
                            std::to_string(assignments[i].core) + ", but there are " +
                            std::to_string(cores_of_copy()) + " cores, counted from 0");
    }
    if (assigned[found->second])
      throw SimulationError("task2core: task " + std::to_string(assignments[i].task) + " has two cores");
    assigned[found->second] = true;
    infos[found->second].core = assignments[i].core;
    infos[found->second].position = i;
  }
  const auto missing = std::find(assigned.begin(), assigned.end(), false);
  if (missing != assigned.end()) {
    throw SimulationError(
        "task2core: task " +
        std::to_string(streams[static_cast<std::size_t>(missing - assigned.begin())]->subject) +
        " has no core");
  }
}

std::vector<TaskInfo> ReplaySource::task_infos(const std::vector<TaskAssignment>& assignments) const {
  const std::uint32_t tasks = arbiter_->tasks() / static_cast<std::uint32_t>(spec_.copies);
  std::vector<const StreamInfo*> streams;
  for (std::uint32_t i = 0; i < tasks; ++i)
    streams.push_back(&trace_->streams[arbiter_->stream_of(arbiter_->threads() + i)]);
  std::vector<TaskInfo> infos(tasks);
  for (std::uint32_t i = 0; i < tasks; ++i) {
    infos[i].dependences = streams[i]->dependences;
    infos[i].position = i;
  }
  if (spec_.scheduler == "critical_path") {
    const std::vector<std::uint64_t> paths = remaining_paths(streams);
    for (std::uint32_t i = 0; i < tasks; ++i) infos[i].remaining_path = paths[i];
  } else if (spec_.scheduler == "recorded") {
    std::unordered_map<std::uint16_t, std::uint32_t> cores;  // by recorded thread
    for (Replica thread = 0; thread < arbiter_->threads() && arbiter_->copy_of(thread) == 0; ++thread)
      cores[trace_->streams[arbiter_->stream_of(thread)].thread] = workers_[worker_of_[thread]]->lane;
    for (std::uint32_t i = 0; i < tasks; ++i) infos[i].core = cores[streams[i]->thread];
  } else if (spec_.scheduler == "task2core") {
    apply_assignments(assignments, streams, infos);
  }
  return infos;
}

std::vector<Wait> ReplaySource::waits() const {
  constexpr std::size_t most = 64;
  std::vector<Wait> waits;
  if (!trace_ || ended_) return waits;
  for (const auto& worker : workers_) {
    for (const Execution& execution : worker->executions) {
      if (!execution.waiting || waits.size() == most) continue;
      const std::string what = arbiter_->wait_of(execution.replica);
      if (!what.empty()) waits.push_back({"core " + std::to_string(worker->lane) + ": " + what, ""});
    }
  }
  if (scheduler_->size() > 0)
    waits.push_back({std::to_string(scheduler_->size()) + " tasks could run, but no core takes them", ""});
  return waits;
}

}  // namespace manyscale::cpu
