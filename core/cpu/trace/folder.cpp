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
// How much longer than the node behind it a folded instruction may take, which then commits too early.
constexpr std::uint64_t longest_unseen = 12;
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
      cycle_slots_(std::max<std::uint64_t>(limits.width, 1)),
      lag_(std::bit_ceil(2 * limits.window)),
      entries_(2 * lag_),
      mask_(entries_.size() - 1),
      node_slots_(entries_.size()),
      bursts_(limits.reorder_buffer) {}

void Folder::reset() {
  next_ = emitted_ = node_ = 0;
  dispatch_slot_ = 0;
  folded_ = 0;
  turns_ = {};
  markers_.clear();
  first_marker_ = 0;
  executed_.fill(0);
  mispredicted_ = 0;
  scarce_groups_ = 0;
  uses_ = {};
  bursts_.clear();
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
  entry.ports = {};
  entry.kept = must_stay(record, near);
  entry.last_of_part = false;
  entry.waits_for_memory = false;
  entry.awaited = Slot::dispatch;
  entry.port_delay = 0;
  entry.waiters = 0;
  entry.dispatch_slot = dispatch_slot_;
  if (limits_.width > 0) ++dispatch_slot_;
  if (limits_.width > 0 && is_taken(record)) {
    dispatch_slot_ += limits_.width - 1;
    dispatch_slot_ -= dispatch_slot_ % limits_.width;
  }
  if (record.has(Trait::mispredicted)) dispatch_slot_ += limits_.width * latencies_.astray();
  find_slots(next_, entry);
  if (scarce_groups_ != 0) hold_ports(next_, entry);
  stand_in_line(next_, entry);
  entry.complete = entry.dispatch_slot / cycle_slots_ + 1;
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
    if ((latencies_.unit_rows() >> Latencies::row(record) & 1) != 0) return true;
    if (record.touches_memory() && is_in_scarce_group(record)) return true;
  }
  if (near.on_new_line) return true;
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

// Finds out now and then which ports are scarce.
void Folder::count_ports(const Record& record) {
  ++executed_[Latencies::row(record)];
  mispredicted_ += record.has(Trait::mispredicted);
  if (next_ % scarcity_period != scarcity_period - 1) return;
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
    Slot* const place = free_place(entry);
    if (place == nullptr) continue;
    const std::uint32_t cycles = use.since / ports, latency = latencies_.latency(entry.record);
    if (use.last != Slot::dispatch && position - use.last < lag_ && cycles > latency)
      *place = entry.ports = {use.last, std::min(cycles - latency, longest_delay)};
    entry.kept = true;
    use = {position, 0};
  }
}

// A slot in which nothing is waited for; null if there is none.
Folder::Slot* Folder::free_place(Entry& entry) {
  const auto place = std::find_if(entry.slots.rbegin(), entry.slots.rend(), [](const Slot& slot) {
    return slot.position == Slot::dispatch && slot.delay == 0;
  });
  return place == entry.slots.rend() ? nullptr : &*place;
}

void Folder::find_slots(std::uint64_t position, Entry& entry) {
  if (entry.near.is_near && !entry.kept) {
    if (find_near_slots(position, entry)) return;
    entry.kept = true;
    entry.slots = {};
  }
  entry.near.is_near = false;
  find_node_slots(position, entry, true);
}

bool Folder::find_node_slots(std::uint64_t position, Entry& entry, bool allowed) {
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
    return combine(position, all.first(1), {}, slots.first(1), allowed) &&
           combine(position, all.subspan(1), {}, slots.subspan(1), allowed);
  }
  return combine(position, all, {}, slots, allowed);
}

