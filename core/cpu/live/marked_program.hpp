// SPDX-License-Identifier: Apache-2.0
// A running program together with what notes the regions it enters and leaves;
// for those who run its threads.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cpu/linux/kernel.hpp"
#include "cpu/openmp/marker_watch.hpp"
#include "cpu/stream/region_table.hpp"
#include "cpu/stream/task_table.hpp"

namespace manyscale::cpu {

class MarkedProgram {
 public:
  MarkedProgram(Kernel::Scheduler& scheduler, std::uint32_t cores, std::uint64_t seed)
      : kernel_(scheduler, cores, seed) {}

  // Watches these addresses in each process.
  void launch(const LaunchSpec& spec, const std::vector<WatchPoint>& watch);

  Kernel& kernel() { return kernel_; }
  const Kernel& kernel() const { return kernel_; }
  const RegionTable& regions() const { return regions_; }
  const TaskTable& tasks() const { return tasks_; }

  // The thread stopped at a marker: the addresses of the marker records that
  // belong there, until the next call.
  const std::vector<std::uint64_t>& markers_at(Thread& thread);
  // The same for the end of a thread.
  const std::vector<std::uint64_t>& markers_at_end(Thread& thread);

  // Does something with the program; if it fails, its failure is kept before
  // the error goes on.
  template <class Action>
  void guarded(Action&& action) {
    try {
      action();
    } catch (const ProgramError& error) {
      failure_ = error.failure();
      throw;
    }
  }
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  Kernel kernel_;
  RegionTable regions_;
  TaskTable tasks_;
  std::vector<std::unique_ptr<MarkerWatch>> watches_;  // by process
  std::vector<std::uint64_t> watched_versions_;
  std::vector<std::uint64_t> markers_;
  std::optional<Failure> failure_;
};

}  // namespace manyscale::cpu
