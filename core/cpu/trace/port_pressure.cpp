// SPDX-License-Identifier: Apache-2.0
#include "cpu/trace/port_pressure.hpp"

#include <algorithm>
#include <bit>

namespace manyscale::cpu {

void PortPressure::reset() {
  executed_.fill(0);
  mispredicted_ = 0;
  limiting_ = 0;
  uses_ = {};
}

void PortPressure::count(const TraceNode& record, std::uint64_t position, const CompactionTuning& tuning) {
  ++executed_[Latencies::row(record)];
  mispredicted_ += record.timing.prediction == Prediction::mispredict;
  if (position % tuning.port_sample_period != tuning.port_sample_period - 1) return;
  limiting_ = latencies_.limiting_groups(executed_, mispredicted_, tuning.port_slack);
  executed_.fill(0);
  mispredicted_ = 0;
}

bool PortPressure::limits(const Record& record) const {
  const std::size_t row = Latencies::row(record);
  for (std::uint64_t left = limiting_; left != 0; left &= left - 1) {
    if ((latencies_.groups()[static_cast<std::size_t>(std::countr_zero(left))].rows >> row & 1) != 0)
      return true;
  }
  return false;
}

void PortPressure::pace(CompactionWindow& window, std::uint64_t position, CompactionEntry& entry) {
  const std::size_t row = Latencies::row(entry.record);
  for (std::uint64_t left = limiting_; left != 0; left &= left - 1) {
    const auto number = static_cast<std::size_t>(std::countr_zero(left));
    const Latencies::PortGroup& group = latencies_.groups()[number];
    if ((group.rows >> row & 1) == 0) continue;
    Use& use = uses_[number];
    ++use.since;
    const auto ports = static_cast<std::uint32_t>(std::popcount(group.ports));
    if (use.since < window.limits().tuning.port_node_period || use.since % ports != 0) continue;
    if (entry.record.touches_memory() || entry.waits_for_memory) continue;
    Dependence* const unused = entry.unused_dependence();
    if (unused == nullptr) continue;
    const std::uint32_t cycles = use.since / ports, latency = latencies_.latency(entry.record);
    if (use.last != Dependence::on_dispatch && position - use.last < window.lag() && cycles > latency)
      *unused = entry.port_dependence = {use.last, std::min(cycles - latency, longest_delay)};
    entry.is_node = true;
    use = {position, 0};
  }
}

}  // namespace manyscale::cpu
