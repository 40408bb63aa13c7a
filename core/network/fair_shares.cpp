// SPDX-License-Identifier: Apache-2.0
#include "network/fair_shares.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace manyscale::network {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double small_change = 5e-3;  // relative; others are told of larger ones only
constexpr std::size_t looks_per_channel = 50;

}  // namespace

FairShares::FairShares(const std::vector<double>& capacities) : channels_(capacities.size()) {
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    channels_[i].capacity = capacities[i];
    channels_[i].level = infinite;
  }
}

void FairShares::touch(std::uint32_t channel) {
  if (channels_[channel].dirty) return;
  channels_[channel].dirty = true;
  dirty_.push_back(channel);
}

std::uint32_t FairShares::add(const std::vector<std::uint32_t>& channels) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(flows_.size()));
    flows_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Flow& flow = flows_[index];
  flow.rate = 0;
  flow.hops.clear();
  for (const std::uint32_t channel : channels) {
    auto& members = channels_[channel].members;
    members.push_back({index, static_cast<std::uint32_t>(flow.hops.size())});
    flow.hops.push_back({channel, static_cast<std::uint32_t>(members.size() - 1)});
    touch(channel);
  }
  return index;
}

void FairShares::remove(std::uint32_t index) {
  for (const Hop& hop : flows_[index].hops) {
    auto& members = channels_[hop.channel].members;
    members[hop.position] = members.back();
    flows_[members[hop.position].flow].hops[members[hop.position].hop].position = hop.position;
    members.pop_back();
    touch(hop.channel);
  }
  flows_[index].hops.clear();
  free_.push_back(index);
}

// The level at which the flows of a channel fill it, given what they get elsewhere.
double FairShares::level_of(std::uint32_t index) {
  const Channel& channel = channels_[index];
  limits_.clear();
  for (const Member& member : channel.members) {
    double limit = infinite;
    const auto& hops = flows_[member.flow].hops;
    for (std::uint32_t hop = 0; hop < hops.size(); ++hop)
      if (hop != member.hop) limit = std::min(limit, channels_[hops[hop].channel].level);
    limits_.push_back(limit);
  }
  std::sort(limits_.begin(), limits_.end());
  double left = channel.capacity;
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    const double share = left / static_cast<double>(limits_.size() - i);
    if (limits_[i] >= share) return share;
    left -= limits_[i];
  }
  return infinite;
}

// Gives a flow the rate that its channels allow.
void FairShares::update(std::uint32_t index) {
  Flow& flow = flows_[index];
  double rate = infinite;
  for (const Hop& hop : flow.hops) {
    const Channel& channel = channels_[hop.channel];
    rate = std::min({rate, channel.level, channel.capacity});
  }
  if (rate == flow.rate) return;
  if (!flow.changed) {
    flow.changed = true;
    flow.before = flow.rate;
    changed_.push_back(index);
  }
  flow.rate = rate;
}

const std::vector<std::uint32_t>& FairShares::compute() {
  changed_.clear();
  const std::size_t enough = looks_per_channel * dirty_.size() + 1000;
  for (looked_at_ = 0; looked_at_ < dirty_.size() && looked_at_ < enough; ++looked_at_) {
    const std::uint32_t index = dirty_[looked_at_];
    Channel& channel = channels_[index];
    channel.dirty = false;
    channel.level = level_of(index);
    for (const Member& member : channel.members) {
      const double before = flows_[member.flow].rate;
      update(member.flow);
      const double rate = flows_[member.flow].rate;
      if (std::abs(rate - before) <= small_change * before) continue;
      // Other channels are concerned where the flow takes less than they would give it.
      for (const Hop& hop : flows_[member.flow].hops) {
        const Channel& other = channels_[hop.channel];
        if (hop.channel != index && other.members.size() > 1 && std::min(rate, before) < other.level)
          touch(hop.channel);
      }
    }
  }
  for (std::size_t i = looked_at_; i < dirty_.size(); ++i) channels_[dirty_[i]].dirty = false;
  dirty_.clear();
  for (const std::uint32_t flow : changed_) flows_[flow].changed = false;
  return changed_;
}

}  // namespace manyscale::network
