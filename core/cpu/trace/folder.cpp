// SPDX-License-Identifier: Apache-2.0
#include "cpu/trace/folder.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace manyscale::cpu {

namespace {

constexpr std::uint32_t longest_delay = 255;
// A delay from dispatch supposes that all before it was dispatched at full speed. Longer calculations have
// nodes in between, which wait for what they really wait for.
constexpr std::uint32_t longest_from_dispatch = 10;
// What is left of a delay is counted from the dispatch of an older node if it is longer than this.
constexpr std::uint32_t longest_from_own_dispatch = 6;
constexpr std::uint32_t most_weight = 255;
// How many instructions are looked at to see which ports are scarce; loops are shorter, or repeat themselves.
constexpr std::uint64_t scarcity_period = 64;
// How many instructions of scarce ports one node stands for.
constexpr std::uint32_t port_node_period = 12;

bool is_taken(const Record& record) {
  return record.is_control() && (record.kind != Kind::branch || record.has(Trait::taken));
}

}  // namespace

Folder::Folder(const Latencies& latencies, const FoldLimits& limits)
    : latencies_(latencies),
      limits_(limits),
      lag_(std::bit_ceil(2 * limits.window)),
      entries_(2 * lag_),
      mask_(entries_.size() - 1),
      node_slots_(entries_.size()) {}

void Folder::reset() {
  next_ = emitted_ = node_ = 0;
  dispatch_slot_ = 0;
  folded_ = 0;
  turns_ = {};
  markers_.clear();
  first_marker_ = 0;
  executed_.fill(0);
  mispredicted_ = 0;
  scarce_ = scarce_groups_ = 0;
  uses_ = {};
  nodes_.clear();
  hits_.clear();
}

void Folder::take(const Record& record, const NearAccess& near) {
  if (record.kind == Kind::marker) {
    if (next_ > emitted_) at(next_ - 1).last_of_part = true;
    markers_.push_back({next_, record});
    return;
  }
  if (next_ - emitted_ >= lag_) emit();
  Entry& entry = at(next_);
  entry.record = record;
  entry.near = near;
  entry.slots = {};
  entry.kept = must_stay(record, near);
  entry.last_of_part = false;
  entry.waits_for_memory = false;
  entry.dispatch_slot = dispatch_slot_++;
  if (limits_.width > 0 && is_taken(record)) {
    dispatch_slot_ += limits_.width - 1;
    dispatch_slot_ -= dispatch_slot_ % limits_.width;
  }
  if (record.has(Trait::mispredicted)) dispatch_slot_ += limits_.width * latencies_.astray();
  find_slots(next_, entry);
  if (scarce_groups_ != 0) hold_ports(next_, entry);
  entry.complete = entry.dispatch_slot / std::max<std::uint64_t>(limits_.width, 1) + 1;
  for (const std::uint16_t distance : record.producers) {
    if (distance == 0 || distance > next_ || distance >= lag_) continue;
    entry.complete = std::max(entry.complete, at(next_ - distance).complete);
  }
  entry.complete += latencies_.latency(record) + (record.kind == Kind::load ? latencies_.hit() : 0);
  ++next_;
}

bool Folder::must_stay(const Record& record, const NearAccess& near) {
  if (limits_.keep_scarce) {
    count_ports(record);
    if ((scarce_ >> Latencies::row(record) & 1) != 0) return true;
    if (record.touches_memory() && is_in_scarce_group(record)) return true;
  }
  switch (record.kind) {
    case Kind::load:
    case Kind::store:
      return !near.is_near;
    case Kind::atomic:
    case Kind::fence:
    case Kind::system:
      return true;
    case Kind::branch:
    case Kind::jump:
    case Kind::indirect:
      return record.has(Trait::mispredicted) || record.is_late();
    default:
      return false;
  }
}

bool Folder::is_in_scarce_group(const Record& record) const {
  const std::size_t row = Latencies::row(record);
  for (std::uint64_t left = scarce_groups_; left != 0; left &= left - 1) {
    if ((latencies_.groups()[static_cast<std::size_t>(std::countr_zero(left))].rows >> row & 1) != 0)
      return true;
  }
  return false;
}

// Finds out now and then which ports and units are scarce.
void Folder::count_ports(const Record& record) {
  ++executed_[Latencies::row(record)];
  mispredicted_ += record.has(Trait::mispredicted);
  if (next_ % scarcity_period != scarcity_period - 1) return;
  scarce_ = latencies_.scarce_rows(executed_, mispredicted_);
  scarce_groups_ = latencies_.scarce_groups(executed_, mispredicted_);
  executed_.fill(0);
  mispredicted_ = 0;
}

