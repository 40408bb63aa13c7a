// SPDX-License-Identifier: Apache-2.0
#include "cpu/trace/compactor.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace manyscale::cpu {

namespace {

constexpr std::uint32_t most_weight = 255;

bool is_taken(const Record& record) {
  return record.is_control() && (record.kind != InstructionClass::branch || record.has(Trait::taken));
}

}  // namespace

TraceCompactor::TraceCompactor(const Latencies& latencies, const CompactionLimits& limits)
    : latencies_(latencies),
      limits_(limits),
      window_(latencies, limits),
      pressure_(latencies),
      bursts_(limits.reorder_buffer),
      node_slots_(window_.size()) {}

void TraceCompactor::reset() {
  window_.reset();
  pressure_.reset();
  bursts_.clear();
  dispatch_slot_ = 0;
  node_ = 0;
  compacted_ = 0;
  branches_ = {};
  markers_.clear();
  first_marker_ = 0;
  nodes_.clear();
  l1_hits_.clear();
}

void TraceCompactor::take(const TraceNode& record, const FilterResult& filter) {
  const std::uint64_t position = window_.next();
  if (record.kind == InstructionClass::marker) {
    if (position > window_.oldest()) window_[position - 1].ends_part = true;
    markers_.push_back({position, record});
    return;
  }
  if (position - window_.oldest() >= window_.lag()) emit();
  CompactionEntry& entry = window_.push(record, filter);
  entry.is_node = must_be_node(record, filter);
  entry.dispatch_slot = dispatch_slot_;
  advance_dispatch(record);
  find_dependences(position, entry);
  if (pressure_.limits_any()) pressure_.pace(window_, position, entry);
  enter_issue_queue(position, entry);
  entry.complete = completion(entry);
  window_.advance_next();
}

// The slot in which the next instruction is dispatched: a taken branch is the last of its cycle.
void TraceCompactor::advance_dispatch(const TraceNode& record) {
  if (limits_.width > 0) ++dispatch_slot_;
  if (limits_.width > 0 && is_taken(record)) {
    dispatch_slot_ += limits_.width - 1;
    dispatch_slot_ -= dispatch_slot_ % limits_.width;
  }
  if (record.timing.prediction == Prediction::mispredict)
    dispatch_slot_ += limits_.width * latencies_.misprediction_penalty();
}

// The cycle of the result if only operands delay it.
std::uint64_t TraceCompactor::completion(const CompactionEntry& entry) const {
  const std::uint64_t position = window_.next();
  std::uint64_t ready = entry.dispatch_slot / window_.slots_per_cycle() + 1;
  for (const std::uint16_t distance : entry.record.producers) {
    if (distance == 0 || distance > position || distance >= window_.lag()) continue;
    ready = std::max(ready, window_[position - distance].complete);
  }
  return ready + window_.hit_latency(entry.record);
}

bool TraceCompactor::must_be_node(const TraceNode& record, const FilterResult& filter) {
  if (limits_.model_ports) {
    pressure_.count(record, window_.next(), limits_.tuning);
    if ((latencies_.unit_rows() >> Latencies::row(record) & 1) != 0) return true;
    if (record.touches_memory() && pressure_.limits(record)) return true;
  }
  if (filter.misses_l1i) return true;
  switch (record.kind) {
    case InstructionClass::load:
    case InstructionClass::store:
      return !filter.is_hit;
    case InstructionClass::atomic:
    case InstructionClass::fence:
    case InstructionClass::system:
      return true;
    case InstructionClass::branch:
    case InstructionClass::jump:
    case InstructionClass::indirect:
      return record.timing.prediction != Prediction::correct;
    default:
      return false;
  }
}

void TraceCompactor::find_dependences(std::uint64_t position, CompactionEntry& entry) {
  if (entry.filter.is_hit && !entry.is_node) {
    if (find_result_dependences(position, entry)) return;
    entry.is_node = true;
    entry.dependences = {};
  }
  entry.filter.is_hit = false;
  find_operand_dependences(position, entry, true);
}

