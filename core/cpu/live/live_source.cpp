// SPDX-License-Identifier: Apache-2.0
#include "cpu/live/live_source.hpp"

#include <algorithm>
#include <utility>

#include "engine/registry.hpp"

namespace manyscale::cpu {

namespace {

const Registered<LiveSource> registered{"cpu.program",
                                        "A RISC-V Linux program, executed for the cores that it runs on."};

}  // namespace

LiveSource::LiveSource(const Spec& spec) : spec_(spec) {
  declare(statistics_);
  cores_.on_receive<&LiveSource::requested>();
  gateway_.on_receive<&LiveSource::bell_rings>();
  resume_timer_.on_expire<&LiveSource::resumed>();
  ready_timer_.on_expire<&LiveSource::became_ready>();
  deadline_timer_.on_expire<&LiveSource::deadline_came>();
  bell_timer_.on_expire<&LiveSource::wake>();
  for (std::int64_t i = 0; i < spec.cores; ++i) {
    lanes_.push_back(std::make_unique<Lane>(spec.run_ahead));
  }
}

void LiveSource::launch(const LaunchSpec& launch, const std::vector<WatchPoint>& watch) {
  if (program_) throw std::invalid_argument("a program was launched already");
  // The program's random numbers follow from the run's seed; drawing them here
  // is drawing them at its start.
  program_ = std::make_unique<MarkedProgram>(static_cast<Kernel::Scheduler&>(*this),
                                             static_cast<std::uint32_t>(spec_.cores), random().next());
  program_->launch(launch, watch);
  if (launch.job_ranks <= launch.ranks) return;
  Kernel& kernel = program_->kernel();
  const auto segment = kernel.make_segment(RingLayout{launch.job_ranks}.total());
  if (!segment)
    throw std::invalid_argument("the MPI library's memory for so many ranks is more than a process may have");
  kernel.shared_files[std::string(Kernel::mpi_segment)] = segment;
  rings_ = std::make_unique<RankRings>(segment, launch.job_ranks, launch.first_rank, launch.ranks);
  kernel.wake_watch = {segment, [this, base = segment->physical()](std::uint64_t key) {
                         const auto rank = rings_->bell_at(key - base);
                         if (rank && !rings_->is_local(*rank) && gateway_.width() != 0)
                           gateway_.send({*rank}, 0);
                       }};
}

void LiveSource::resume() {
  for (const BellRings& bell : std::exchange(to_wake_, {})) bell_timer_.after(0, bell);
}

void LiveSource::bell_rings(const BellRings& bell, std::uint32_t) {
  wake(bell);
}

void LiveSource::wake(const BellRings& bell) {
  if (ended_) return;
  Kernel& kernel = program_->kernel();
  const std::uint64_t address = kernel.wake_watch.segment->physical() + rings_->layout().bell(bell.rank);
  step([&] { kernel.futex_wake(address, 1, ~0u); });
}

const MarkedProgram& LiveSource::program() const {
  if (!program_) throw SimulationError(name() + ": no program was launched");
  return *program_;
}

LiveSource::Output LiveSource::output(std::size_t process) const {
  const Process& of = *kernel().processes().at(process);
  return {of.standard_output, of.standard_error};
}

void LiveSource::start() {
  program();
  if (cores_.width() != lanes_.size()) {
    throw SimulationError(name() + ": `cores` is " + std::to_string(lanes_.size()) + ", but " +
                          std::to_string(cores_.width()) + " cores are connected");
  }
  started_ = true;
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) lanes_[i]->attach(cores_, i);
  step([&] {
    for (std::uint32_t i = 0; i < lanes_.size(); ++i) advance(*lanes_[i], i);
  });
}

std::vector<Wait> LiveSource::waits() const {
  std::vector<Wait> waits;
  if (!program_ || ended_) return waits;
  for (const auto& thread : kernel().threads()) {
    if (thread->state != Thread::State::waiting) continue;
    waits.push_back({"process " + std::to_string(thread->process->number) + ", thread " +
                         std::to_string(thread->index) + " waits for " + thread->waits_for + " at pc " +
                         hexadecimal(thread->hart.pc),
                     ""});
  }
  return waits;
}

