// SPDX-License-Identifier: Apache-2.0
#include "network/topology.hpp"

#include <cmath>
#include <unordered_map>

#include "engine/component.hpp"

namespace manyscale::network {

Rate::Rate(double bytes_per_second) {
  if (!(bytes_per_second >= 1e6)) throw SimulationError("a link needs a bandwidth of at least 1 MB/s");
  period_ = static_cast<std::uint64_t>(std::llround(1e15 / bytes_per_second * 0x1p32));
}

Rate Rate::slowed(double share) const {
  Rate rate;
  const double period = static_cast<double>(period_) / share;
  if (!(period <= 1e9 * 0x1p32)) throw SimulationError("a slow link needs a bandwidth of at least 1 MB/s");
  rate.period_ = static_cast<std::uint64_t>(period + 0.5);
  return rate;
}

void check_size(std::uint64_t count, const std::string& what) {
  constexpr std::uint64_t most = 20'000'000;
  if (count > most) {
    throw SimulationError("the network has " + std::to_string(count) + " " + what + ", more than the " +
                          std::to_string(most) + " that are possible; make it smaller");
  }
}

Topology::Topology(const Shape& shape, const NetworkSpec& spec)
    : rail_switches_(static_cast<std::uint32_t>(shape.outlets.size())),
      rails_(static_cast<std::uint32_t>(spec.topology.rails)),
      domains_(shape.domains),
      node_switch_(shape.node_switch),
      node_port_(shape.node_switch.size()),
      domain_(shape.domain) {
  std::vector<std::vector<std::uint32_t>> attached(rail_switches_);
  for (std::uint32_t node = 0; node < nodes(); ++node) {
    auto& others = attached[node_switch_[node]];
    node_port_[node] = static_cast<std::uint32_t>(shape.outlets[node_switch_[node]].size() + others.size());
    others.push_back(node);
  }
  std::size_t count = std::size_t{2} * nodes();
  for (const auto& outlets : shape.outlets) count += outlets.size();
  check_size(count * rails_, "channels");
  channels_.reserve(count * rails_);
  const double node_bandwidth =
      static_cast<double>(spec.nic.bandwidth > 0 ? spec.nic.bandwidth : spec.link.bandwidth);
  const Time node_latency = spec.nic.latency > 0 ? spec.nic.latency : spec.link.latency;
  const auto add = [&](ChannelKind kind, std::uint32_t from, std::uint32_t to, Time latency, double bandwidth,
                       std::uint32_t link) {
    channels_.push_back({from, to, latency, bandwidth > 0 ? Rate(bandwidth) : Rate(), 0, link, kind});
  };
  for (std::uint32_t rail = 0; rail < rails_; ++rail) {
    const std::uint32_t base = rail * rail_switches_;
    for (std::uint32_t at = 0; at < rail_switches_; ++at) {
      first_channel_.push_back(channels());
      std::unordered_map<std::uint32_t, std::uint32_t> parallel;
      for (const Outlet& outlet : shape.outlets[at]) {
        if (outlet.to == nowhere) {
          add(ChannelKind::absent, base + at, nowhere, 0, 0, 0);
        } else {
          add(ChannelKind::between_switches, base + at, base + outlet.to, outlet.latency, outlet.bandwidth,
              parallel[outlet.to]++);
        }
      }
      for (const std::uint32_t node : attached[at])
        add(ChannelKind::to_node, base + at, node, node_latency, node_bandwidth, rail);
    }
  }
  first_channel_.push_back(channels());
  first_injection_ = channels();
  for (std::uint32_t node = 0; node < nodes(); ++node)
    for (std::uint32_t rail = 0; rail < rails_; ++rail)
      add(ChannelKind::from_node, node, rail * rail_switches_ + node_switch_[node], node_latency,
          node_bandwidth, rail);
}

void Topology::number_queues(std::uint32_t virtual_channels) {
  std::uint64_t queues = 0;
  for (Channel& channel : channels_) {
    channel.first_queue = static_cast<std::uint32_t>(queues);
    if (channel.kind == ChannelKind::between_switches) queues += virtual_channels;
    if (channel.kind == ChannelKind::from_node) queues += 1;
  }
  check_size(queues, "virtual channels");
  queues_ = static_cast<std::uint32_t>(queues);
}

void Topology::slow_down(std::uint32_t channel, double speed) {
  if (speed > 0) {
    channels_[channel].rate = channels_[channel].rate.slowed(speed);
  } else {
    channels_[channel].kind = ChannelKind::absent;
  }
}

bool Topology::apply(const std::vector<Fault>& faults) {
  bool gone = false;
  for (const Fault& fault : faults) {
    const bool whole_switch = fault.b < 0;
    if (fault.a >= switches() || (!whole_switch && fault.b >= static_cast<std::int64_t>(switches()))) {
      throw SimulationError("a fault names switch " + std::to_string(whole_switch ? fault.a : fault.b) +
                            ", but the switches are numbered from 0 to " + std::to_string(switches() - 1));
    }
    if (!(fault.speed >= 0 && fault.speed <= 1))
      throw SimulationError("the speed of a faulty link is a share of its bandwidth: from 0 (down) to 1");
    bool found = false;
    for (std::uint32_t i = 0; i < channels(); ++i) {
      const Channel& channel = channels_[i];
      if (channel.kind == ChannelKind::absent) continue;
      const bool leaves = channel.kind != ChannelKind::from_node;
      const bool enters = channel.kind != ChannelKind::to_node;
      bool meant = false;
      if (whole_switch) {
        meant = (leaves && channel.from == fault.a) || (enters && channel.to == fault.a);
      } else if (channel.kind == ChannelKind::between_switches) {
        const auto b = static_cast<std::uint32_t>(fault.b);
        meant =
            ((channel.from == fault.a && channel.to == b) || (channel.from == b && channel.to == fault.a)) &&
            (fault.link < 0 || fault.link == static_cast<std::int64_t>(channel.link));
      }
      if (!meant) continue;
      found = true;
      slow_down(i, fault.speed);
    }
    if (!found) {
      throw SimulationError("a fault names a link between switches " + std::to_string(fault.a) + " and " +
                            std::to_string(fault.b) + ", but there is none" +
                            (fault.link < 0 ? "" : " numbered " + std::to_string(fault.link)));
    }
    gone |= fault.speed == 0;
  }
  return gone;
}

}  // namespace manyscale::network