// What an instruction waits for, now that it is known which of those before it are nodes: the nearer ones
// tell more exactly when it has its operands on a machine that cannot dispatch at full speed.
void Folder::find_slots_again(std::uint64_t position, Entry& entry) {
  const Slots before = std::exchange(entry.slots, {});
  bool found =
      entry.near.is_near ? find_near_slots(position, entry) : find_node_slots(position, entry, false);
  if (found && entry.ports.position != Slot::dispatch) {
    Slot* const place = free_place(entry);
    found = place != nullptr;
    if (found) *place = entry.ports;
  }
  if (!found) {
    entry.slots = before;
  } else {
    wait_for_port(entry);
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
  const Slot own{Slot::dispatch, lead, hits, position, entry.dispatch_slot + lead * cycle_slots_};
  return combine(position, needs, own, entry.slots, false);
}

// An instruction waits in an issue queue until the nodes that it needs are complete, and then for a port;
// which of them is complete last is known in a replay only. A load that waits for its line only has issued.
void Folder::stand_in_line(std::uint64_t position, Entry& entry) {
  if (limits_.width == 0 || entry.record.kind == Kind::store) return;
  const Slot* last = nullptr;
  for (const Slot& slot : entry.slots) {
    if (slot.position == Slot::dispatch || position - slot.position >= limits_.reorder_buffer) continue;
    if (last == nullptr || slot.position > last->position) last = &slot;
  }
  if (last == nullptr || (entry.near.is_near && position - last->position == entry.near.filler)) return;
  entry.awaited = last->position;
  const std::uint32_t lead = entry.near.is_near ? latencies_.latency(entry.record) + latencies_.hit() : 0;
  const std::uint32_t ready = last->delay - std::min(last->delay, lead);
  entry.port_delay = bursts_.take(entry.awaited, ready, latencies_.ports(entry.record)) + lead;
  wait_for_port(entry);
  if (!entry.kept) add_waiter(position, entry, 1);
}

// A folded instruction has its place until the last of its operands is there: it counts with each of them.
void Folder::add_waiter(std::uint64_t position, const Entry& entry, int added) {
  for (const Slot& slot : entry.slots) {
    if (slot.position == Slot::dispatch || position - slot.position >= limits_.reorder_buffer) continue;
    if (slot.position >= emitted_) at(slot.position).waiters += added;
  }
}

void Folder::wait_for_port(Entry& entry) {
  for (Slot& slot : entry.slots) {
    if (slot.position == entry.awaited && slot.position != Slot::dispatch)
      slot.delay = std::min(std::max(slot.delay, entry.port_delay), longest_delay);
  }
}

// Makes a node of an instruction that was folded.
void Folder::keep(std::uint64_t position) {
  Entry& entry = at(position);
  entry.kept = true;
  if (entry.awaited != Slot::dispatch) add_waiter(position, entry, -1);
  if (!std::exchange(entry.near.is_near, false)) return;
  const bool is_load = entry.record.kind == Kind::load;
  const std::uint32_t lead = latencies_.latency(entry.record) + (is_load ? latencies_.hit() : 0);
  entry.port_delay -= std::min(entry.port_delay, lead);
  for (std::size_t i = is_load ? 0 : 1; i < entry.slots.size(); ++i) {
    Slot& slot = entry.slots[i];
    slot.delay -= std::min(slot.delay, lead);
    slot.ready -= std::min(slot.ready, lead * cycle_slots_);
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
    std::uint64_t largest = Slot::dispatch;  // of the folded producers, the one to be made a node if must be
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
      std::uint64_t ready = producer.dispatch_slot;
      std::uint32_t waited_hits = 0;
      std::uint64_t start = position - distance;
      std::uint32_t size = 0;
      for (const Slot& each : producer.slots) {
        const Slot slot = anchored(each);
        if (slot.position == Slot::dispatch) {
          if (slot.delay == 0 || slot.ready <= ready) continue;
          ready = slot.ready;
          waited_hits = slot.hits;
          start = slot.start;
        } else {
          add(slot.position, slot.delay + latency, slot.hits + need.hits);
          size += 1 + (slot.delay + latency > longest_delay ? 16 : 0);
        }
      }
      ready += latency * cycle_slots_;
      if (ready > entry.dispatch_slot) {
        const auto left =
            static_cast<std::uint32_t>((ready - entry.dispatch_slot + cycle_slots_ - 1) / cycle_slots_);
        size += left > longest_from_dispatch ? 16 : 0;
        if (dispatch.delay == 0 || ready > dispatch.ready)
          dispatch = {Slot::dispatch, left, waited_hits + need.hits, start, ready};
      }
      if (largest == Slot::dispatch || size > largest_size) {
        largest = position - distance;
        largest_size = size;
      }
    }
    const auto fits = [&] {
      return count + (dispatch.delay > 0 ? 1 : 0) <= slots.size() && longest <= longest_delay &&
             dispatch.delay <= longest_from_dispatch;
    };
    if (!fits()) {
      const std::uint64_t own_ready = dispatch.delay + entry.dispatch_slot / cycle_slots_ + 1;
      for (std::size_t i = 0; i < count;) {
        const bool other_is_later =
            over_at_dispatch(position, found[i]) || is_over(found[i], own_ready) ||
            is_committed(position, found[i], dispatch.delay) ||
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
        if (dispatch.delay > longest_from_dispatch && dispatch.start >= emitted_ &&
            !at(dispatch.start).kept) {
          keep(dispatch.start);
          continue;
        }
        if (largest != Slot::dispatch) {
          keep(largest);
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

Folder::Slot Folder::anchored(const Slot& slot) const {
  if (slot.position != Slot::dispatch || slot.delay == 0 || slot.start + entries_.size() <= next_)
    return slot;
  const Entry& start = at(slot.start);
  if (!start.kept) return slot;
  const bool is_load = start.record.kind == Kind::load;
  const auto total = static_cast<std::uint32_t>((slot.ready - start.dispatch_slot) / cycle_slots_);
  const std::uint32_t own = latencies_.latency(start.record) + (is_load ? latencies_.hit() : 0);
  return {slot.start, total - std::min(total, own), slot.hits - std::min(slot.hits, is_load ? 1u : 0u)};
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

// Whether a node that does not wait for memory has its result, and the delay is over, before this cycle if
// all is dispatched at full speed. What follows it is dispatched later, and no sooner than at full speed.
bool Folder::is_over(const Slot& slot, std::uint64_t cycle) const {
  const Entry& node = at(slot.position);
  if (limits_.width == 0 || node.waits_for_memory || node.record.touches_memory()) return false;
  return node.complete + slot.delay <= cycle;
}

// Whether a node has committed on the machine recorded on when this one is dispatched, and its delay is over
// as many cycles later.
bool Folder::is_committed(std::uint64_t position, const Slot& slot, std::uint32_t later) const {
  return limits_.width > 0 && position - slot.position + limits_.width * later >=
                                  limits_.reorder_buffer + limits_.width * slot.delay;
}

// Whether `other` is a node that waits for that of `slot`, and the result of that for long enough.
bool Folder::redundant(const Slot& slot, const Slot& other) {
  if (other.position <= slot.position) return false;
  const Entry& later = at(other.position);
  if (is_over(slot, later.complete + other.delay)) return true;
  return std::ranges::any_of(later.slots, [&](const Slot& waited) {
    return waited.position == slot.position &&
           slot.delay <= other.delay + waited.delay + latencies_.latency(later.record);
  });
}

// Makes a node of the instruction that is complete last of the next few, if none of them is a node, or the
// next node is complete long before it: those behind it commit when it does, and have places of the reorder
// buffer until then.
void Folder::represent_group() {
  if (limits_.most_folded >= most_weight) return;
  const std::uint64_t end = std::min(next_, emitted_ + limits_.most_folded);
  std::uint64_t last = emitted_;
  for (std::uint64_t i = emitted_; i < end; ++i) {
    const Entry& entry = at(i);
    if (entry.kept || entry.last_of_part) {
      if (i > last && at(last).complete > entry.complete + longest_unseen) keep(last);
      return;
    }
    if (entry.complete >= at(last).complete) last = i;
  }
  if (last < end) keep(last);
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
  Entry& entry = at(emitted_);
  const bool turns = is_taken(entry.record);
  const bool is_full = folded_ == most_weight || (turns && turns_.count == FoldedTurns::most);
  if (!entry.kept && (entry.last_of_part || is_full)) keep(emitted_);
  find_slots_again(emitted_++, entry);
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
    Slot slot = entry.slots[i];
    if (slot.start + 1 < emitted_) {
      if (const Slot exact = anchored(slot); exact.delay <= longest_delay) slot = exact;
    }
    hits[i] = static_cast<std::uint8_t>(slot.hits);
    if (slot.position == Slot::dispatch && refer_to_dispatch(entry, i, node)) continue;
    node.producers[i] = slot.position == Slot::dispatch
                            ? std::uint16_t{0}
                            : static_cast<std::uint16_t>(node_ - at(slot.position).node);
    node.delays[i] = static_cast<std::uint8_t>(slot.delay);
  }
  node.weight = static_cast<std::uint8_t>(folded_);
  node.set_folded_turns(turns_);
  node.set_folded_waiters(static_cast<std::uint32_t>(entry.waiters));
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
