// SPDX-License-Identifier: Apache-2.0
// Replay source: the stream source that replays a recorded trace (component cpu.trace). Each core receives
// the nodes of the threads on it and of the tasks scheduled to it; the arbiter decides how long threads wait
// for each other. Instructions of the OpenMP runtime and of the kernel are not replayed: they are latencies.
//
// A core is in one of five states, as in ElasticSimMATE: init (a region or a task begins), processing, stall
// (it waits for other threads), end (the arbiter released it), or idle (it has no thread and no task).
//
// Threads stay on their cores; several on one core take turns when one has to wait. A core executes tasks
// while its thread waits at a barrier, at the end or before the beginning of a parallel region, or has ended;
// where a thread or a task waits for its own tasks, those only. A task stays on the core that began it.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cpu/replay/arbiter.hpp"
#include "cpu/replay/replay_spec.hpp"
#include "cpu/replay/task_queue_lock.hpp"
#include "cpu/replay/task_scheduler.hpp"
#include "cpu/replay/trace_cursor.hpp"
#include "cpu/stream/core_stream.hpp"
#include "engine/timer.hpp"

namespace manyscale::cpu {

class ReplaySource final : public Component {
 public:
  using Spec = ReplaySourceSpec;
  // One execution of a task.
  struct TaskRun {
    std::uint64_t task = 0;  // its number
    std::uint32_t copy = 0;
    std::uint32_t core = 0;
    Time begin = 0, end = 0;
  };

  explicit ReplaySource(const Spec& spec);

  // Sets the trace to replay; once, before the run. The assignments are for the scheduler task2core: a core
  // takes the task that is first in them of those that may run. Throws SimulationError where something does
  // not fit.
  void load_trace(RecordedTrace trace, const std::vector<TaskAssignment>& assignments = {});

  void start() override;
  void settle() override;
  std::vector<Wait> waits() const override;

  // In the order of their ends.
  const std::vector<TaskRun>& task_runs() const { return task_runs_; }

 private:
  using Replica = Arbiter::Replica;
  enum class State : std::uint8_t { init, processing, stall, end, idle };

  // A replica that is being executed.
  struct Execution {
    Execution(Replica of, std::uint32_t stream) : replica(of), cursor(stream) {}

    Replica replica;
    TraceCursor cursor;
    TraceNode node{};      // the sync node it has come to
    bool at_end = false;   // it is at its end
    bool waiting = false;  // until the arbiter releases it
    bool retries = false;  // at its lock, which was released
    Time waits_since = 0;
    Time acquire_time = 0;  // from taking the lock until it goes on
    Time resumes = 0;       // not before
    Time began = 0;
  };
  // A thread of the replay: executes a recorded thread, tasks, or both.
  struct Worker {
    std::uint32_t number = 0;
    std::uint32_t lane = 0;
    std::uint16_t thread = 0;             // what its records are marked with
    bool resuming = false;                // on its way to its lane
    std::vector<Execution> executions{};  // the one that is executed last; those before it wait for it
  };
  // The stream of one core and the threads on it.
  struct Lane : CoreStream {
    using CoreStream::CoreStream;

    std::vector<Worker*> workers{};
    std::deque<Worker*> ready{};
    Worker* current = nullptr;
    Worker* last = nullptr;             // that had the core
    Replica executing = Arbiter::none;  // whose records were written last
    std::uint32_t nodes = 0;            // of it since another's, as far as producers reach
    bool halted = false;                // until the core reaches the last record
    bool arrives = false;               // at a node, when the delay is over
    bool ends_task = false;             // when the delay is over
    State state = State::idle;
    Time since = 0;
    CoreStateStatistics states{};
  };
  struct Resume {
    std::uint32_t lane = 0;
  };
  struct Ready {
    std::uint32_t worker = 0;
  };

  void assign_threads();
  void await_first_region(Worker& worker);
  std::vector<TaskInfo> task_infos(const std::vector<TaskAssignment>& assignments) const;
  void apply_assignments(const std::vector<TaskAssignment>& assignments,
                         const std::vector<const StreamInfo*>& streams, std::vector<TaskInfo>& infos) const;
  std::uint32_t cores_of_copy() const { return static_cast<std::uint32_t>(spec_.cores / spec_.copies); }
  Worker& add_worker(std::uint32_t lane, std::uint64_t thread);
  std::uint32_t lane_number(const Lane& lane) const { return lane.workers.front()->lane; }

  void requested(const StreamRequest& request, std::uint32_t lane);
  void resumed(const Resume& resume);
  void became_ready(const Ready& ready);

  // The core has come to the sync node, or to the end, of what it executes.
  void reached(Lane& lane);
  void arrive(Lane& lane);
  void end_replica(Lane& lane);
  // Resumes the replicas that the arbiter released and schedules the tasks that became ready on this core.
  void follow_up(std::uint32_t core);
  void release(const Arbiter::Release& release);
  void resume(Worker& worker);
  void count(const TraceNode& node, bool goes_on);
  // The latencies of a node (replay_latencies.cpp): before it takes effect, and then until the replica goes
  // on.
  Time time_before(const TraceNode& node, std::uint32_t core);
  Time time_after(const TraceNode& node, bool waited) const;
  Time time_to_retry(Execution& execution);
  Time idle_cores(std::uint32_t core) const;
  // The task queue of this core's copy.
  TaskQueueLock& task_queue(std::uint32_t core) { return task_queues_[core / cores_of_copy()]; }

  // Gives the lane's core more records if that can be done now.
  void advance(Lane& lane);
  bool choose(Lane& lane);
  std::optional<TaskScheduler::Choice> choose_task(const Worker& worker);
  void begin_task(Worker& worker, Replica task);
  void rest(Lane& lane);
  void delay(Lane& lane, State state, Time time);
  void write_records(Lane& lane);
  void write_end(Lane& lane, Execution& execution);
  void announce(Lane& lane);
  void enter(Lane& lane, State state);
  void add_state_time(Lane& lane);
  void end_all();

  const Spec spec_;
  ReplaySourceStatistics statistics_;
  SourcePort cores_{*this, "cores", "the cores that the trace is replayed on, in order", Links::many};
  Timer<Resume> resume_timer_{*this};
  Timer<Ready> ready_timer_{*this};
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<const RecordedTrace> trace_;
  std::unique_ptr<Arbiter> arbiter_;
  std::unique_ptr<TaskScheduler> scheduler_;
  std::unique_ptr<TraceBlocks> blocks_;
  std::optional<CopyOffset> offset_;
  std::vector<std::uint32_t> worker_of_;    // by replica
  std::vector<TaskQueueLock> task_queues_;  // by copy
  std::vector<std::uint32_t>
      new_workers_;              // by copy: cores without a thread of the recording, until a team forms
  std::uint64_t handovers_ = 0;  // of locks
  std::vector<TaskRun> task_runs_;
  bool ended_ = false;
};

}  // namespace manyscale::cpu
