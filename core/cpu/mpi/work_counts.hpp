// SPDX-License-Identifier: Apache-2.0
// Work counts: instructions of each class that the processes of a program executed outside of MPI, by which
// ranks are clustered. Within calls of MPI a rank may look again and again whether something has come.
#pragma once
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "cpu/stream/marker.hpp"
#include "cpu/stream/record_sink.hpp"
#include "cpu/stream/region_table.hpp"

namespace manyscale::cpu {

class WorkCounts final : public RecordSink {
 public:
  using Counts = std::array<std::uint64_t, instruction_classes>;

  explicit WorkCounts(const RegionTable& regions) : regions_(regions) {}

  void take(std::span<const Record> records) override {
    for (const Record& record : records) {
      if (record.thread >= calls_.size()) calls_.resize(record.thread + std::size_t{1});
      std::uint32_t& calls = calls_[record.thread];
      if (record.kind == InstructionClass::marker) {
        note(record.address, calls);
        continue;
      }
      if (calls > 0) continue;
      const auto process = static_cast<std::size_t>(record.pc >> process_shift);
      if (process >= by_process_.size()) by_process_.resize(process + 1);
      ++by_process_[process][static_cast<std::size_t>(record.kind)];
    }
  }

  // The work of one process.
  struct Summary {
    std::uint64_t instructions = 0, branches = 0, loads = 0, stores = 0;
  };
  // Of each process that executed something.
  std::vector<Summary> summaries() const {
    std::vector<Summary> all;
    for (const Counts& counts : by_process_) {
      const auto of = [&](InstructionClass kind) { return counts[static_cast<std::size_t>(kind)]; };
      const std::uint64_t instructions = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
      if (instructions == 0) continue;  // numbers of processes do not begin at 0
      all.push_back({.instructions = instructions,
                     .branches = of(InstructionClass::branch) + of(InstructionClass::jump) +
                                 of(InstructionClass::indirect),
                     .loads = of(InstructionClass::load) + of(InstructionClass::atomic),
                     .stores = of(InstructionClass::store)});
    }
    return all;
  }

 private:
  static constexpr int process_shift = 40;  // above it is the number of the process (linux/address_space.hpp)

  void note(std::uint64_t marker, std::uint32_t& calls) const {
    const MarkerAction action = marker_action(marker);
    if (action != MarkerAction::enter && action != MarkerAction::leave) return;
    if (regions_[static_cast<std::uint32_t>(marker_subject(marker))].kind != RegionKind::mpi) return;
    if (action == MarkerAction::enter)
      ++calls;
    else if (calls > 0)
      --calls;
  }

  const RegionTable& regions_;
  std::vector<std::uint32_t> calls_;  // of MPI that each thread is in
  std::vector<Counts> by_process_;    // by the number in their addresses
};

}  // namespace manyscale::cpu
