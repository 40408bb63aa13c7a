// SPDX-License-Identifier: Apache-2.0
// The source of a running program (component cpu.program): executes all threads
// of all its processes, in the order in which the cores ask, and gives each
// core the records of the threads on it.
//
// A thread is executed ahead of its core by a bounded number of records, but
// not past a system call, an atomic operation or a fence before the core has
// come to it: so locks, barriers and whatever else threads agree on by them
// follow simulated time. Ordinary loads and stores take effect when they are
// executed here, up to that many records early. Threads stay on the core they
// were given (thread i of process p on core first of p + i, modulo the cores)
// unless the program asks otherwise; several on one core take turns.
//
// System calls take a fixed time and no instructions of the kernel are
// executed.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cpu/live/marked_program.hpp"
#include "cpu/mpi/gateway_protocol.hpp"
#include "cpu/mpi/rank_rings.hpp"
#include "cpu/stream/core_stream.hpp"
#include "cpu/stream/record_sink.hpp"
#include "engine/timer.hpp"

namespace manyscale::cpu {

struct LiveSourceSpec {
  std::int64_t cores = 1;
  std::int64_t clock = 2'000'000'000;
  std::int64_t run_ahead = 256;
  Time time_slice = 1'000 * microsecond;
  Time system_call_latency = 200 * nanosecond;
  Time wake_latency = 1 * microsecond;
  Time switch_latency = 1 * microsecond;
};

struct LiveSourceStatistics {
  Counter records, system_calls, ordered, sleeps, wakes, context_switches, threads;
};

class LiveSource final : public Component, private Kernel::Scheduler {
 public:
  using Spec = LiveSourceSpec;

  explicit LiveSource(const Spec& spec);

  // Loads the program; once, before the run. Throws ElfError.
  void launch(const LaunchSpec& launch, const std::vector<WatchPoint>& watch = {});

  // Sends all records to `sink` from now on; null: to none.
  void record_to(RecordSink* sink) { sink_ = sink; }
  // The run pauses (Component::stop) when a core comes to the beginning or the end of a region that the
  // program marks by this name, or of the function at this address.
  void pause_at(std::string region, std::uint64_t function) {
    interest_ = {RegionKind::user, std::move(region), function, 0};
  }

  void start() override;
  std::vector<Wait> waits() const override;

  struct Output {
    const std::string& standard_output;
    const std::string& standard_error;
  };
  Output output(std::size_t process) const;
  int exit_status() const { return program().kernel().exit_status(); }
  const Kernel& kernel() const { return program().kernel(); }
  // What ended the run early, if something did.
  const std::optional<Failure>& failure() const { return program().failure(); }
  const RegionTable& regions() const { return program().regions(); }
  const TaskTable& tasks() const { return program().tasks(); }
  // What its ranks share with those of other nodes; null if all ranks are here.
  RankRings* rings() { return rings_.get(); }
  PortBase& gateway_port() { return gateway_; }
  // Between two runs: something came for a rank, which wakes up when the run goes on.
  void wake_rank(std::uint32_t rank) { to_wake_.push_back({rank}); }
  void resume() override;

 private:
  // What happens between the source and one core.
  struct Lane : CoreStream {
    using CoreStream::CoreStream;

    riscv::Producers producers;
    std::deque<std::uint64_t> markers;  // to be written before the thread goes on
    std::uint16_t marker_thread = 0;
    Thread* current = nullptr;
    std::int32_t last = 0;                        // id of the thread that had the core before; 0: none
    std::deque<Thread*> ready;                    // others that could run here, the next first
    riscv::Stop halted_by = riscv::Stop::budget;  // of the last record, which the core has to reach;
                                                  // budget: none
    bool past_marker = false;
    Time turn_began = 0;
  };
  struct Resume {
    std::uint32_t lane = 0;
  };
  struct Ready {
    std::uint32_t thread = 0;
  };
  struct Deadline {
    Time when = 0;
  };

  const MarkedProgram& program() const;
  void created(Thread& thread) override;
  void awakened(Thread& thread) override;
  void ended(Thread& thread) override;