// Counts an instruction of scarce ports. After a few of them, one becomes a node that waits for the last such
// node as long as the ports need for those between. What waits for memory cannot be that one: others would
// have the ports meanwhile.
void Folder::hold_ports(std::uint64_t position, Entry& entry) {
  const std::size_t row = Latencies::row(entry.record);
  for (std::uint64_t left = scarce_groups_; left != 0; left &= left - 1) {
    const auto number = static_cast<std::size_t>(std::countr_zero(left));
    const Latencies::PortGroup& group = latencies_.groups()[number];
    if ((group.rows >> row & 1) == 0) continue;
    PortUse& use = uses_[number];
    ++use.since;
    const auto ports = static_cast<std::uint32_t>(std::popcount(group.ports));
    if (use.since < port_node_period || use.since % ports != 0) continue;
    if (entry.record.touches_memory() || entry.waits_for_memory) continue;
    const auto place = std::find_if(entry.slots.rbegin(), entry.slots.rend(), [](const Slot& slot) {
      return slot.position == Slot::dispatch && slot.delay == 0;
    });
    if (place == entry.slots.rend()) continue;
    const std::uint32_t cycles = use.since / ports, latency = latencies_.latency(entry.record);
    if (use.last != Slot::dispatch && position - use.last < lag_ && cycles > latency)
      *place = {use.last, std::min(cycles - latency, longest_delay)};
    entry.kept = true;
    use = {position, 0};
  }
}

void Folder::find_slots(std::uint64_t position, Entry& entry) {
  if (entry.near.is_near && !entry.kept) {
    if (find_near_slots(position, entry)) return;
    entry.kept = true;
    entry.slots = {};
  }
  entry.near.is_near = false;
  const auto& producers = entry.record.producers;
  std::array<Need, 4> needs{};
  for (std::size_t i = 0; i < producers.size(); ++i) needs[i].distance = producers[i];
  // A node finds older stores among the nodes, but not those that are folded.
  if (const std::uint16_t store = entry.near.store; store > 0 && store <= position && store < lag_) {
    if (!at(position - store).kept) needs[3].distance = store;
  }
  const std::span<const Need> all = needs;
  const std::span<Slot> slots = entry.slots;
  if (entry.record.kind == Kind::store) {
    combine(position, all.first(1), {}, slots.first(1), true);
    combine(position, all.subspan(1), {}, slots.subspan(1), true);
  } else {
    combine(position, all, {}, slots, true);
  }
}

// When the result of a load or a store that is sure to hit is there: as a node would have it.
bool Folder::find_near_slots(std::uint64_t position, Entry& entry) {
  const auto& producers = entry.record.producers;
  const bool is_load = entry.record.kind == Kind::load;
  const std::uint32_t latency = latencies_.latency(entry.record);
  const std::uint32_t lead = is_load ? latency + latencies_.hit() : latency;
  const std::uint32_t hits = is_load ? 1 : 0;
  std::array<Need, 5> needs{};
  for (std::size_t i = 0; i < producers.size(); ++i) needs[i] = {producers[i], lead, hits};
  if (is_load) {
    needs[3] = {entry.near.filler};
    needs[4] = {entry.near.store, latencies_.forward()};
  } else {
    needs[0] = {producers[0]};
  }
  return combine(position, needs, {Slot::dispatch, lead, hits, position}, entry.slots, false);
}

// Makes a node of an instruction that was folded.
void Folder::keep(Entry& entry) {
  entry.kept = true;
  if (!std::exchange(entry.near.is_near, false)) return;
  const bool is_load = entry.record.kind == Kind::load;
  const std::uint32_t lead = latencies_.latency(entry.record) + (is_load ? latencies_.hit() : 0);
  for (std::size_t i = is_load ? 0 : 1; i < entry.slots.size(); ++i) {
    Slot& slot = entry.slots[i];
    slot.delay -= std::min(slot.delay, lead);
    slot.hits -= std::min(slot.hits, is_load ? 1u : 0u);
  }
}