template <class Action>
void LiveSource::step(Action&& action) {
  Kernel& kernel = program_->kernel();
  kernel.time = now();
  program_->guarded(action);
  if (kernel.finished()) {
    if (!std::exchange(ended_, true)) {
      deadline_timer_.cancel();  // of an alarm that is not due yet, for example
      for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
        cores_.send({lanes_[i]->announced, nullptr, StreamReply::Type::ends}, 0, i);
      }
    }
    return;
  }
  if (const Time deadline = kernel.next_deadline(); deadline < next_deadline_) {
    next_deadline_ = deadline;
    deadline_timer_.after(deadline - now(), {deadline});
  }
}

void LiveSource::requested(const StreamRequest& request, std::uint32_t number) {
  Lane& lane = *lanes_[number];
  if (ended_) return;
  lane.taken = std::max(lane.taken, request.number);
  if (request.type == StreamRequest::Type::wants_more) {
    step([&] { advance(lane, number); });
  } else if (lane.halted_by != riscv::Stop::budget) {
    step([&] { reached(lane, number); });
  }
}

void LiveSource::resumed(const Resume& resume) {
  Lane& lane = *lanes_[resume.lane];
  lane.delayed = false;
  if (!ended_) step([&] { advance(lane, resume.lane); });
}

void LiveSource::became_ready(const Ready& ready) {
  Thread& thread = *kernel().threads()[ready.thread];
  if (ended_ || thread.state == Thread::State::ended) return;
  if (thread.wanted_core) thread.core = *std::exchange(thread.wanted_core, {});
  enqueue(thread);
  step([&] { advance(*lanes_[thread.core], thread.core); });
}

void LiveSource::deadline_came(const Deadline& deadline) {
  if (deadline.when != next_deadline_ || ended_) return;
  next_deadline_ = never;
  step([&] { program_->kernel().expire_deadlines(); });
}

void LiveSource::created(Thread& thread) {
  ++statistics_.threads;
  if (!started_) {
    enqueue(thread);
  } else {
    ready_timer_.after(spec_.wake_latency, {thread.number});
  }
}

void LiveSource::awakened(Thread& thread) {
  ++statistics_.wakes;
  ready_timer_.after(spec_.wake_latency, {thread.number});
}

void LiveSource::enqueue(Thread& thread) {
  lanes_[thread.core]->ready.push_back(&thread);
}

void LiveSource::ended(Thread& thread) {
  Lane& lane = *lanes_[thread.core];
  std::erase(lane.ready, &thread);
  const std::vector<std::uint64_t>& markers = program_->markers_at_end(thread);
  // A thread that ends while it is off its core has no stream for
  // its last markers.
  if (lane.current != &thread) return;
  lane.markers.insert(lane.markers.end(), markers.begin(), markers.end());
  lane.current = nullptr;
}

void LiveSource::reached(Lane& lane, std::uint32_t number) {
  const riscv::Stop stop = std::exchange(lane.halted_by, riscv::Stop::budget);
  Thread* thread = lane.current;
  if (thread == nullptr) {  // it was ended by another one meanwhile
    advance(lane, number);
    return;
  }
  Kernel& kernel = program_->kernel();
  if (stop == riscv::Stop::ordered) {
    ++statistics_.ordered;
    if (const riscv::Stop after = thread->process->interpreter.step(thread->hart);
        after == riscv::Stop::fault) {
      kernel.exception(*thread, after);
    }
    advance(lane, number);
    return;
  }
  ++statistics_.system_calls;
  thread->yields = false;
  kernel.system_call(*thread);
  if (lane.current == thread) {
    const bool gives_way = thread->yields && !lane.ready.empty();
    if (thread->state == Thread::State::waiting) {
      lane.current = nullptr;
    } else if (thread->wanted_core) {
      lane.current = nullptr;
      ready_timer_.after(spec_.wake_latency, {thread->number});
    } else if (gives_way) {
      lane.current = nullptr;
      lane.ready.push_back(thread);
    }
  }
  delay(lane, number, spec_.system_call_latency);
}

void LiveSource::delay(Lane& lane, std::uint32_t number, Time time) {
  if (lane.delayed) return;
  if (time == 0) {
    advance(lane, number);
    return;
  }
  lane.delayed = true;
  resume_timer_.after(time, {number});
}

