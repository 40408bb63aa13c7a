// SPDX-License-Identifier: Apache-2.0
#include "network/flow_network.hpp"

#include <algorithm>
#include <cmath>

namespace manyscale::network {
namespace {

constexpr std::uint8_t tick_priority = 200;  // after all that happens at the same time

std::vector<double> capacities(const Topology& topology) {
  std::vector<double> result(topology.channels(), 0.0);
  for (std::uint32_t c = 0; c < topology.channels(); ++c) {
    if (topology.channel(c).kind == ChannelKind::absent) continue;
    constexpr std::uint64_t many = std::uint64_t{1} << 20;
    result[c] = static_cast<double>(many) / static_cast<double>(topology.channel(c).rate(many));
  }
  return result;
}

}  // namespace

FlowNetwork::FlowNetwork(const Routing& routing, MessagePool& pool, const NetworkSpec& spec)
    : routing_(routing),
      topology_(routing.topology()),
      pool_(pool),
      ideal_(spec.fidelity == "ideal"),
      payload_(static_cast<std::uint64_t>(spec.packet.payload)),
      header_(static_cast<std::uint64_t>(spec.packet.header)),
      switch_latency_(spec.switches.latency),
      gap_(spec.nic.gap),
      nic_lanes_(topology_.nodes(), nowhere),
      shares_(capacities(topology_)),
      sending_until_(std::size_t{topology_.nodes()} * topology_.rails(), 0),
      receiving_until_(topology_.nodes(), 0),
      gap_until_(topology_.nodes(), 0),
      next_rail_(topology_.nodes(), 0),
      usage_(topology_.channels()) {
  if (spec.load_interval > 0) histories_.assign(topology_.channels(), LinkHistory(spec.load_interval));
  enter_.on_expire<&FlowNetwork::enter>();
  tick_.on_expire<&FlowNetwork::tick>();
  head_arrives_.on_expire<&FlowNetwork::head_arrives>();
  declare(statistics_);
}

void FlowNetwork::submit(std::uint32_t slot, Time delay) {
  if (delay > 0) {
    enter_.after(delay, slot);
  } else {
    enter(slot);
  }
}

std::uint32_t FlowNetwork::take_flow() {
  if (free_flow_ == nowhere) {
    flows_.emplace_back();
    return static_cast<std::uint32_t>(flows_.size() - 1);
  }
  const std::uint32_t flow = free_flow_;
  free_flow_ = flows_[flow].next;
  return flow;
}

void FlowNetwork::enter(const std::uint32_t& slot) {
  MessageSlot& message = pool_[slot];
  const std::uint32_t source = message.message.source;
  message.entered = now();
  message.last_sent = message.last_arrival = 0;
  const std::uint64_t packets = std::max<std::uint64_t>(1, (message.message.bytes + payload_ - 1) / payload_);
  statistics_.packets += static_cast<std::int64_t>(packets);
  if (ideal_ || packets == 1) {
    pass_between(slot, packets);
    return;
  }
  // Over all rails, each with its part of the packets.
  const std::uint32_t rails = topology_.rails();
  const auto parts = static_cast<std::uint32_t>(std::min<std::uint64_t>(rails, packets));
  message.wire_to_arrive = parts;  // counted in parts here
  std::uint64_t bytes_left = message.message.bytes, packets_left = packets;
  for (std::uint32_t part = 0; part < parts; ++part) {
    const std::uint64_t share = packets_left / (parts - part);
    const std::uint64_t bytes = part + 1 == parts ? bytes_left : share * payload_;
    bytes_left -= bytes;
    packets_left -= share;
    const std::uint32_t index = take_flow();
    Flow& flow = flows_[index];
    flow.slot = slot;
    flow.bytes = bytes + share * header_;
    flow.packets = share;
    begin(index, (next_rail_[source] + part) % rails);
  }
  next_rail_[source] = (next_rail_[source] + parts) % rails;
}

void FlowNetwork::begin(std::uint32_t index, std::uint32_t rail) {
  Flow& flow = flows_[index];
  const Message& message = pool_[flow.slot].message;
  FlowContext context{topology_, shares_, random()};
  routing_.path(message.source, message.destination, rail, context, flow.way);
  flow.latency = static_cast<Time>(flow.way.size() - 1) * switch_latency_;
  flow.alone = 0;
  for (const std::uint32_t channel : flow.way) {
    flow.latency += topology_.channel(channel).latency;
    flow.alone = std::max(flow.alone, topology_.channel(channel).rate(flow.bytes));
  }
  flow.began = flow.since = std::max(now(), gap_until_[message.source]);
  flow.left = static_cast<double>(flow.bytes);
  flow.share = shares_.add(flow.way);
  if (flow_of_share_.size() <= flow.share) flow_of_share_.resize(flow.share + 1);
  flow_of_share_[flow.share] = index;
  flow.ends = never;
  want_tick(now());
}

// A flow has left its node.
void FlowNetwork::finish(std::uint32_t index) {
  ends_.remove(index);
  shares_.remove(flows_[index].share);
  Flow& flow = flows_[index];
  note_sent(flow, flow.since, now(), flow.left);
  note_usage(flow, flow.began, now());
  MessageSlot& message = pool_[flow.slot];
  message.last_arrival = std::max(message.last_arrival, now() + flow.latency);
  if (--message.wire_to_arrive == 0) {
    if (message.message.tell_sent)
      nics_.tell(message.message.source, {flow.slot, false}, 0, default_priority - 1);
    arrive(flow.slot);
  }
  gap_until_[message.message.source] = now() + gap_;
  flow.next = free_flow_;
  free_flow_ = index;
}

void FlowNetwork::arrive(std::uint32_t slot) {
  const MessageSlot& message = pool_[slot];
  ++statistics_.messages;
  statistics_.bytes += static_cast<std::int64_t>(message.message.bytes);
  statistics_.latency.record(message.last_arrival - message.entered);
  nics_.tell(message.message.destination, {slot, true}, message.last_arrival - now());
}

void FlowNetwork::note_sent(const Flow& flow, Time begin, Time end, double bytes) {
  if (histories_.empty()) return;
  for (const std::uint32_t channel : flow.way) histories_[channel].note_sent(begin, end, bytes);
}

void FlowNetwork::note_usage(const Flow& flow, Time begin, Time end) {
  for (const std::uint32_t channel : flow.way) {
    usage_[channel].bytes += static_cast<std::int64_t>(flow.bytes);
    usage_[channel].packets += static_cast<std::int64_t>(flow.packets);
  }
  statistics_.packet_hops += static_cast<std::int64_t>(flow.packets * flow.way.size());
  usage_[flow.way.front()].queueing += std::max<Time>(0, end - begin - flow.alone);
}

// A message that does not share channels with flows.
void FlowNetwork::pass_between(std::uint32_t slot, std::uint64_t packets) {
  MessageSlot& in_flight = pool_[slot];
  const Message& message = in_flight.message;
  const std::uint32_t rails = topology_.rails();
  const std::uint32_t rail = next_rail_[message.source];
  next_rail_[message.source] = (rail + 1) % rails;
  const std::uint32_t index = take_flow();
  Flow& flow = flows_[index];
  FlowContext context{topology_, shares_, random()};
  routing_.path(message.source, message.destination, rail, context, flow.way);
  flow.bytes = message.bytes + packets * header_;
  flow.packets = packets;
  Time latency = static_cast<Time>(flow.way.size() - 1) * switch_latency_;
  Time slowest = 0;
  for (const std::uint32_t channel : flow.way) {
    latency += topology_.channel(channel).latency;
    slowest = std::max(slowest, topology_.channel(channel).rate(flow.bytes));
  }
  Time& busy = sending_until_[message.source * rails + rail];
  const Time start = std::max({now(), gap_until_[message.source], busy});
  const Time sent = start + topology_.channel(flow.way.front()).rate(flow.bytes);
  busy = sent;
  gap_until_[message.source] = sent + gap_;
  flow.alone = sent - start;
  note_usage(flow, start, sent);
  if (!histories_.empty())
    for (const std::uint32_t channel : flow.way)
      histories_[channel].note_in_turn(start, topology_.channel(channel).rate(flow.bytes),
                                       static_cast<double>(flow.bytes));
  flow.next = free_flow_;
  free_flow_ = index;
  if (message.tell_sent) nics_.tell(message.source, {slot, false}, sent - now(), default_priority - 1);
  in_flight.last_sent = slowest;  // all that its receiver has to know besides
  head_arrives_.after(start + latency - now(), slot);
}

// The first byte of such a message is there: the rest comes when the node has received what came before.
void FlowNetwork::head_arrives(const std::uint32_t& slot) {
  MessageSlot& message = pool_[slot];
  Time& busy = receiving_until_[message.message.destination];
  message.last_arrival = std::max(now(), busy) + message.last_sent;
  busy = message.last_arrival + gap_;
  arrive(slot);
}

// Finishes what ends now and, if flows have come or gone, shares the channels out again.
void FlowNetwork::tick(const std::uint64_t& stamp) {
  if (stamp != stamp_) return;
  tick_at_ = never;
  while (!ends_.heap.empty() && flows_[ends_.heap.front()].ends <= now()) finish(ends_.heap.front());
  if (shares_.dirty()) {
    for (const std::uint32_t share : shares_.compute()) set_ends(flow_of_share_[share]);
    statistics_.shared_out += static_cast<std::int64_t>(shares_.looked_at());
  }
  if (!ends_.heap.empty()) want_tick(flows_[ends_.heap.front()].ends);
}

// Notes when a flow ends at its new rate.
void FlowNetwork::set_ends(std::uint32_t index) {
  Flow& flow = flows_[index];
  const Time at = std::max(now(), flow.since);  // it may be waiting for the gap after another message
  if (flow.ends != never && at > flow.since) {
    const double sent = std::min(flow.left, static_cast<double>(at - flow.since) * flow.rate);
    note_sent(flow, flow.since, at, sent);
    flow.left -= sent;
  }
  flow.since = at;
  flow.rate = shares_.rate(flow.share);
  flow.ends = at + static_cast<Time>(std::ceil(flow.left / flow.rate - 1e-6));
  ends_.update(index);
}

void FlowNetwork::want_tick(Time time) {
  if (time >= tick_at_) return;
  tick_at_ = time;
  tick_.after(time - now(), ++stamp_, tick_priority);
}

// A heap of flows by when they end; ties by number.

bool FlowNetwork::Ends::before(std::uint32_t a, std::uint32_t b) const {
  return flows[a].ends != flows[b].ends ? flows[a].ends < flows[b].ends : a < b;
}

void FlowNetwork::Ends::put(std::size_t position, std::uint32_t flow) {
  heap[position] = flow;
  flows[flow].position = static_cast<std::uint32_t>(position);
}

// Moves what is at a position up or down to where it belongs.
void FlowNetwork::Ends::settle(std::size_t position) {
  const std::uint32_t flow = heap[position];
  while (position > 0 && before(flow, heap[(position - 1) / 2])) {
    put(position, heap[(position - 1) / 2]);
    position = (position - 1) / 2;
  }
  for (std::size_t child = 2 * position + 1; child < heap.size(); child = 2 * position + 1) {
    if (child + 1 < heap.size() && before(heap[child + 1], heap[child])) ++child;
    if (!before(heap[child], flow)) break;
    put(position, heap[child]);
    position = child;
  }
  put(position, flow);
}

void FlowNetwork::Ends::update(std::uint32_t flow) {
  if (flows[flow].position == nowhere) {
    heap.push_back(flow);
    flows[flow].position = static_cast<std::uint32_t>(heap.size() - 1);
  }
  settle(flows[flow].position);
}

void FlowNetwork::Ends::remove(std::uint32_t flow) {
  const std::uint32_t position = flows[flow].position;
  const std::uint32_t last = heap.back();
  heap.pop_back();
  flows[flow].position = nowhere;
  if (last == flow) return;
  put(position, last);
  settle(position);
}

}  // namespace manyscale::network
