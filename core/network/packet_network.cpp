// SPDX-License-Identifier: Apache-2.0
#include "network/packet_network.hpp"

#include "network/routing.hpp"

namespace manyscale::network {

PacketNetwork::PacketNetwork(const Routing& ways, MessagePool& messages, const NetworkSpec& spec)
    : routing(ways),
      topology(ways.topology()),
      pool(messages),
      switch_latency(spec.switches.latency),
      gap(spec.nic.gap),
      payload(static_cast<std::uint32_t>(spec.packet.payload)),
      header(static_cast<std::uint32_t>(spec.packet.header)),
      packet_bytes(payload + header),
      buffer(spec.switches.buffer),
      ugal_bias(spec.routing.ugal_bias),
      kept_free(ways.mixes_new_packets() ? buffer / 2 : 0),
      trains(spec.fidelity == "train") {
  if (buffer < packet_bytes) {
    throw SimulationError("switch.buffer is " + std::to_string(buffer) + " B; it must hold a packet of " +
                          std::to_string(packet_bytes) + " B (packet.payload + packet.header)");
  }
  if (spec.nic.order == "round-robin") {
    round_robin = true;
  } else if (spec.nic.order != "first-come") {
    throw SimulationError("nic.order is '" + spec.nic.order + "'; it must be 'first-come' or 'round-robin'");
  }
  if (spec.switches.queues == "input") {
    in_order = true;
  } else if (spec.switches.queues != "virtual-output") {
    throw SimulationError("switch.queues is '" + spec.switches.queues +
                          "'; it must be 'virtual-output' or 'input'");
  }
  if (trains) {
    const std::int64_t room = buffer - kept_free;
    const std::int64_t longest = spec.train > 0 ? std::min(spec.train + packet_bytes - 1, room) : room;
    unit_packets = static_cast<std::uint32_t>(std::max<std::int64_t>(1, longest / packet_bytes));
  }
  lanes.resize(topology.queues());
  nic_links.resize(std::size_t{topology.nodes()} * topology.rails());
  outputs.resize(topology.channels());
  node_queues.resize(topology.nodes());
  nic_lanes.assign(topology.nodes(), nowhere);
  if (spec.load_interval > 0) histories.assign(topology.channels(), LinkHistory(spec.load_interval));
  for (std::uint32_t c = 0; c < topology.channels(); ++c) {
    const Channel& channel = topology.channel(c);
    if (channel.kind == ChannelKind::absent) continue;
    Output& output = outputs[c];
    output.rate = channel.rate;
    output.latency = channel.latency;
    output.first_lane = channel.first_queue;
    output.to_node = channel.kind == ChannelKind::to_node;
    if (output.to_node) continue;
    shortest_hop = std::min(shortest_hop, channel.latency + switch_latency);
    output.to_domain = topology.domain(channel.to);
    const bool from_node = channel.kind == ChannelKind::from_node;
    for (std::uint32_t i = 0; i < (from_node ? 1 : routing.virtual_channels()); ++i) {
      Lane& lane = lanes[channel.first_queue + i];
      lane.inlet.latency = channel.latency;
      lane.inlet.rate = channel.rate;
      lane.inlet.at = channel.to;
      lane.inlet.from_node = from_node;
      lane.inlet.first_channel = topology.first_channel(channel.to);
      lane.inlet.sender_domain =
          static_cast<std::uint16_t>(from_node ? output.to_domain : topology.domain(channel.from));
      lane.credits.available = static_cast<std::int32_t>(buffer);
    }
  }
}

}  // namespace manyscale::network
