// SPDX-License-Identifier: Apache-2.0
// Before and after playing a trace: who plays where, and who waits for what.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "cpu/replay/replay_source.hpp"

namespace manyscale::cpu {

void ReplaySource::play(RecordedTrace trace, const std::vector<TaskAssignment>& places) {
  if (trace_) throw SimulationError("a trace was given already");
  const auto copies = static_cast<std::uint32_t>(spec_.copies);
  if (!trace.block) throw SimulationError("the trace has no source of blocks");
  trace_ = std::make_unique<const RecordedTrace>(std::move(trace));
  arbiter_ = std::make_unique<Arbiter>(*trace_, copies, spec_.private_locks);
  blocks_ = std::make_unique<TraceBlocks>(*trace_);
  queues_.resize(copies);
  new_workers_.resize(copies);
  if (spec_.offset) offset_.emplace(*trace_, copies);
  worker_of_.assign(arbiter_->threads() + arbiter_->tasks(), Arbiter::none);
  place_threads();
  scheduler_ = std::make_unique<TaskScheduler>(spec_.scheduler, static_cast<std::uint32_t>(spec_.cores),
                                               copies, task_facts(places));
}

ReplaySource::Worker& ReplaySource::add_worker(std::uint32_t lane, std::uint64_t thread) {
  if (thread > 65535) throw SimulationError("there are more than 65,536 threads to play");
  workers_.push_back(std::make_unique<Worker>());
  Worker& worker = *workers_.back();
  worker.number = static_cast<std::uint32_t>(workers_.size() - 1);
  worker.lane = lane;
  worker.thread = static_cast<std::uint16_t>(thread);
  lanes_[lane]->workers.push_back(&worker);
  return worker;
}

// Gives each thread its core, as the running program would; cores without one have a worker for tasks.
void ReplaySource::place_threads() {
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
    const std::uint64_t place = std::uint64_t{stream.process} * part + counts[{copy, stream.process}]++;
    const auto lane = copy * cores_of_copy() + static_cast<std::uint32_t>(place % cores_of_copy());
    Worker& worker = add_worker(lane, copy * threads + stream.thread);
    worker.players.emplace_back(replica, arbiter_->stream_of(replica));
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

// A thread that begins as a worker does not exist before; its core need not know of it.
void ReplaySource::await_first_region(Worker& worker) {
  if (worker.players.empty()) return;
  Player& player = worker.players.back();
  const Record* first = player.cursor.peek(*blocks_, *trace_);
  if (first == nullptr || !is_beginning(*first)) return;
  player.node = *first;
  player.cursor.next(*blocks_, *trace_);
  if (arbiter_->arrive(player.replica, player.node)) return;
  player.waiting = true;
  worker.resuming = false;
  std::erase(lanes_[worker.lane]->ready, &worker);
}

std::vector<TaskFacts> ReplaySource::task_facts(const std::vector<TaskAssignment>& places) const {
  const std::uint32_t tasks = arbiter_->tasks() / static_cast<std::uint32_t>(spec_.copies);
  std::vector<const StreamInfo*> streams;
  for (std::uint32_t i = 0; i < tasks; ++i)
    streams.push_back(&trace_->streams[arbiter_->stream_of(arbiter_->threads() + i)]);
  std::vector<TaskFacts> facts(tasks);
  for (std::uint32_t i = 0; i < tasks; ++i) {
    facts[i].dependences = streams[i]->dependences;
    facts[i].position = i;
  }
  if (spec_.scheduler == "critical_path") {
    const std::vector<std::uint64_t> paths = remaining_paths(streams);
    for (std::uint32_t i = 0; i < tasks; ++i) facts[i].remaining_path = paths[i];
  } else if (spec_.scheduler == "recorded") {
    std::unordered_map<std::uint16_t, std::uint32_t> cores;  // by recorded thread
    for (Replica thread = 0; thread < arbiter_->threads() && arbiter_->copy_of(thread) == 0; ++thread)
      cores[trace_->streams[arbiter_->stream_of(thread)].thread] = workers_[worker_of_[thread]]->lane;
    for (std::uint32_t i = 0; i < tasks; ++i) facts[i].core = cores[streams[i]->thread];
  } else if (spec_.scheduler == "task2core") {
    std::unordered_map<std::uint64_t, std::uint32_t> index;
    for (std::uint32_t i = 0; i < tasks; ++i) index.emplace(streams[i]->subject, i);
    std::vector<bool> placed(tasks);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto found = index.find(places[i].task);
      if (found == index.end())
        throw SimulationError("task2core: the trace has no task " + std::to_string(places[i].task));
      if (places[i].core >= cores_of_copy()) {
        throw SimulationError("task2core: task " + std::to_string(places[i].task) + " is to run on core " +
                              std::to_string(places[i].core) + ", but there are " +
                              std::to_string(cores_of_copy()) + " cores, counted from 0");
      }
      if (placed[found->second])
        throw SimulationError("task2core: task " + std::to_string(places[i].task) + " has two cores");
      placed[found->second] = true;
      facts[found->second].core = places[i].core;
      facts[found->second].position = i;
    }
    const auto missing = std::find(placed.begin(), placed.end(), false);
    if (missing != placed.end()) {
      throw SimulationError(
          "task2core: task " +
          std::to_string(streams[static_cast<std::size_t>(missing - placed.begin())]->subject) +
          " has no core");
    }
  }
  return facts;
}

std::vector<Wait> ReplaySource::waits() const {
  constexpr std::size_t most = 64;
  std::vector<Wait> waits;
  if (!trace_ || ended_) return waits;
  for (const auto& worker : workers_) {
    for (const Player& player : worker->players) {
      if (!player.waiting || waits.size() == most) continue;
      const std::string what = arbiter_->wait_of(player.replica);
      if (!what.empty()) waits.push_back({"core " + std::to_string(worker->lane) + ": " + what, ""});
    }
  }
  if (scheduler_->size() > 0)
    waits.push_back({std::to_string(scheduler_->size()) + " tasks could run, but no core takes them", ""});
  return waits;
}

}  // namespace manyscale::cpu
