// SPDX-License-Identifier: Apache-2.0
// The state of a network simulated packet by packet, or train by train: one set of arrays for all switches,
// of which each group of switches (switch_group.hpp) touches its own part only. What is touched together lies
// together.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "network/calendar_queue.hpp"
#include "network/credits.hpp"
#include "network/link_history.hpp"
#include "network/message.hpp"
#include "network/route.hpp"

namespace manyscale::network {

// A unit of a message on its way: a packet, or a train of packets that follow each other.
struct Packet {
  std::uint32_t slot = no_slot;
  std::uint32_t bytes = 0;  // with headers
  RouteState route;
  std::uint32_t next = nowhere;          // in its queue, or in the pool
  std::uint32_t next_waiting = nowhere;  // for the same room, in a circle
  std::uint32_t lane = nowhere;          // whose buffer it is in
  std::uint32_t out = nowhere;           // channel that it leaves by
  Time ready = 0;                        // when it can leave the switch where it is
};

// The receiving end of a virtual channel, or what a NIC sends next. Its packets are in a queue only where
// they have to leave in order.
struct alignas(64) Inlet {
  std::uint32_t head = nowhere, tail = nowhere;
  Time free_at = 0;                       // when the packet that left last is gone
  Time latency = 0;                       // of the channel
  Rate rate;                              // of the channel
  std::uint32_t at = nowhere;             // switch
  std::uint32_t first_channel = nowhere;  // of the switch
  std::uint16_t sender_domain = 0;        // where packets come from
  bool busy = false;  // will be served at a known time, or its first packet waits for room
  bool from_node = false;
};

// A virtual channel: its receiving end, and what its sender knows of the room there.
struct alignas(128) Lane {
  Inlet inlet;
  Credits credits;
};

// The sending end of a channel.
struct alignas(64) Output {
  Time busy_until = 0;
  Rate rate;
  Time latency = 0;
  std::uint32_t first_lane = 0;
  std::uint32_t to_domain = nowhere;  // none for a node
  std::int64_t bytes = 0;
  std::int64_t packets = 0;
  Time queueing = 0;
  bool to_node = false;
};

// A NIC's link to a rail.
struct NicLink {
  Time free_at = 0;   // when the unit that left last is gone
  bool busy = false;  // another will be sent at a known time, or waits for room
};

// Messages that a node has to send; those of a single packet in a list of their own.
struct NodeQueue {
  std::uint32_t first_small = no_slot, last_small = no_slot;
  std::uint32_t first = no_slot, last = no_slot;
  Time gap_until = 0;
  std::uint16_t next_rail = 0;
  bool had_turn = false;  // the first of the messages of several packets
};

class Routing;

struct PacketNetwork {
  PacketNetwork(const Routing& ways, MessagePool& messages, const NetworkSpec& spec);

  // Packets that are still in their NIC have numbers of lanes that follow those of channels.
  std::uint32_t nic_lane(std::uint32_t node, std::uint32_t rail) const {
    return topology.queues() + node * topology.rails() + rail;
  }

  std::uint64_t packets_of(std::uint64_t bytes) const {
    return std::max<std::uint64_t>(1, (bytes + payload - 1) / payload);
  }
  // Of a message, with the headers of its packets.
  std::uint64_t wire_bytes(std::uint64_t bytes) const { return bytes + packets_of(bytes) * header; }

  const Routing& routing;
  const Topology& topology;
  MessagePool& pool;
  const Time switch_latency;
  const Time gap;
  const std::uint32_t payload, header;  // of a packet
  const std::uint32_t packet_bytes;     // of a full packet
  const std::int64_t buffer;
  const double ugal_bias;
  // Room that packets from nodes leave to those in flight, where both use the same virtual channels:
  // otherwise rings fill up with new packets until hardly any can move.
  const std::int64_t kept_free;
  Time shortest_hop = never;  // latency of a channel and of the switch it leads to
  bool round_robin = false;
  bool trains = false;
  bool in_order = false;  // packets of a lane leave in order, so that they can block each other
  std::uint32_t unit_packets = 1;
  std::vector<Lane> lanes;
  std::vector<Output> outputs;     // as channels
  std::vector<NicLink> nic_links;  // per node and rail
  std::vector<NodeQueue> node_queues;
  std::vector<LinkHistory> histories;            // as channels, or empty
  std::vector<std::uint32_t> nic_lanes;          // per node: its link to the group of its switch
  std::vector<std::uint32_t> process_of_domain;  // where several processes run the network together
};

}  // namespace manyscale::network
