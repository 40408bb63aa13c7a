// SPDX-License-Identifier: Apache-2.0
// A network: makes the components of a described network in a simulation and joins hosts to them.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/simulation.hpp"
#include "network/message.hpp"
#include "network/network_spec.hpp"
#include "network/nic.hpp"
#include "network/routing.hpp"

namespace manyscale::network {

struct PacketNetwork;
class SwitchGroup;
class FlowNetwork;

// What went over one direction of a link. Ends are switches, or nodes where so said.
struct LinkReport {
  std::uint32_t from = 0, to = 0;
  bool from_node = false, to_node = false;
  std::uint32_t link = 0;  // which of several between the same two ends
  std::int64_t bytes = 0;  // headers included
  std::int64_t packets = 0;
  Time busy = 0;
  Time queueing = 0;  // time that packets (or trains) waited for it
  // Where recorded, per interval: bytes, and bytes that waited times how long they did.
  std::vector<float> sent, waited;
  Time interval = 0;
};

// What all nodes together have done.
struct Totals {
  std::int64_t messages = 0, bytes = 0, packets = 0, packet_hops = 0;
  std::vector<std::int64_t> latency;  // messages by bucket of a Histogram of their latency
};

class Network {
 public:
  Network(Simulation& simulation, const NetworkDescription& description);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  const NetworkSpec& spec() const { return spec_; }
  const Routing& routing() const { return routing_; }
  const Topology& topology() const { return routing_.topology(); }
  std::uint32_t nodes() const { return topology().nodes(); }
  std::uint32_t switches() const { return topology().switches(); }
  // Joins all NICs made so far; once, before the run.
  void connect();

  // The channels that a message takes through an idle network, from node to node.
  std::vector<std::uint32_t> path(std::uint32_t source, std::uint32_t destination,
                                  std::uint32_t rail = 0) const;
  // How long the first byte of a message is in flight in an idle network.
  Time latency(std::uint32_t source, std::uint32_t destination) const;
  // One per channel, in their order, without those that are down.
  std::vector<LinkReport> links() const;
  Totals totals() const;

  // For NICs.
  void add(Nic& nic);
  MessagePool& messages() { return pool_; }
  // Larger ones would be in flight for longer than simulated time lasts.
  std::uint64_t largest_message() const { return largest_message_; }
  void check_way(std::uint32_t source, std::uint32_t destination) const {
    if (destination >= has_host_.size() || !has_host_[destination] || may_be_cut_) [[unlikely]]
      refuse_unreachable(source, destination);
  }

 private:
  void refuse_unreachable(std::uint32_t source, std::uint32_t destination) const;
  void make_switch_groups();

  Simulation& simulation_;
  const NetworkSpec spec_;
  const Routing routing_;
  MessagePool pool_;
  const bool may_be_cut_;
  std::uint64_t largest_message_ = 0;
  std::vector<Nic*> nics_;
  std::vector<bool> has_host_;
  std::unique_ptr<PacketNetwork> packets_;
  std::vector<SwitchGroup*> groups_;  // by domain
  FlowNetwork* flows_ = nullptr;      // instead of packets and groups
};

}  // namespace manyscale::network