bool Folder::combine(std::uint64_t position, std::span<const Need> needs, const Slot& own,
                     std::span<Slot> slots, bool allowed) {
  Entry& entry = at(position);
  for (;;) {
    std::array<Slot, 15> found;
    std::size_t count = 0;
    Slot dispatch = own;
    std::uint32_t longest = 0;
    // Cycles from the dispatch of an instruction to that of this one, at least.
    const auto passed_since = [&](const Entry& other) {
      return limits_.width > 0 ? (entry.dispatch_slot - other.dispatch_slot) / limits_.width : 0;
    };
    Entry* largest = nullptr;  // of the folded producers, the one to be made a node if that must be
    std::uint32_t largest_size = 0;
    const auto add = [&](std::uint64_t node, std::uint32_t delay, std::uint32_t hits) {
      const std::uint64_t age = position - node;
      if (age >= lag_) return;
      // Then it has committed before this one is dispatched, and the delay is over, too.
      if (limits_.width > 0 && age >= limits_.window + limits_.width * delay) return;
      longest = std::max(longest, delay);
      for (std::size_t i = 0; i < count; ++i) {
        if (found[i].position != node) continue;
        if (delay > found[i].delay) found[i] = {node, delay, hits};
        return;
      }
      found[count++] = {node, delay, hits};
    };
    for (const Need& need : needs) {
      const std::uint64_t distance = need.distance;
      if (distance == 0 || distance > position || distance >= lag_) continue;
      Entry& producer = at(position - distance);
      entry.waits_for_memory |=
          producer.waits_for_memory || (producer.kept && producer.record.touches_memory());
      if (producer.kept) {
        add(position - distance, need.lead, need.hits);
        continue;
      }
      const std::uint32_t latency = latency_of(producer) + need.lead;
      std::uint32_t waited = 0;  // from its dispatch on
      std::uint32_t waited_hits = 0;
      std::uint64_t start = position - distance;
      std::uint32_t size = 0;
      for (const Slot& slot : producer.slots) {
        if (slot.position == Slot::dispatch) {
          if (slot.delay <= waited) continue;
          waited = slot.delay;
          waited_hits = slot.hits;
          start = slot.start;
        } else {
          add(slot.position, slot.delay + latency, slot.hits + need.hits);
          size += 1 + (slot.delay + latency > longest_delay ? 16 : 0);
        }
      }
      waited += latency;
      if (const std::uint64_t passed = passed_since(producer); waited > passed) {
        const auto left = waited - static_cast<std::uint32_t>(passed);
        size += left > longest_from_dispatch ? 16 : 0;
        if (left > dispatch.delay) dispatch = {Slot::dispatch, left, waited_hits + need.hits, start};
      }
      if (largest == nullptr || size > largest_size) {
        largest = &producer;
        largest_size = size;
      }
    }
    const auto fits = [&] {
      return count + (dispatch.delay > 0 ? 1 : 0) <= slots.size() && longest <= longest_delay &&
             dispatch.delay <= longest_from_dispatch;
    };
    if (!fits()) {
      for (std::size_t i = 0; i < count;) {
        const bool other_is_later =
            over_at_dispatch(position, found[i]) ||
            std::any_of(found.begin(), found.begin() + static_cast<long>(count),
                        [&](const Slot& other) { return redundant(found[i], other); });
        if (other_is_later) {
          found[i] = found[--count];
        } else {
          ++i;
        }
      }
      // Nodes are dispatched before this one, and take their time from there.
      for (std::size_t i = 0; i < count && dispatch.delay <= longest_from_dispatch; ++i) {
        const Entry& node = at(found[i].position);
        const std::uint64_t since =
            found[i].delay + latencies_.latency(node.record) +
            (limits_.width > 0 && node.record.kind == Kind::load ? latencies_.hit() : 0);
        if (dispatch.delay + passed_since(node) <= since) dispatch = {};
      }
      if (!fits()) {
        if (!allowed) return false;
        if (largest != nullptr) {
          keep(*largest);
          continue;
        }
        count = std::min(count, slots.size() - (dispatch.delay > 0 ? 1 : 0));
      }
    }
    std::copy_n(found.begin(), count, slots.begin());
    if (dispatch.delay > 0) slots[count] = dispatch;
    return true;
  }
}

// Whether a node that waits only for its own dispatch has its result, and the delay is over, before an
// instruction is dispatched.
bool Folder::over_at_dispatch(std::uint64_t position, const Slot& slot) {
  if (limits_.width == 0) return false;
  const Entry& node = at(slot.position);
  if (node.record.touches_memory()) return false;
  std::uint64_t waited = 1 + latencies_.latency(node.record) + slot.delay;
  for (const Slot& each : node.slots) {
    if (each.position != Slot::dispatch) return false;
    waited += each.delay;
  }
  return (at(position).dispatch_slot - node.dispatch_slot) / limits_.width >= waited;
}

