// SPDX-License-Identifier: Apache-2.0
// Port pressure: which issue ports have more work than they can take while the core dispatches at full width,
// and which instruction of each group of ports becomes a node next, so that a replay keeps the ports' rate.
#pragma once
#include <array>
#include <cstdint>

#include "cpu/trace/compaction_spec.hpp"
#include "cpu/trace/compaction_window.hpp"
#include "cpu/trace/latencies.hpp"

namespace manyscale::cpu {

class PortPressure {
 public:
  explicit PortPressure(const Latencies& latencies) : latencies_(latencies) {}

  void reset();
  // Counts the instruction at this position; now and then finds out which ports limit the rate.
  void count(const TraceNode& record, std::uint64_t position, const CompactionTuning& tuning);
  bool limits_any() const { return limiting_ != 0; }
  // Whether the ports of an instruction limit the rate.
  bool limits(const Record& record) const;
  // Of the instruction at `position`, whose operands are known: after a few of the same ports it becomes a
  // node, and waits for the last such node as long as the ports need for those between. One that waits for
  // memory does not: others would have the ports meanwhile.
  void pace(CompactionWindow& window, std::uint64_t position, CompactionEntry& entry);

 private:
  // Instructions of a group of ports since the last node that stands for them.
  struct Use {
    std::uint64_t last = Dependence::on_dispatch;  // that node
    std::uint32_t since = 0;
  };

  const Latencies& latencies_;
  Latencies::Counts executed_{};
  std::uint64_t mispredicted_ = 0;
  std::uint64_t limiting_ = 0;  // groups of ports, a bit each
  std::array<Use, Latencies::most_groups> uses_{};
};

}  // namespace manyscale::cpu