bool TraceCompactor::find_operand_dependences(std::uint64_t position, CompactionEntry& entry, bool allowed) {
  const auto& producers = entry.record.producers;
  std::array<SourceOperand, 4> operands{};
  for (std::size_t i = 0; i < producers.size(); ++i) operands[i].distance = producers[i];
  // A node finds older stores among the nodes, but not those that are compacted.
  const std::uint16_t store = entry.filter.store;
  if (store > 0 && store <= position && store < window_.lag() && !window_[position - store].is_node)
    operands[3].distance = store;
  const std::span<const SourceOperand> all = operands;
  const std::span<Dependence> dependences = entry.dependences;
  if (entry.record.kind == InstructionClass::store) {
    return resolver_.resolve(position, all.first(1), {}, dependences.first(1), allowed) &&
           resolver_.resolve(position, all.subspan(1), {}, dependences.subspan(1), allowed);
  }
  return resolver_.resolve(position, all, {}, dependences, allowed);
}

// When the result of a load or a store that hits the filter is there: as a node would have it.
bool TraceCompactor::find_result_dependences(std::uint64_t position, CompactionEntry& entry) {
  const auto& producers = entry.record.producers;
  const bool is_load = entry.record.kind == InstructionClass::load;
  const std::uint32_t latency = window_.hit_latency(entry.record);
  const std::uint32_t l1_hits = is_load ? 1 : 0;
  std::array<SourceOperand, 5> operands{};
  for (std::size_t i = 0; i < producers.size(); ++i) operands[i] = {producers[i], latency, l1_hits};
  if (is_load) {
    operands[3] = {entry.filter.fill};
    operands[4] = {entry.filter.store, latencies_.store_forward()};
  } else {
    operands[0] = {producers[0]};
  }
  const Dependence own{Dependence::on_dispatch, latency, l1_hits, position,
                       entry.dispatch_slot + latency * window_.slots_per_cycle()};
  return resolver_.resolve(position, operands, own, entry.dependences, false);
}

// What an instruction waits for, now that it is known which of those before it are nodes: the nearest nodes
// give its operands' times most exactly on a machine that cannot dispatch at full width.
void TraceCompactor::refine_dependences(std::uint64_t position, CompactionEntry& entry) {
  const Dependences before = std::exchange(entry.dependences, {});
  bool found = entry.filter.is_hit ? find_result_dependences(position, entry)
                                   : find_operand_dependences(position, entry, false);
  if (found && !entry.port_dependence.is_on_dispatch()) {
    Dependence* const unused = entry.unused_dependence();
    found = unused != nullptr;
    if (found) *unused = entry.port_dependence;
  }
  if (!found) {
    entry.dependences = before;
  } else {
    wait_for_port(entry);
  }
}

// An instruction waits in an issue queue until the nodes that it needs are complete, and then for a port;
// which of them completes last is known in a replay only. A load that waits for its line only has issued.
void TraceCompactor::enter_issue_queue(std::uint64_t position, CompactionEntry& entry) {
  if (limits_.width == 0 || entry.record.kind == InstructionClass::store) return;
  const Dependence* youngest = nullptr;
  for (const Dependence& each : entry.dependences) {
    if (each.is_on_dispatch() || position - each.node >= limits_.reorder_buffer) continue;
    if (youngest == nullptr || each.node > youngest->node) youngest = &each;
  }
  if (youngest == nullptr || (entry.filter.is_hit && position - youngest->node == entry.filter.fill)) return;
  entry.awaited = youngest->node;
  const std::uint32_t latency =
      entry.filter.is_hit ? latencies_.latency(entry.record) + latencies_.l1_hit() : 0;
  const std::uint32_t ready = youngest->delay - std::min(youngest->delay, latency);
  entry.port_delay = bursts_.take(entry.awaited, ready, latencies_.ports(entry.record)) + latency;
  wait_for_port(entry);
  if (!entry.is_node) window_.count_waiter(position, entry, 1);
}

void TraceCompactor::wait_for_port(CompactionEntry& entry) {
  for (Dependence& each : entry.dependences) {
    if (each.node == entry.awaited && !each.is_on_dispatch())
      each.delay = std::min(std::max(each.delay, entry.port_delay), longest_delay);
  }
}