// Whether `other` is a node that waits for that of `slot`, and the result of that for long enough.
bool Folder::redundant(const Slot& slot, const Slot& other) {
  if (other.position <= slot.position) return false;
  const Entry& later = at(other.position);
  return std::ranges::any_of(later.slots, [&](const Slot& waited) {
    return waited.position == slot.position &&
           slot.delay <= other.delay + waited.delay + latencies_.latency(later.record);
  });
}

// Makes a node of the instruction that is complete last of the next few, if none of them is a node: those
// behind it commit when it does, and have places of the reorder buffer until then.
void Folder::represent_group() {
  if (limits_.most_folded >= most_weight) return;
  const std::uint64_t end = std::min(next_, emitted_ + limits_.most_folded);
  Entry* last = nullptr;
  for (std::uint64_t i = emitted_; i < end; ++i) {
    Entry& entry = at(i);
    if (entry.kept || entry.last_of_part) return;
    if (last == nullptr || entry.complete >= last->complete) last = &entry;
  }
  if (last != nullptr) keep(*last);
}

void Folder::emit() {
  for (; first_marker_ < markers_.size() && markers_[first_marker_].position == emitted_; ++first_marker_) {
    nodes_.push_back(markers_[first_marker_].record);
    hits_.emplace_back();
  }
  if (first_marker_ == markers_.size()) {
    markers_.clear();
    first_marker_ = 0;
  }
  if (folded_ == 0) represent_group();
  Entry& entry = at(emitted_++);
  const bool turns = is_taken(entry.record);
  const bool is_full = folded_ == most_weight || (turns && turns_.count == FoldedTurns::most);
  if (!entry.kept && (entry.last_of_part || is_full)) keep(entry);
  if (entry.kept) {
    emit_node(entry);
    return;
  }
  ++folded_;
  entry.node = node_;
  if (turns) {
    turns_ = {static_cast<std::uint8_t>(turns_.count + 1), 0};
  } else if (turns_.count > 0 && turns_.after < FoldedTurns::most) {
    ++turns_.after;
  }
}

// A long delay after dispatch counts from the node that its first instruction is, or is folded into: that was
// dispatched as long before as the machine of the replay says.
bool Folder::refer_to_dispatch(const Entry& entry, std::size_t operand, Record& node) const {
  const Slot& slot = entry.slots[operand];
  if (slot.delay <= longest_from_own_dispatch || limits_.width == 0) return false;
  const std::uint64_t base = at(slot.start).node;
  if (base >= node_) return false;
  const std::uint64_t between = (entry.dispatch_slot - node_slots_[base & mask_]) / limits_.width;
  if (slot.delay + between > longest_delay) return false;
  node.producers[operand] = static_cast<std::uint16_t>((node_ - base) | Record::dispatched);
  node.delays[operand] = static_cast<std::uint8_t>(slot.delay + between);
  return true;
}

void Folder::emit_node(Entry& entry) {
  Record node = entry.record;
  Hits& hits = hits_.emplace_back();
  for (std::size_t i = 0; i < entry.slots.size(); ++i) {
    const Slot& slot = entry.slots[i];
    hits[i] = static_cast<std::uint8_t>(slot.hits);
    if (slot.position == Slot::dispatch && refer_to_dispatch(entry, i, node)) continue;
    node.producers[i] = slot.position == Slot::dispatch
                            ? std::uint16_t{0}
                            : static_cast<std::uint16_t>(node_ - at(slot.position).node);
    node.delays[i] = static_cast<std::uint8_t>(slot.delay);
  }
  node.weight = static_cast<std::uint8_t>(folded_);
  node.set_folded_turns(turns_);
  node_slots_[node_ & mask_] = entry.dispatch_slot;
  entry.node = node_++;
  folded_ = 0;
  turns_ = {};
  nodes_.push_back(node);
}

void Folder::flush() {
  if (next_ > emitted_) at(next_ - 1).last_of_part = true;
  while (emitted_ < next_) emit();
  for (; first_marker_ < markers_.size(); ++first_marker_) {
    nodes_.push_back(markers_[first_marker_].record);
    hits_.emplace_back();
  }
  markers_.clear();
  first_marker_ = 0;
}

}  // namespace manyscale::cpu
