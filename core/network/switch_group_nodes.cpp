// SPDX-License-Identifier: Apache-2.0
// The sending sides of nodes: messages are cut into packets or trains, which leave in the time of the hosts.
#include <algorithm>
#include <utility>

#include "network/switch_group.hpp"

namespace manyscale::network {
namespace {

constexpr std::uint32_t short_train = 2;  // packets

}  // namespace

void SwitchGroup::submit(std::uint32_t slot, Time delay) {
  if (delay > 0) {
    enter_.after(delay, slot);
  } else {
    enter(slot);
  }
}

void SwitchGroup::enter(const std::uint32_t& slot) {
  time_ = now();
  MessageSlot& message = network_.pool[slot];
  const std::uint64_t bytes = message.message.bytes;
  const std::uint64_t packets = network_.packets_of(bytes);
  message.wire_to_send = message.wire_to_arrive = network_.wire_bytes(bytes);
  message.entered = time_;
  message.last_sent = message.last_arrival = 0;
  message.handed_out = 0;
  message.next = no_slot;
  statistics_.packets += static_cast<std::int64_t>(packets);

  NodeQueue& node = network_.node_queues[message.message.source];
  const bool small = packets == 1;
  std::uint32_t& first = small ? node.first_small : node.first;
  std::uint32_t& last = small ? node.last_small : node.last;
  (first == no_slot ? first : network_.pool[last].next) = slot;
  last = slot;
  const std::uint32_t rails = network_.topology.rails();
  const std::uint32_t first_rail = node.next_rail;
  std::uint64_t wanted = packets;
  for (std::uint32_t i = 0; i < rails && wanted > 0; ++i) {
    const std::uint32_t rail = rails == 1 ? 0 : (first_rail + i) % rails;
    const std::uint32_t lane = network_.nic_lane(message.message.source, rail);
    NicLink& link = nic_link(lane);
    if (link.busy) continue;
    --wanted;
    if (rails > 1) node.next_rail = static_cast<std::uint16_t>((rail + 1) % rails);
    if (link.free_at > time_) {
      schedule(lane, link.free_at);
    } else {
      link.busy = true;
      serve_nic(lane);
    }
  }
}

// How many packets of a message leave a node as one: trains of about equal length. While other messages wait,
// trains are short, so that messages get on with each other as packets would let them.
std::uint64_t SwitchGroup::unit_packets(const NodeQueue& node, std::uint64_t packets) const {
  const bool alone = node.first == node.last;
  const std::uint64_t most = alone ? network_.unit_packets : std::min(network_.unit_packets, short_train);
  const std::uint64_t units = (packets + most - 1) / most;
  return (packets + units - 1) / units;
}

// Makes the next packet or train of the messages that a node has to send. A message leaves the list when
// nothing of it is left.
std::uint32_t SwitchGroup::next_unit(NodeQueue& node) {
  const bool small = node.first_small != no_slot;
  std::uint32_t& first = small ? node.first_small : node.first;
  if (!small && network_.round_robin && node.had_turn && node.first != node.last) {
    network_.pool[node.last].next = node.first;
    node.last = node.first;
    node.first = std::exchange(network_.pool[node.first].next, no_slot);
  }
  const std::uint32_t slot = first;
  MessageSlot& message = network_.pool[slot];
  const std::uint64_t left = message.message.bytes - message.handed_out;
  const std::uint64_t packets_left = network_.packets_of(left);
  const std::uint64_t packets = unit_packets(node, packets_left);
  const std::uint64_t bytes = std::min<std::uint64_t>(left, packets * network_.payload);
  message.handed_out += bytes;
  if (bytes == left) first = message.next;
  if (!small) node.had_turn = bytes < left;
  const std::uint32_t index = take_packet();
  Packet& packet = packets_[index];
  packet.slot = slot;
  packet.bytes = static_cast<std::uint32_t>(bytes + packets * network_.header);
  packet.route = RouteState{.destination = message.message.destination,
                            .flow = flow_hash(message.message.source, message.message.destination)};
  packet.next = nowhere;
  return index;
}

void SwitchGroup::serve_nic(std::uint32_t lane) {
  NodeQueue& node = network_.node_queues[node_of(lane)];
  const std::uint32_t candidate = node.first_small != no_slot ? node.first_small : node.first;
  if (candidate == no_slot) {
    nic_link(lane).busy = false;
    return;
  }
  if (node.gap_until > time_) {
    schedule(lane, node.gap_until);
    return;
  }
  const std::uint32_t index = next_unit(node);
  Packet& packet = packets_[index];
  packet.lane = lane;
  packet.out = network_.topology.injection(0, 0) + lane - network_.nic_lane(0, 0);
  packet.ready = time_;
  attempt(index);
}

// Notes that a unit leaves its NIC until `end`, and tells the host after the last one.
void SwitchGroup::unit_sent(std::uint32_t slot, std::uint32_t bytes, Time end) {
  MessageSlot& message = network_.pool[slot];
  message.last_sent = std::max(message.last_sent, end);
  message.wire_to_send -= bytes;
  if (message.wire_to_send > 0) return;
  network_.node_queues[message.message.source].gap_until = message.last_sent + network_.gap;
  if (!message.message.tell_sent) return;
  // Before an arrival at the same time, with which the slot is given back.
  nics_->tell(message.message.source, {slot, false}, message.last_sent - now(), default_priority - 1);
}

void SwitchGroup::deliver(std::uint32_t slot) {
  MessageSlot& message = network_.pool[slot];
  ++statistics_.messages;
  statistics_.bytes += static_cast<std::int64_t>(message.message.bytes);
  statistics_.latency.record(message.last_arrival - message.entered);
  nics_->tell(message.message.destination, {slot, true}, message.last_arrival - now());
}

// A NIC sends the next unit when the one before is gone.
void SwitchGroup::leave_nic(std::uint32_t lane, Time end) {
  const NodeQueue& node = network_.node_queues[node_of(lane)];
  nic_link(lane) = {end, false};
  if (node.first_small != no_slot || node.first != no_slot) schedule(lane, end);
}

}  // namespace manyscale::network
