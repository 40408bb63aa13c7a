// SPDX-License-Identifier: Apache-2.0
#include "network/network.hpp"

#include <algorithm>
#include <set>

#include "network/flow_network.hpp"
#include "network/packet_network.hpp"
#include "network/switch_group.hpp"

namespace manyscale::network {

Network::Network(Simulation& simulation, const NetworkDescription& description)
    : simulation_(simulation),
      spec_(description.spec),
      routing_(description),
      may_be_cut_(routing_.model().may_be_disconnected() || !description.faults.empty()),
      has_host_(nodes(), false) {
  Time slowest = 1;  // time of a mebibyte
  for (std::uint32_t c = 0; c < topology().channels(); ++c)
    slowest = std::max(slowest, topology().channel(c).rate(1 << 20));
  largest_message_ = static_cast<std::uint64_t>(second / slowest * 1000) << 20;
  if (spec_.fidelity == "packet" || spec_.fidelity == "train") {
    make_switch_groups();
  } else if (spec_.fidelity == "flow" || spec_.fidelity == "ideal") {
    auto flows = std::make_unique<FlowNetwork>(routing_, pool_, spec_);
    flows_ = flows.get();
    simulation_.add("network", std::move(flows));
  } else {
    throw SimulationError("fidelity is '" + spec_.fidelity +
                          "'; it must be 'packet', 'train', 'flow' or 'ideal'");
  }
}

Network::~Network() = default;

void Network::make_switch_groups() {
  packets_ = std::make_unique<PacketNetwork>(routing_, pool_, spec_);
  for (std::uint32_t domain = 0; domain < topology().domains(); ++domain) {
    auto group = std::make_unique<SwitchGroup>(*packets_, domain);
    groups_.push_back(group.get());
    simulation_.add("switches[" + std::to_string(domain) + "]", std::move(group));
  }
  std::set<std::pair<std::uint32_t, std::uint32_t>> neighbours;
  for (std::uint32_t c = 0; c < topology().channels(); ++c) {
    const Channel& channel = topology().channel(c);
    if (channel.kind != ChannelKind::between_switches) continue;
    const std::uint32_t from = topology().domain(channel.from), to = topology().domain(channel.to);
    if (from != to) neighbours.insert(std::minmax(from, to));
  }
  for (const auto& [a, b] : neighbours) groups_[a]->join(simulation_, *groups_[b]);
}

void Network::add(Nic& nic) {
  if (nic.node() >= nodes()) {
    throw SimulationError("there is no node " + std::to_string(nic.node()) + ": the network has " +
                          std::to_string(nodes()) + " nodes");
  }
  if (has_host_[nic.node()])
    throw SimulationError("node " + std::to_string(nic.node()) + " has a host already");
  has_host_[nic.node()] = true;
  nics_.push_back(&nic);
}

void Network::connect() {
  for (Nic* nic : nics_) {
    if (flows_ != nullptr) {
      nic->fabric_ = flows_;
      flows_->set_lane(nic->node(), flows_->nics().width());
      simulation_.connect(flows_->nics(), *nic, 0);
      continue;
    }
    SwitchGroup& group = *groups_[topology().domain(topology().node_switch(nic->node()))];
    nic->fabric_ = &group;
    packets_->nic_lanes[nic->node()] = group.nics().width();
    simulation_.connect(group.nics(), *nic, 0);
  }
  nics_ = {};
}

void Network::refuse_unreachable(std::uint32_t source, std::uint32_t destination) const {
  if (destination >= nodes()) {
    throw SimulationError("node " + std::to_string(source) + " sends to node " + std::to_string(destination) +
                          ", but the network has " + std::to_string(nodes()) + " nodes");
  }
  if (!has_host_[destination]) {
    throw SimulationError("node " + std::to_string(source) + " sends to node " + std::to_string(destination) +
                          ", which has no host");
  }
  for (std::uint32_t rail = 0; rail < topology().rails(); ++rail) {
    if (routing_.reachable(source, destination, rail)) continue;
    throw SimulationError("no way leads from node " + std::to_string(source) + " to node " +
                          std::to_string(destination) +
                          (topology().rails() > 1 ? " by rail " + std::to_string(rail) : "") +
                          ": links that are down, or missing in the graph, cut them off");
  }
}

std::vector<std::uint32_t> Network::path(std::uint32_t source, std::uint32_t destination,
                                         std::uint32_t rail) const {
  if (source >= nodes() || destination >= nodes() || rail >= topology().rails()) {
    throw SimulationError("no way from node " + std::to_string(source) + " to node " +
                          std::to_string(destination) + " by rail " + std::to_string(rail) +
                          ": the network has " + std::to_string(nodes()) + " nodes and " +
                          std::to_string(topology().rails()) + " rails");
  }
  if (!routing_.reachable(source, destination, rail)) {
    throw SimulationError("no way leads from node " + std::to_string(source) + " to node " +
                          std::to_string(destination) +
                          ": links that are down, or missing in the graph, cut them off");
  }
  ProbeContext context{Random(simulation_.seed(), std::uint64_t{source} << 32 | destination)};
  std::vector<std::uint32_t> channels;
  routing_.path(source, destination, rail, context, channels);
  return channels;
}

Time Network::latency(std::uint32_t source, std::uint32_t destination) const {
  const auto channels = path(source, destination);
  Time sum = static_cast<Time>(channels.size() - 1) * spec_.switches.latency;
  for (const std::uint32_t channel : channels) sum += topology().channel(channel).latency;
  return sum;
}

std::vector<LinkReport> Network::links() const {
  std::vector<LinkReport> reports;
  const std::vector<LinkHistory>& histories = packets_ ? packets_->histories : flows_->histories();
  Time interval = 0;
  for (const LinkHistory& history : histories) interval = std::max(interval, history.interval());
  for (std::uint32_t c = 0; c < topology().channels(); ++c) {
    const Channel& channel = topology().channel(c);
    if (channel.kind == ChannelKind::absent) continue;
    LinkReport report;
    report.from = channel.from;
    report.to = channel.to;
    report.from_node = channel.kind == ChannelKind::from_node;
    report.to_node = channel.kind == ChannelKind::to_node;
    report.link = channel.link;
    const auto note = [&report](const auto& usage) {
      report.bytes = usage.bytes;
      report.packets = usage.packets;
      report.queueing = usage.queueing;
    };
    if (packets_) {
      note(packets_->outputs[c]);
    } else {
      note(flows_->usage()[c]);
    }
    if (!histories.empty()) {
      report.sent = histories[c].sent(interval);
      report.waited = histories[c].waited(interval);
      report.interval = interval;
    }
    report.busy = channel.rate(static_cast<std::uint64_t>(report.bytes));
    reports.push_back(std::move(report));
  }
  return reports;
}

Totals Network::totals() const {
  Totals totals;
  totals.latency.assign(Histogram::bucket_count, 0);
  const auto add = [&](const auto& statistics) {
    totals.messages += statistics.messages.value();
    totals.bytes += statistics.bytes.value();
    totals.packets += statistics.packets.value();
    totals.packet_hops += statistics.packet_hops.value();
    for (std::size_t i = 0; i < totals.latency.size(); ++i)
      totals.latency[i] += statistics.latency.in_bucket(i);
  };
  for (const SwitchGroup* group : groups_) add(group->totals());
  if (flows_ != nullptr) add(flows_->totals());
  return totals;
}

}  // namespace manyscale::network