// Makes a node of the instruction that completes last of the next few, if none of them is a node, or the next
// node completes long before it: those behind it commit when it does, and have reorder buffer entries until
// then.
void TraceCompactor::represent_group() {
  if (limits_.max_compacted >= most_weight) return;
  const std::uint64_t begin = window_.oldest();
  const std::uint64_t end = std::min(window_.next(), begin + limits_.max_compacted);
  std::uint64_t last = begin;
  for (std::uint64_t i = begin; i < end; ++i) {
    const CompactionEntry& entry = window_[i];
    if (entry.is_node || entry.ends_part) {
      if (i > last && window_[last].complete > entry.complete + limits_.tuning.max_hidden_completion)
        window_.make_node(last);
      return;
    }
    if (entry.complete >= window_[last].complete) last = i;
  }
  if (last < end) window_.make_node(last);
}

void TraceCompactor::emit_markers(std::uint64_t until) {
  for (; first_marker_ < markers_.size() && markers_[first_marker_].position <= until; ++first_marker_) {
    nodes_.push_back(markers_[first_marker_].record);
    l1_hits_.emplace_back();
  }
  if (first_marker_ == markers_.size()) {
    markers_.clear();
    first_marker_ = 0;
  }
}

void TraceCompactor::emit() {
  const std::uint64_t position = window_.oldest();
  emit_markers(position);
  if (compacted_ == 0) represent_group();
  CompactionEntry& entry = window_[position];
  const bool taken = is_taken(entry.record);
  const bool is_full = compacted_ == most_weight || (taken && branches_.count == CompactedBranches::most);
  if (!entry.is_node && (entry.ends_part || is_full)) window_.make_node(position);
  window_.advance_oldest();
  refine_dependences(position, entry);
  if (entry.is_node) {
    emit_node(entry);
    return;
  }
  ++compacted_;
  entry.node = node_;
  if (taken) {
    branches_ = {static_cast<std::uint8_t>(branches_.count + 1), 0};
  } else if (branches_.count > 0 && branches_.after < CompactedBranches::most) {
    ++branches_.after;
  }
}

// A long delay after dispatch counts from the node that the first instruction of its chain is, or is
// compacted into: how long before that was dispatched follows from the machine of the replay.
bool TraceCompactor::refer_to_dispatch(const CompactionEntry& entry, std::size_t operand,
                                       TraceNode& node) const {
  const Dependence& dependence = entry.dependences[operand];
  if (dependence.delay <= limits_.tuning.max_own_dispatch_delay || limits_.width == 0) return false;
  const std::uint64_t base = window_[dependence.chain_start].node;
  if (base >= node_) return false;
  const std::uint64_t between = (entry.dispatch_slot - node_slots_[base & window_.mask()]) / limits_.width;
  if (dependence.delay + between > longest_delay) return false;
  node.producers[operand] = static_cast<std::uint16_t>(node_ - base);
  node.timing.from_dispatch = static_cast<std::uint8_t>(node.timing.from_dispatch | 1u << operand);
  node.timing.delays[operand] = static_cast<std::uint8_t>(dependence.delay + between);
  return true;
}

void TraceCompactor::emit_node(CompactionEntry& entry) {
  TraceNode node = entry.record;
  L1Hits& l1_hits = l1_hits_.emplace_back();
  for (std::size_t i = 0; i < entry.dependences.size(); ++i) {
    Dependence dependence = entry.dependences[i];
    if (dependence.chain_start + 1 < window_.oldest()) {
      const Dependence exact = window_.from_chain_start(dependence);
      if (exact.delay <= longest_delay) dependence = exact;
    }
    l1_hits[i] = static_cast<std::uint8_t>(dependence.l1_hits);
    if (dependence.is_on_dispatch() && refer_to_dispatch(entry, i, node)) continue;
    node.producers[i] = dependence.is_on_dispatch()
                            ? std::uint16_t{0}
                            : static_cast<std::uint16_t>(node_ - window_[dependence.node].node);
    node.timing.delays[i] = static_cast<std::uint8_t>(dependence.delay);
  }
  node.timing.weight = static_cast<std::uint8_t>(compacted_);
  node.timing.branches = branches_;
  node.timing.waiters = WaiterCounts::rounded(static_cast<std::uint32_t>(entry.waiters));
  node_slots_[node_ & window_.mask()] = entry.dispatch_slot;
  entry.node = node_++;
  compacted_ = 0;
  branches_ = {};
  nodes_.push_back(node);
}

void TraceCompactor::flush() {
  if (window_.next() > window_.oldest()) window_[window_.next() - 1].ends_part = true;
  while (window_.oldest() < window_.next()) emit();
  emit_markers(window_.next());
}

}  // namespace manyscale::cpu
