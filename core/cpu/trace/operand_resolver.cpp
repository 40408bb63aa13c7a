// SPDX-License-Identifier: Apache-2.0
#include "cpu/trace/operand_resolver.hpp"

#include <algorithm>

namespace manyscale::cpu {

namespace {

// What a delay that does not fit adds to the weight of a producer: more than all dependences do.
constexpr std::uint32_t weight_of_long_delay = 16;

}  // namespace

bool OperandResolver::resolve(std::uint64_t position, std::span<const SourceOperand> operands,
                              const Dependence& own, std::span<Dependence> dependences, bool allowed) {
  for (;;) {
    Candidates found = collect(position, operands, own);
    if (!fits(found, dependences.size())) {
      drop_covered(position, found);
      drop_covered_dispatch(position, found);
    }
    if (!fits(found, dependences.size())) {
      if (!allowed) return false;
      if (split(found)) continue;
      found.count = std::min(found.count, dependences.size() - (found.dispatch.delay > 0 ? 1 : 0));
    }
    std::copy_n(found.nodes.begin(), found.count, dependences.begin());
    if (found.dispatch.delay > 0) dependences[found.count] = found.dispatch;
    return true;
  }
}

OperandResolver::Candidates OperandResolver::collect(std::uint64_t position,
                                                     std::span<const SourceOperand> operands,
                                                     const Dependence& own) {
  Candidates found;
  found.dispatch = own;
  CompactionEntry& entry = window_[position];
  for (const SourceOperand& operand : operands) {
    const std::uint64_t distance = operand.distance;
    if (distance == 0 || distance > position || distance >= window_.lag()) continue;
    const CompactionEntry& producer = window_[position - distance];
    entry.waits_for_memory |=
        producer.waits_for_memory || (producer.is_node && producer.record.touches_memory());
    if (producer.is_node) {
      add_node(position, {position - distance, operand.latency, operand.l1_hits}, found);
    } else {
      add_compacted(position, operand, found);
    }
  }
  return found;
}

void OperandResolver::add_node(std::uint64_t position, const Dependence& dependence,
                               Candidates& found) const {
  const CompactionLimits& limits = window_.limits();
  const std::uint64_t age = position - dependence.node;
  if (age >= window_.lag()) return;
  // Then it has committed before this one is dispatched, and the delay is over, too.
  if (limits.width > 0 && age >= limits.window + limits.width * dependence.delay) return;
  found.longest = std::max(found.longest, dependence.delay);
  for (std::size_t i = 0; i < found.count; ++i) {
    if (found.nodes[i].node != dependence.node) continue;
    if (dependence.delay > found.nodes[i].delay) found.nodes[i] = dependence;
    return;
  }
  found.nodes[found.count++] = dependence;
}

// What a compacted producer waits for, its latency later.
void OperandResolver::add_compacted(std::uint64_t position, const SourceOperand& operand,
                                    Candidates& found) const {
  const std::uint64_t producer_position = position - operand.distance;
  const CompactionEntry& entry = window_[position];
  const CompactionEntry& producer = window_[producer_position];
  // The dependences of a filtered access are those of its result.
  const std::uint32_t own_latency = producer.filter.is_hit ? 0 : window_.latencies().latency(producer.record);
  const std::uint32_t latency = own_latency + operand.latency;
  const std::uint64_t slots_per_cycle = window_.slots_per_cycle();
  Dependence chain{Dependence::on_dispatch, 0, 0, producer_position, producer.dispatch_slot};
  std::uint32_t weight = 0;
  for (const Dependence& each : producer.dependences) {
    const Dependence dependence = window_.from_chain_start(each);
    if (dependence.is_on_dispatch()) {
      if (dependence.delay == 0 || dependence.ready_slot <= chain.ready_slot) continue;
      chain = dependence;
    } else {
      const std::uint32_t delay = dependence.delay + latency;
      add_node(position, {dependence.node, delay, dependence.l1_hits + operand.l1_hits}, found);
      weight += 1 + (delay > longest_delay ? weight_of_long_delay : 0);
    }
  }
  chain.ready_slot += latency * slots_per_cycle;
  if (chain.ready_slot > entry.dispatch_slot) {
    const std::uint64_t left = chain.ready_slot - entry.dispatch_slot;
    chain.delay = static_cast<std::uint32_t>((left + slots_per_cycle - 1) / slots_per_cycle);
    chain.l1_hits += operand.l1_hits;
    weight += chain.delay > window_.limits().tuning.max_dispatch_delay ? weight_of_long_delay : 0;
    if (found.dispatch.delay == 0 || chain.ready_slot > found.dispatch.ready_slot) found.dispatch = chain;
  }
  if (found.heaviest == Dependence::on_dispatch || weight > found.heaviest_weight) {
    found.heaviest = producer_position;
    found.heaviest_weight = weight;
  }
}

bool OperandResolver::fits(const Candidates& found, std::size_t room) const {
  return found.count + (found.dispatch.delay > 0 ? 1 : 0) <= room && found.longest <= longest_delay &&
         found.dispatch.delay <= window_.limits().tuning.max_dispatch_delay;
}

void OperandResolver::drop_covered(std::uint64_t position, Candidates& found) const {
  const std::uint32_t own_delay = found.dispatch.delay;
  const std::uint64_t own_ready = own_delay + window_[position].dispatch_slot / window_.slots_per_cycle() + 1;
  for (std::size_t i = 0; i < found.count;) {
    const Dependence& each = found.nodes[i];
    const std::span<const Dependence> all(found.nodes.data(), found.count);
    const bool is_covered =
        window_.over_at_dispatch(position, each) || window_.over_before(each, own_ready) ||
        window_.is_committed(position, each, own_delay) ||
        std::ranges::any_of(all, [&](const Dependence& other) { return window_.is_covered(each, other); });
    if (is_covered) {
      found.nodes[i] = found.nodes[--found.count];
    } else {
      ++i;
    }
  }
}

void OperandResolver::drop_covered_dispatch(std::uint64_t position, Candidates& found) const {
  const bool is_limited = window_.limits().width > 0;
  for (std::size_t i = 0;
       i < found.count && found.dispatch.delay <= window_.limits().tuning.max_dispatch_delay; ++i) {
    const CompactionEntry& node = window_[found.nodes[i].node];
    // Without a dispatch width the least latency of a load is not known.
    const std::uint64_t latency =
        is_limited ? window_.hit_latency(node.record) : window_.latencies().latency(node.record);
    const std::uint64_t own = found.dispatch.delay + window_.cycles_between(node, window_[position]);
    if (own <= found.nodes[i].delay + latency) found.dispatch = {};
  }
}

bool OperandResolver::split(const Candidates& found) {
  const Dependence& chain = found.dispatch;
  if (chain.delay > window_.limits().tuning.max_dispatch_delay && chain.chain_start >= window_.oldest() &&
      !window_[chain.chain_start].is_node) {
    window_.make_node(chain.chain_start);
    return true;
  }
  if (found.heaviest == Dependence::on_dispatch) return false;
  window_.make_node(found.heaviest);
  return true;
}

}  // namespace manyscale::cpu
