// SPDX-License-Identifier: Apache-2.0
// The source that plays a recorded trace (component cpu.trace): gives each core the nodes of the threads on
// it and of the tasks dealt to it, and holds them where threads meet until the arbiter lets them go on.
//
// A core is in one of five states: init (the arbiter is told that a region or a task begins), processing,
// stall (it waits for others), end (the arbiter lets it go on), or idle (there is nothing for it to do).
//
// Threads stay on their cores; several on one core change when one has to wait. A core executes tasks while
// its thread waits at a barrier, at the end or before the beginning of a parallel region, or has ended; where
// a thread or a task waits for its own tasks, those only. A task stays on the core that began it.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cpu/replay/arbiter.hpp"
#include "cpu/replay/replay_spec.hpp"
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

  // Says what is played; once, before the run. The list of places is for the scheduler task2core: a core
  // takes the task that is first in it of those that may run. Throws SimulationError where something does
  // not fit.
  void play(RecordedTrace trace, const std::vector<TaskAssignment>& places = {});

  void start() override;
  void settle() override;
  std::vector<Wait> waits() const override;

  // In the order of their ends.
  const std::vector<TaskRun>& task_runs() const { return task_runs_; }

 private:
  using Replica = Arbiter::Replica;
  enum class State : std::uint8_t { init, processing, stall, end, idle };

  // A replica that is being executed.
  struct Player {
    Player(Replica of, std::uint32_t stream) : replica(of), cursor(stream) {}

    Replica replica;
    TraceCursor cursor;
    Record node{};         // the sync node it has come to
    bool played = false;   // it is at its end
    bool waiting = false;  // until the arbiter releases it
    bool retries = false;  // at its lock, which was released
    Time waits_since = 0;
    Time takes = 0;    // when it has the lock, until it goes on
    Time resumes = 0;  // not before
    Time began = 0;
  };
  // A thread of the replay: plays a thread of the recording, tasks, or both.
  struct Worker {
    std::uint32_t number = 0;
    std::uint32_t lane = 0;
    std::uint16_t thread = 0;       // what its records are marked with
    bool resuming = false;          // on its way to its lane
    std::vector<Player> players{};  // the one that is executed last; those before it wait for it
  };
  // What happens between the source and one core.
  struct Lane : CoreStream {
    using CoreStream::CoreStream;

    std::vector<Worker*> workers{};
    std::deque<Worker*> ready{};
    Worker* current = nullptr;
    Worker* last = nullptr;           // that had the core
    Replica playing = Arbiter::none;  // whose records were written last
    std::uint32_t nodes = 0;          // of it since another's, as far as producers reach
    bool halted = false;              // until the core reaches the last record
    bool arrives = false;             // at a node, when the delay is over
    bool ends_task = false;           // when the delay is over
    State state = State::idle;
    Time since = 0;
    CoreStateStatistics states{};
  };
  // The tasks of a copy that may run, as cores see them who make and take some at the same time.
  struct Queue {
    Time free = 0;                       // from then on
    std::uint32_t core = Arbiter::none;  // that used it last
    Time rush_end = 0;                   // when all who came in vain will have used it
  };
  struct Resume {
    std::uint32_t lane = 0;
  };
  struct Ready {
    std::uint32_t worker = 0;
  };

  void place_threads();
  void await_first_region(Worker& worker);
  std::vector<TaskFacts> task_facts(const std::vector<TaskAssignment>& places) const;
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
  // Sees to those whom the arbiter released and to tasks that may run now because of this core.
  void follow_up(std::uint32_t core);
  void release(const Arbiter::Release& release);
  void resume(Worker& worker);
  void count(const Record& node, bool goes_on);
  // What a node costs before it takes effect, and until the replica goes on.
  Time time_before(const Record& node, std::uint32_t core);
  Time time_after(const Record& node, bool waited) const;
  Time time_to_retry(Player& player);
  // How long a core is held up that makes or takes a task now.
  bool queue_takes_time() const;
  Time use_queue(std::uint32_t core);
  Time idle_cores(std::uint32_t core) const;
  // Tasks have been added to the queue on this core.
  void rush(std::uint32_t core);

  // Gives the lane's core more records if that can be done now.
  void advance(Lane& lane);
  bool choose(Lane& lane);
  std::optional<TaskScheduler::Choice> choose_task(const Worker& worker);
  void begin_task(Worker& worker, Replica task);
  void rest(Lane& lane);
  void delay(Lane& lane, State state, Time time);
  void write_records(Lane& lane);
  void write_end(Lane& lane, Player& player);
  void announce(Lane& lane);
  void enter(Lane& lane, State state);
  void add_state_time(Lane& lane);
  void end_all();

  const Spec spec_;
  ReplaySourceStatistics statistics_;
  SourcePort cores_{*this, "cores", "the cores that the trace is played on, in order", Links::many};
  Timer<Resume> resume_timer_{*this};
  Timer<Ready> ready_timer_{*this};
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<const RecordedTrace> trace_;
  std::unique_ptr<Arbiter> arbiter_;
  std::unique_ptr<TaskScheduler> scheduler_;
  std::unique_ptr<TraceBlocks> blocks_;
  std::optional<CopyOffset> offset_;
  std::vector<std::uint32_t> worker_of_;  // by replica
  std::vector<Queue> queues_;             // by copy
  std::vector<std::uint32_t>
      new_workers_;              // by copy: cores without a thread of the recording, until a team forms
  std::uint64_t handovers_ = 0;  // of locks
  std::vector<TaskRun> task_runs_;
  bool ended_ = false;
};

}  // namespace manyscale::cpu
