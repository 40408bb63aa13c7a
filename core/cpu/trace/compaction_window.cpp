// SPDX-License-Identifier: Apache-2.0
#include "cpu/trace/compaction_window.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace manyscale::cpu {

Dependence* CompactionEntry::unused_dependence() {
  const auto found = std::find_if(dependences.rbegin(), dependences.rend(),
                                  [](const Dependence& each) { return each.is_none(); });
  return found == dependences.rend() ? nullptr : &*found;
}

CompactionWindow::CompactionWindow(const Latencies& latencies, const CompactionLimits& limits)
    : latencies_(latencies),
      limits_(limits),
      slots_per_cycle_(std::max<std::uint64_t>(limits.width, 1)),
      lag_(std::bit_ceil(2 * limits.window)),
      entries_(2 * lag_),
      mask_(entries_.size() - 1) {}

CompactionEntry& CompactionWindow::push(const TraceNode& record, const FilterResult& filter) {
  CompactionEntry& entry = (*this)[next_];
  entry.record = record;
  entry.filter = filter;
  entry.dependences = {};
  entry.port_dependence = {};
  entry.is_node = false;
  entry.ends_part = false;
  entry.waits_for_memory = false;
  entry.awaited = Dependence::on_dispatch;
  entry.port_delay = 0;
  entry.waiters = 0;
  return entry;
}

void CompactionWindow::count_waiter(std::uint64_t position, const CompactionEntry& entry, int change) {
  for (const Dependence& dependence : entry.dependences) {
    if (dependence.is_on_dispatch() || position - dependence.node >= limits_.reorder_buffer) continue;
    if (dependence.node >= oldest_) (*this)[dependence.node].waiters += change;
  }
}

void CompactionWindow::make_node(std::uint64_t position) {
  CompactionEntry& entry = (*this)[position];
  entry.is_node = true;
  if (entry.awaited != Dependence::on_dispatch) count_waiter(position, entry, -1);
  if (!std::exchange(entry.filter.is_hit, false)) return;
  // What the result waited for becomes what the operands wait for.
  const bool is_load = entry.record.kind == InstructionClass::load;
  const std::uint32_t latency = hit_latency(entry.record);
  entry.port_delay -= std::min(entry.port_delay, latency);
  for (std::size_t i = is_load ? 0 : 1; i < entry.dependences.size(); ++i) {
    Dependence& dependence = entry.dependences[i];
    dependence.delay -= std::min(dependence.delay, latency);
    dependence.ready_slot -= std::min(dependence.ready_slot, latency * slots_per_cycle_);
    dependence.l1_hits -= std::min(dependence.l1_hits, is_load ? 1u : 0u);
  }
}

Dependence CompactionWindow::from_chain_start(const Dependence& dependence) const {
  if (!dependence.is_on_dispatch() || dependence.delay == 0 ||
      dependence.chain_start + entries_.size() <= next_)
    return dependence;
  const CompactionEntry& start = (*this)[dependence.chain_start];
  if (!start.is_node) return dependence;
  const bool is_load = start.record.kind == InstructionClass::load;
  const auto total =
      static_cast<std::uint32_t>((dependence.ready_slot - start.dispatch_slot) / slots_per_cycle_);
  return {dependence.chain_start, total - std::min(total, hit_latency(start.record)),
          dependence.l1_hits - std::min(dependence.l1_hits, is_load ? 1u : 0u)};
}

bool CompactionWindow::over_at_dispatch(std::uint64_t position, const Dependence& dependence) const {
  if (limits_.width == 0) return false;
  const CompactionEntry& node = (*this)[dependence.node];
  if (node.record.touches_memory()) return false;
  std::uint64_t waited = 1 + latencies_.latency(node.record) + dependence.delay;
  for (const Dependence& each : node.dependences) {
    if (!each.is_on_dispatch()) return false;
    waited += each.delay;
  }
  return cycles_between(node, (*this)[position]) >= waited;
}

// What follows the node is dispatched later, and no sooner than at full width.
bool CompactionWindow::over_before(const Dependence& dependence, std::uint64_t cycle) const {
  const CompactionEntry& node = (*this)[dependence.node];
  if (limits_.width == 0 || node.waits_for_memory || node.record.touches_memory()) return false;
  return node.complete + dependence.delay <= cycle;
}

bool CompactionWindow::is_committed(std::uint64_t position, const Dependence& dependence,
                                    std::uint32_t later) const {
  return limits_.width > 0 && position - dependence.node + limits_.width * later >=
                                  limits_.reorder_buffer + limits_.width * dependence.delay;
}

bool CompactionWindow::is_covered(const Dependence& dependence, const Dependence& other) const {
  if (other.node <= dependence.node) return false;
  const CompactionEntry& later = (*this)[other.node];
  if (over_before(dependence, later.complete + other.delay)) return true;
  return std::ranges::any_of(later.dependences, [&](const Dependence& waited) {
    return waited.node == dependence.node &&
           dependence.delay <= other.delay + waited.delay + latencies_.latency(later.record);
  });
}

}  // namespace manyscale::cpu
