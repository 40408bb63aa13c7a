// SPDX-License-Identifier: Apache-2.0
// A topology as a list: which channels (directions of links) leave each switch, and where nodes are attached.
// What is regular about it, and the ways through it, are in fat_tree.hpp, torus.hpp, dragonfly.hpp and
// table_routes.hpp.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/time.hpp"
#include "network/network_spec.hpp"

namespace manyscale::network {

inline constexpr std::uint32_t nowhere = ~std::uint32_t{0};

// How long bytes take on a wire: femtoseconds per byte in fixed point, so that no division is needed.
class Rate {
 public:
  Rate() = default;
  explicit Rate(double bytes_per_second);
  // With a share of the bandwidth.
  Rate slowed(double share) const;

  Time operator()(std::uint64_t bytes) const {
    return static_cast<Time>((static_cast<Wide>(bytes) * period_ + half) >> 32);
  }

 private:
  __extension__ using Wide = unsigned __int128;
  static constexpr std::uint64_t half = std::uint64_t{1} << 31;

  std::uint64_t period_ = 0;  // 2^32 are a femtosecond per byte
};

// What a channel leads from and to.
enum class ChannelKind : std::uint8_t { between_switches, to_node, from_node, absent };

// One direction of a link.
struct Channel {
  std::uint32_t from = nowhere, to = nowhere;  // switches, or a node as the kind says
  Time latency = 0;
  Rate rate;
  std::uint32_t first_queue = 0;  // of its virtual channels, at the end it leads to
  std::uint32_t link = 0;         // which of several between the same two ends
  ChannelKind kind = ChannelKind::absent;
};

// A way out of a switch to another, as a shape of topology lists them: its number there is its port.
struct Outlet {
  std::uint32_t to = nowhere;  // nowhere: the port stays empty, as at the rim of a mesh
  Time latency = 0;
  double bandwidth = 0;
};

// The switches of one rail and the outlets of each, port by port; nodes by the switch they are attached to.
struct Shape {
  std::vector<std::vector<Outlet>> outlets;
  std::vector<std::uint32_t> node_switch;
  std::vector<std::uint32_t> domain;  // per switch: those of one domain are simulated together
  std::uint32_t domains = 1;
};

// Refuses more channels or virtual channels than fit into memory.
void check_size(std::uint64_t count, const std::string& what);

class Topology {
 public:
  // Lays out all rails: each has the shape's switches, each node a link to its switch of each rail.
  Topology(const Shape& shape, const NetworkSpec& spec);

  // Makes links slower or takes them away, for good; returns whether any is gone.
  bool apply(const std::vector<Fault>& faults);
  // Numbers the queues behind all channels: as many per channel between switches as there are virtual
  // channels.
  void number_queues(std::uint32_t virtual_channels);

  std::uint32_t nodes() const { return static_cast<std::uint32_t>(node_switch_.size()); }
  std::uint32_t switches() const { return rails_ * rail_switches_; }
  std::uint32_t rail_switches() const { return rail_switches_; }
  std::uint32_t rails() const { return rails_; }
  std::uint32_t queues() const { return queues_; }
  std::uint32_t domains() const { return domains_; }

  std::uint32_t channels() const { return static_cast<std::uint32_t>(channels_.size()); }
  const Channel& channel(std::uint32_t channel) const { return channels_[channel]; }
  // The channel at port 0 of a switch; the others follow: first those to switches, then those to nodes.
  std::uint32_t first_channel(std::uint32_t at) const { return first_channel_[at]; }
  std::uint32_t ports(std::uint32_t at) const { return first_channel_[at + 1] - first_channel_[at]; }
  // The switch of the first rail that a node is attached to; other rails' follow at distances of
  // rail_switches().
  std::uint32_t node_switch(std::uint32_t node) const { return node_switch_[node]; }
  std::uint32_t node_port(std::uint32_t node) const { return node_port_[node]; }
  std::uint32_t injection(std::uint32_t node, std::uint32_t rail) const {
    return first_injection_ + node * rails_ + rail;
  }
  std::uint32_t domain(std::uint32_t at) const { return domain_[at % rail_switches_]; }

 private:
  void slow_down(std::uint32_t channel, double speed);

  std::uint32_t rail_switches_ = 0;
  std::uint32_t rails_ = 1;
  std::uint32_t queues_ = 0;
  std::uint32_t domains_ = 1;
  std::uint32_t first_injection_ = 0;
  std::vector<Channel> channels_;
  std::vector<std::uint32_t> first_channel_;
  std::vector<std::uint32_t> node_switch_, node_port_, domain_;
};

}  // namespace manyscale::network
