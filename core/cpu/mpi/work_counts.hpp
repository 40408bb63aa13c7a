// SPDX-License-Identifier: Apache-2.0
// How much work of each kind the processes of a program did outside of MPI: what tells ranks that behave
// differently apart. Within calls of MPI a rank may look again and again whether something has come.
#pragma once
#include <array>
#include <cstdint>
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

  // Records by kind of each process; those that are no process have none.
  const std::vector<Counts>& by_process() const { return by_process_; }

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
  std::vector<Counts> by_process_;
};

}  // namespace manyscale::cpu