  void requested(const StreamRequest& request, std::uint32_t lane);
  void resumed(const Resume& resume);
  void became_ready(const Ready& ready);
  void deadline_came(const Deadline& deadline);
  void bell_rings(const BellRings& bell, std::uint32_t lane);
  void wake(const BellRings& bell);
  // Runs a step of the program and then sees to what follows from it.
  template <class Action>
  void step(Action&& action);

  // The core has come to the record that the lane is halted at.
  void reached(Lane& lane, std::uint32_t number);
  // Gives the lane's core more records if that can be done now.
  void advance(Lane& lane, std::uint32_t number);
  bool choose_thread(Lane& lane, std::uint32_t number);
  void delay(Lane& lane, std::uint32_t number, Time time);
  void write_records(Lane& lane);
  bool write_markers(Lane& lane, std::uint64_t limit);
  bool of_interest(std::uint64_t marker) const;
  void announce(Lane& lane, std::uint32_t number);
  void enqueue(Thread& thread);

  const Spec spec_;
  LiveSourceStatistics statistics_;
  SourcePort cores_{*this, "cores", "the cores that execute the program, in order", Links::many};
  Port<GatewayProtocol, 0> gateway_{*this, "gateway", "the way to ranks on other nodes", Links::optional};
  Timer<Resume> resume_timer_{*this};
  Timer<Ready> ready_timer_{*this};
  Timer<Deadline> deadline_timer_{*this};
  Timer<BellRings> bell_timer_{*this};
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<MarkedProgram> program_;
  std::unique_ptr<RankRings> rings_;
  std::vector<BellRings> to_wake_;
  RecordSink* sink_ = nullptr;
  std::optional<Region> interest_;
  Time next_deadline_ = never;  // that a timer is set for
  bool started_ = false;
  bool ended_ = false;
};

}  // namespace manyscale::cpu

namespace manyscale {

template <>
struct describe<cpu::LiveSourceSpec> {
  using S = cpu::LiveSourceSpec;
  static constexpr auto fields = std::tuple{
      Field<S, std::int64_t>{"cores", &S::cores, Unit::count, "cores that the program sees", 1, 4096},
      Field<S, std::int64_t>{"clock", &S::clock, Unit::frequency, "clock that rdcycle counts", 1, 1e12},
      Field<S, std::int64_t>{"run_ahead", &S::run_ahead, Unit::count,
                             "records that a thread may be executed ahead of its core", 16, 65536},
      Field<S, Time>{"time_slice", &S::time_slice, Unit::time,
                     "how long a thread keeps its core when others wait for it", 1, 1e18},
      Field<S, Time>{"system_call_latency", &S::system_call_latency, Unit::time, "time of a system call", 0,
                     1e18},
      Field<S, Time>{"wake_latency", &S::wake_latency, Unit::time,
                     "time from the wake-up of a thread until it can run", 0, 1e18},
      Field<S, Time>{"switch_latency", &S::switch_latency, Unit::time,
                     "time it takes a core to change from one thread to another", 0, 1e18}};
};

template <>
struct describe<cpu::LiveSourceStatistics> {
  using S = cpu::LiveSourceStatistics;
  static constexpr auto fields = std::tuple{
      Statistic<S, Counter>{"records", &S::records, "record", "records made for the cores"},
      Statistic<S, Counter>{"system_calls", &S::system_calls, "call", "system calls of the program"},
      Statistic<S, Counter>{"ordered", &S::ordered, "instruction", "atomic operations and fences"},
      Statistic<S, Counter>{"sleeps", &S::sleeps, "sleep", "times that a core had no thread to run"},
      Statistic<S, Counter>{"wakes", &S::wakes, "thread", "threads that waited and were woken"},
      Statistic<S, Counter>{"context_switches", &S::context_switches, "switch",
                            "changes from one thread of a core to another"},
      Statistic<S, Counter>{"threads", &S::threads, "thread", "threads that the program made"}};
};

}  // namespace manyscale
