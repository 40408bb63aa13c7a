// SPDX-License-Identifier: Apache-2.0
// Max-min fair rates of flows over channels: no flow can have more without another having less that has no
// more than it. Each channel has a level: its flows get no more than that, and those that get less elsewhere
// leave the rest to the others. When flows come or go, the levels of their channels are found again, then
// those of the channels whose flows have changed by that, and so on until changes are small: what is far away
// is not looked at.
#pragma once
#include <cstdint>
#include <vector>

namespace manyscale::network {

class FairShares {
 public:
  // Capacities of channels, in bytes per femtosecond.
  explicit FairShares(const std::vector<double>& capacities);

  // Adds a flow over these channels; gives its number. Its rate is 0 until they are computed.
  std::uint32_t add(const std::vector<std::uint32_t>& channels);
  void remove(std::uint32_t flow);
  // Computes rates again where they may have changed; lists the flows whose rate did change.
  const std::vector<std::uint32_t>& compute();

  bool dirty() const { return !dirty_.empty(); }
  double rate(std::uint32_t flow) const { return flows_[flow].rate; }
  std::size_t flows_on(std::uint32_t channel) const { return channels_[channel].members.size(); }
  // Channels that the last computation looked at, some of them more than once.
  std::size_t looked_at() const { return looked_at_; }

 private:
  struct Member {
    std::uint32_t flow, hop;  // which of the flow's hops this is
  };
  struct Hop {
    std::uint32_t channel, position;  // among the channel's members
  };
  struct Flow {
    std::vector<Hop> hops;
    double rate = 0, before = 0;
    bool changed = false;
  };
  struct Channel {
    double capacity = 0;
    double level = 0;  // infinite where flows do not fill the channel
    bool dirty = false;
    std::vector<Member> members;
  };

  void touch(std::uint32_t channel);
  double level_of(std::uint32_t channel);
  void update(std::uint32_t flow);

  std::vector<Channel> channels_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> dirty_, changed_;
  std::vector<double> limits_;
  std::size_t looked_at_ = 0;
};

}  // namespace manyscale::network
