// SPDX-License-Identifier: Apache-2.0
// Runs a program without timing: its threads take turns in a fixed order, so
// that every run gives the same. Its clocks show one nanosecond for each
// instruction executed.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "cpu/core/region_account.hpp"
#include "cpu/live/marked_program.hpp"
#include "cpu/stream/record_sink.hpp"

namespace manyscale::cpu {

class FunctionalRun final : private Kernel::Scheduler {
 public:
  // The cores are how many the program sees; the seed is that of its random
  // numbers.
  explicit FunctionalRun(const LaunchSpec& spec, std::uint32_t cores = 1, std::uint64_t seed = 0,
                         const std::vector<WatchPoint>& watch = {});

  // Asked now and then with the instructions executed so far; false ends the
  // run.
  using Poll = std::function<bool(std::uint64_t)>;
  // Runs until the program has ended; false if it was stopped before. Throws
  // ProgramError.
  bool run(const Poll& poll = {});

  // Sends a record of each instruction to `sink` from now on, which is slower; null: to none.
  void record_to(RecordSink* sink);

  const Kernel& kernel() const { return program_.kernel(); }
  int exit_status() const { return kernel().exit_status(); }
  const std::optional<Failure>& failure() const { return program_.failure(); }
  const RegionTable& regions() const { return program_.regions(); }
  const TaskTable& tasks() const { return program_.tasks(); }
  std::uint64_t instructions() const { return instructions_; }
  // Instructions (and as many nanoseconds) by region and thread.
  std::vector<RegionAccount::Row> region_rows();

 private:
  void created(Thread& thread) override { queue_.push_back(&thread); }
  void awakened(Thread& thread) override { queue_.push_back(&thread); }
  void ended(Thread& thread) override;

  void take_turn(Thread& thread);
  riscv::Stop execute(Thread& thread, std::uint64_t budget, bool past_marker);
  // Brings the count of instructions, and with it the time, up to what the
  // thread has done in its turn.
  void account(const Thread& thread);
  void note(const Thread& thread, const std::vector<std::uint64_t>& markers);
  Progress progress() const;
  [[noreturn]] void report_deadlock() const;

  std::deque<Thread*> queue_;  // threads that can run, the next first
  MarkedProgram program_;
  RegionAccount account_;
  std::uint64_t instructions_ = 0;
  std::uint64_t turn_began_ = 0;  // instructions of the running thread that are counted already
  Time idle_ = 0;                 // time in which all threads slept
  Thread* running_ = nullptr;
  // Who is shown records, the latest of them, and who wrote which register by thread.
  RecordSink* sink_ = nullptr;
  std::optional<RecordRing> ring_;
  std::vector<riscv::Producers> producers_;
};

}  // namespace manyscale::cpu
