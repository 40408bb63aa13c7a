// SPDX-License-Identifier: Apache-2.0
#include "cpu/live/functional_run.hpp"

#include <algorithm>

namespace manyscale::cpu {

namespace {

// Instructions of a turn: short enough that threads which spin do not spin for
// long, long enough that changing costs nothing.
constexpr std::uint64_t shared_turn = 20'000;
constexpr std::uint64_t lone_turn = 1'000'000;
constexpr std::uint64_t poll_interval = 10'000'000;
constexpr std::size_t recorded_at_once = 1024;

}  // namespace

FunctionalRun::FunctionalRun(const LaunchSpec& spec, std::uint32_t cores, std::uint64_t seed,
                             const std::vector<WatchPoint>& watch)
    : program_(*this, cores, seed) {
  if (cores == 0) throw std::invalid_argument("cores: a program needs at least one");
  program_.launch(spec, watch);
}

bool FunctionalRun::run(const Poll& poll) {
  Kernel& kernel = program_.kernel();
  std::uint64_t next_poll = instructions_ + poll_interval;
  while (!kernel.finished()) {
    if (kernel.next_deadline() <= kernel.time) program_.guarded([&] { kernel.expire_deadlines(); });
    if (queue_.empty()) {
      if (kernel.next_deadline() == never) program_.guarded([&] { report_deadlock(); });
      idle_ += kernel.next_deadline() - kernel.time;
      kernel.time = kernel.next_deadline();
      continue;
    }
    Thread& thread = *queue_.front();
    queue_.pop_front();
    if (thread.wanted_core) thread.core = *std::exchange(thread.wanted_core, {});
    program_.guarded([&] { take_turn(thread); });
    if (thread.state == Thread::State::runnable) queue_.push_back(&thread);
    if (poll && instructions_ >= next_poll) {
      next_poll = instructions_ + poll_interval;
      if (!poll(instructions_)) return false;
    }
  }
  return true;
}

void FunctionalRun::take_turn(Thread& thread) {
  using riscv::Stop;
  Kernel& kernel = program_.kernel();
  riscv::Hart& hart = thread.hart;
  riscv::Interpreter& interpreter = thread.process->interpreter;
  const std::uint64_t end = hart.retired + (queue_.empty() ? lone_turn : shared_turn);
  running_ = &thread;
  turn_began_ = hart.retired;
  thread.yields = false;
  account_.run_thread(static_cast<std::uint16_t>(thread.number), progress());
  kernel.deliver_signals(thread);
  bool past_marker = false;
  // A marker that was noted has to be passed, or it would be noted again in the
  // next turn.
  while (thread.state == Thread::State::runnable && !thread.yields && (hart.retired < end || past_marker)) {
    const auto nanoseconds = static_cast<std::uint64_t>(kernel.time / nanosecond);
    interpreter.set_time(nanoseconds, nanoseconds);
    const Stop stop = execute(thread, std::max<std::uint64_t>(end - hart.retired, 1), past_marker);
    past_marker = false;
    account(thread);
    switch (stop) {
      case Stop::budget:
        break;
      case Stop::system_call:
        kernel.system_call(thread);
        account(thread);
        break;
      case Stop::ordered:
        interpreter.step(hart);
        break;
      case Stop::marker:
        note(thread, program_.markers_at(thread));
        past_marker = true;
        break;
      case Stop::breakpoint:
      case Stop::fault:
        kernel.exception(thread, stop);
        break;
    }
  }
  running_ = nullptr;
}

// Executes some instructions, with records if there is a sink.
riscv::Stop FunctionalRun::execute(Thread& thread, std::uint64_t budget, bool past_marker) {
  riscv::Interpreter& interpreter = thread.process->interpreter;
  if (sink_ == nullptr) return interpreter.run(thread.hart, budget, past_marker);
  if (producers_.size() <= thread.number) producers_.resize(thread.number + std::size_t{1});
  std::uint64_t end = 0;
  const std::uint64_t limit = std::min<std::uint64_t>(budget, ring_->capacity());
  const riscv::Stop stop =
      interpreter.record(thread.hart, limit, *ring_, end, limit, producers_[thread.number],
                         static_cast<std::uint16_t>(thread.number), past_marker);
  if (end > 0) sink_->take({&(*ring_)[0], end});
  return stop;
}

void FunctionalRun::record_to(RecordSink* sink) {
  sink_ = sink;
  if (!ring_) ring_.emplace(recorded_at_once);
}

void FunctionalRun::account(const Thread& thread) {
  instructions_ += thread.hart.retired - turn_began_;
  turn_began_ = thread.hart.retired;
  program_.kernel().time = moment_after(static_cast<Time>(instructions_) * nanosecond, idle_);
}

Progress FunctionalRun::progress() const {
  return {program_.kernel().time, static_cast<std::int64_t>(instructions_), {}};
}

void FunctionalRun::note(const Thread& thread, const std::vector<std::uint64_t>& markers) {
  for (const std::uint64_t marker : markers) {
    account_.commit(static_cast<std::uint16_t>(thread.number), marker, progress());
    if (sink_ == nullptr) continue;
    Record record;
    record.kind = InstructionClass::marker;
    record.address = marker;
    record.thread = static_cast<std::uint16_t>(thread.number);
    sink_->take({&record, 1});
  }
}

void FunctionalRun::ended(Thread& thread) {
  std::erase(queue_, &thread);
  if (running_ == &thread) account(thread);
  // Others go on afterwards: what they do must not be counted for the one that
  // ended.
  note(thread, program_.markers_at_end(thread));
  if (running_ != nullptr) account_.run_thread(static_cast<std::uint16_t>(running_->number), progress());
}

std::vector<RegionAccount::Row> FunctionalRun::region_rows() {
  account_.settle(progress());
  return account_.rows();
}

void FunctionalRun::report_deadlock() const {
  std::string what = "deadlock: every thread waits for another";
  const Thread* first = nullptr;
  int named = 0;
  for (const auto& thread : kernel().threads()) {
    if (thread->state != Thread::State::waiting) continue;
    if (first == nullptr) first = thread.get();
    if (++named > 8) continue;
    what += "; thread " + std::to_string(thread->index) + " of process " +
            std::to_string(thread->process->number) + " waits for " + thread->waits_for + " at pc " +
            hexadecimal(thread->hart.pc);
  }
  kernel().fail(*first, "deadlock", 0, what);
}

}  // namespace manyscale::cpu