void LiveSource::advance(Lane& lane, std::uint32_t number) {
  if (lane.delayed || lane.halted_by != riscv::Stop::budget) return;
  const std::uint64_t limit = lane.limit();
  while (true) {
    const bool room = write_markers(lane, limit);
    if (!room || !choose_thread(lane, number)) break;
    write_records(lane);
    if (lane.current != nullptr && lane.markers.empty()) break;
  }
  announce(lane, number);
  if (lane.current == nullptr && !lane.delayed && lane.markers.empty())
    statistics_.sleeps += lane.sleep(cores_, number);
}

// Whether a thread can run on the lane's core now; takes the next one if none
// has it, or if it is its turn.
bool LiveSource::choose_thread(Lane& lane, std::uint32_t number) {
  if (lane.current != nullptr && !lane.ready.empty() && !lane.past_marker &&
      now() - lane.turn_began >= spec_.time_slice) {
    lane.ready.push_back(std::exchange(lane.current, nullptr));
  }
  if (lane.current != nullptr) return true;
  if (lane.ready.empty()) return false;
  lane.current = lane.ready.front();
  lane.ready.pop_front();
  lane.turn_began = now();
  lane.asleep = false;
  lane.past_marker = false;
  const std::int32_t last = std::exchange(lane.last, lane.current->id);
  if (last == lane.current->id) return true;
  lane.producers.last_writer.fill(0);
  if (last == 0) return true;
  ++statistics_.context_switches;
  if (spec_.switch_latency == 0) return true;
  delay(lane, number, spec_.switch_latency);
  return false;
}

bool LiveSource::write_markers(Lane& lane, std::uint64_t limit) {
  while (!lane.markers.empty()) {
    if (lane.end >= limit) return false;
    Record& record = lane.ring[lane.end++];
    record = {};
    record.kind = InstructionClass::marker;
    record.address = lane.markers.front();
    record.thread = lane.marker_thread;
    if (interest_ && of_interest(record.address)) record.flags = Trait::pauses;
    lane.markers.pop_front();
  }
  return lane.end < limit;
}

bool LiveSource::of_interest(std::uint64_t marker) const {
  const MarkerAction action = marker_action(marker);
  if (action != MarkerAction::enter && action != MarkerAction::leave) return false;
  const Region& region = regions()[static_cast<std::uint32_t>(marker_subject(marker))];
  if (region.kind != interest_->kind) return false;
  return region.name.empty() ? interest_->pc != 0 && region.pc == interest_->pc
                             : region.name == interest_->name;
}

// Executes the current thread until the ring is full, or something else has to
// be done first.
void LiveSource::write_records(Lane& lane) {
  using riscv::Stop;
  Thread& thread = *lane.current;
  Kernel& kernel = program_->kernel();
  if (thread.has_signal()) {
    kernel.deliver_signals(thread);
    if (lane.current != &thread) return;
  }
  const auto nanoseconds = static_cast<std::uint64_t>(now() / nanosecond);
  const auto cycles = static_cast<std::uint64_t>(now() / period_of(spec_.clock));
  riscv::Interpreter& interpreter = thread.process->interpreter;
  const std::uint64_t limit = lane.limit();
  lane.marker_thread = static_cast<std::uint16_t>(thread.number);
  while (lane.end < limit) {
    interpreter.set_time(cycles, nanoseconds);
    const Stop stop =
        interpreter.record(thread.hart, limit - lane.end, lane.ring, lane.end, limit, lane.producers,
                           lane.marker_thread, std::exchange(lane.past_marker, false));
    switch (stop) {
      case Stop::budget:
        break;
      case Stop::system_call:
      case Stop::ordered:
        lane.halted_by = stop;
        return;
      case Stop::marker: {
        const std::vector<std::uint64_t>& markers = program_->markers_at(thread);
        lane.markers.assign(markers.begin(), markers.end());
        lane.past_marker = true;
        if (!write_markers(lane, limit)) return;
        break;
      }
      case Stop::breakpoint:
      case Stop::fault:
        kernel.exception(thread, stop);
        if (lane.current != &thread) return;
        break;
    }
  }
}

void LiveSource::announce(Lane& lane, std::uint32_t number) {
  if (sink_ != nullptr) {
    for (std::uint64_t i = lane.announced; i < lane.end; ++i) sink_->take({&lane.ring[i], 1});
  }
  statistics_.records += lane.announce(cores_, number);
}

}  // namespace manyscale::cpu
