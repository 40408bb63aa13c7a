// SPDX-License-Identifier: Apache-2.0
#include "cpu/trace/folder.hpp"

#include <algorithm>
#include <bit>

namespace manyscale::cpu {

namespace {

constexpr std::uint32_t longest_delay = 255;
// A delay from dispatch supposes that all before it was dispatched at full speed. Longer calculations have
// nodes in between, which wait for what they really wait for.
constexpr std::uint32_t longest_from_dispatch = 12;
constexpr std::uint32_t most_folded = 255;
// How many instructions are looked at to see which ports are scarce; loops are shorter, or repeat themselves.
constexpr std::uint64_t scarcity_period = 64;

bool is_taken(const Record& record) {
  return record.is_control() && (record.kind != Kind::branch || record.has(Trait::taken));
}

}  // namespace

Folder::Folder(const Latencies& latencies, const FoldLimits& limits)
    : latencies_(latencies),
      limits_(limits),
      lag_(std::bit_ceil(2 * limits.window)),
      entries_(2 * lag_),
      mask_(entries_.size() - 1) {}

void Folder::reset() {
  next_ = emitted_ = node_ = 0;
  dispatch_slot_ = 0;
  folded_ = turn_ = 0;
  markers_.clear();
  first_marker_ = 0;
  executed_.fill(0);
  mispredicted_ = 0;
  scarce_ = 0;
  nodes_.clear();
}

void Folder::take(const Record& record) {
  if (record.kind == Kind::marker) {
    if (next_ > emitted_) at(next_ - 1).last_of_part = true;
    markers_.push_back({next_, record});
    return;
  }
  if (next_ - emitted_ >= lag_) emit();
  Entry& entry = at(next_);
  entry.record = record;
  entry.slots = {};
  entry.kept = must_stay(record);
  entry.last_of_part = false;
  entry.dispatch_slot = dispatch_slot_++;
  if (limits_.width > 0 && is_taken(record)) {
    dispatch_slot_ += limits_.width - 1;
    dispatch_slot_ -= dispatch_slot_ % limits_.width;
  }
  if (record.has(Trait::mispredicted)) dispatch_slot_ += limits_.width * latencies_.astray();
  find_slots(next_, entry);
  ++next_;
}

bool Folder::must_stay(const Record& record) {
  const std::size_t row = Latencies::row(record);
  if (limits_.keep_scarce) {
    ++executed_[row];
    mispredicted_ += record.has(Trait::mispredicted);
    if (next_ % scarcity_period == scarcity_period - 1) {
      scarce_ = latencies_.scarce_rows(executed_, mispredicted_);
      executed_.fill(0);
      mispredicted_ = 0;
    }
    if ((scarce_ >> row & 1) != 0) return true;
  }
  switch (record.kind) {
    case Kind::load:
    case Kind::store:
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

void Folder::find_slots(std::uint64_t position, Entry& entry) {
  const std::span<const std::uint16_t> producers = entry.record.producers;
  const std::span<Slot> slots = entry.slots;
  if (entry.record.kind == Kind::store) {
    combine(position, producers.first(1), slots.first(1));
    combine(position, producers.subspan(1), slots.subspan(1));
  } else {
    combine(position, producers, slots);
  }
}

void Folder::combine(std::uint64_t position, std::span<const std::uint16_t> distances,
                     std::span<Slot> slots) {
  for (;;) {
    std::array<Slot, 9> found;
    std::size_t count = 0;
    std::uint32_t dispatch = 0;
    std::uint32_t longest = 0;
    // Cycles from the dispatch of an instruction to that of this one, at least.
    const auto passed_since = [&](const Entry& entry) {
      return limits_.width > 0 ? (at(position).dispatch_slot - entry.dispatch_slot) / limits_.width : 0;
    };
    Entry* largest = nullptr;  // of the folded producers, the one to be made a node if that must be
    std::uint32_t largest_size = 0;
    const auto add = [&](std::uint64_t node, std::uint32_t delay) {
      const std::uint64_t age = position - node;
      if (age >= lag_) return;
      // Then it has committed before this one is dispatched, and the delay is over, too.
      if (limits_.width > 0 && age >= limits_.window + limits_.width * delay) return;
      longest = std::max(longest, delay);
      for (std::size_t i = 0; i < count; ++i) {
        if (found[i].position != node) continue;
        found[i].delay = std::max(found[i].delay, delay);
        return;
      }
      found[count++] = {node, delay};
    };
    for (const std::uint16_t distance : distances) {
      if (distance == 0 || distance > position || distance >= lag_) continue;
      Entry& producer = at(position - distance);
      if (producer.kept) {
        add(position - distance, 0);
        continue;
      }
      const std::uint32_t latency = latencies_.latency(producer.record);
      std::uint32_t waited = 0;  // from its dispatch on
      std::uint32_t size = 0;
      for (const Slot& slot : producer.slots) {
        if (slot.position == Slot::dispatch) {
          waited = std::max(waited, slot.delay);
        } else {
          add(slot.position, slot.delay + latency);
          size += 1 + (slot.delay + latency > longest_delay ? 16 : 0);
        }
      }
      waited += latency;
      if (const std::uint64_t passed = passed_since(producer); waited > passed) {
        const auto left = waited - static_cast<std::uint32_t>(passed);
        size += left > longest_from_dispatch ? 16 : 0;
        dispatch = std::max(dispatch, left);
      }
      if (largest == nullptr || size > largest_size) {
        largest = &producer;
        largest_size = size;
      }
    }
    const auto fits = [&] {
      return count + (dispatch > 0 ? 1 : 0) <= slots.size() && longest <= longest_delay &&
             dispatch <= longest_from_dispatch;
    };
    if (!fits() && largest != nullptr) {
      for (std::size_t i = 0; i < count;) {
        const bool other_is_later =
            std::any_of(found.begin(), found.begin() + static_cast<long>(count),
                        [&](const Slot& other) { return redundant(found[i], other); });
        if (other_is_later) {
          found[i] = found[--count];
        } else {
          ++i;
        }
      }
      // Nodes are dispatched before this one, and take their time from there.
      for (std::size_t i = 0; i < count && dispatch <= longest_from_dispatch; ++i) {
        const Entry& node = at(found[i].position);
        const std::uint64_t since = found[i].delay + latencies_.latency(node.record);
        if (dispatch + passed_since(node) <= since) dispatch = 0;
      }
      if (!fits()) {
        largest->kept = true;
        continue;
      }
    }
    std::copy_n(found.begin(), count, slots.begin());
    if (dispatch > 0) slots[count] = {Slot::dispatch, dispatch};
    return;
  }
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

void Folder::emit() {
  for (; first_marker_ < markers_.size() && markers_[first_marker_].position == emitted_; ++first_marker_) {
    nodes_.push_back(markers_[first_marker_].record);
  }
  if (first_marker_ == markers_.size()) {
    markers_.clear();
    first_marker_ = 0;
  }
  Entry& entry = at(emitted_++);
  const bool turns = is_taken(entry.record);
  if (entry.last_of_part || folded_ == most_folded || (turns && turn_ > 0)) entry.kept = true;
  if (entry.kept) {
    emit_node(entry);
    return;
  }
  ++folded_;
  turn_ = turns ? 1 : turn_ > 0 ? turn_ + 1 : 0;
}

void Folder::emit_node(Entry& entry) {
  Record node = entry.record;
  for (std::size_t i = 0; i < entry.slots.size(); ++i) {
    const Slot& slot = entry.slots[i];
    node.producers[i] = slot.position == Slot::dispatch
                            ? std::uint16_t{0}
                            : static_cast<std::uint16_t>(node_ - at(slot.position).node);
    node.delays[i] = static_cast<std::uint8_t>(slot.delay);
  }
  node.weight = static_cast<std::uint8_t>(folded_);
  node.set_folded_turn(static_cast<std::uint8_t>(turn_));
  entry.node = node_++;
  folded_ = turn_ = 0;
  nodes_.push_back(node);
}

void Folder::flush() {
  if (next_ > emitted_) at(next_ - 1).last_of_part = true;
  while (emitted_ < next_) emit();
  for (; first_marker_ < markers_.size(); ++first_marker_) nodes_.push_back(markers_[first_marker_].record);
  markers_.clear();
  first_marker_ = 0;
}

}  // namespace manyscale::cpu
