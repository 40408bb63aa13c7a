// SPDX-License-Identifier: Apache-2.0
#include "memory/origins/origins.hpp"

#include <algorithm>

namespace manyscale::memory {

void Traffic::add(const Traffic& other) {
  add_counts(cache, other.cache);
  add_counts(crossbar, other.crossbar);
  add_counts(dram, other.dram);
}

Origins::Origins(std::span<Component* const> parts) {
  for (Component* part : parts) {
    if (auto* cache = dynamic_cast<SharedCache*>(part)) {
      caches_.push_back(cache);
    } else if (auto* crossbar = dynamic_cast<Crossbar*>(part)) {
      crossbars_.push_back(crossbar);
    } else if (auto* channel = dynamic_cast<Dram*>(part)) {
      channels_.push_back(channel);
    } else {
      throw SimulationError(part->name() + " does not count on whose behalf it works");
    }
  }
}

Origin Origins::open() {
  if (closed_.empty() || !idle(closed_.front())) return next_++;
  const Origin origin = closed_.front();
  closed_.pop_front();
  late_.add(take(origin));
  return origin;
}

Traffic Origins::close(Origin origin) {
  closed_.push_back(origin);
  return take(origin);
}

Traffic Origins::other() const {
  Traffic sum = late_;
  sum.add(of(nobody));
  for (const Origin origin : closed_) sum.add(of(origin));
  return sum;
}

bool Origins::idle(Origin origin) const {
  const auto is_idle = [origin](auto* part) { return part->traffic().idle(origin); };
  return std::ranges::all_of(caches_, is_idle) && std::ranges::all_of(channels_, is_idle);
}

Traffic Origins::of(Origin origin) const {
  Traffic sum;
  for (SharedCache* cache : caches_) add_counts(sum.cache, cache->traffic().of(origin));
  for (Crossbar* crossbar : crossbars_) add_counts(sum.crossbar, crossbar->traffic().of(origin));
  for (Dram* channel : channels_) add_counts(sum.dram, channel->traffic().of(origin));
  return sum;
}

Traffic Origins::take(Origin origin) {
  Traffic sum;
  for (SharedCache* cache : caches_) add_counts(sum.cache, cache->traffic().take(origin));
  for (Crossbar* crossbar : crossbars_) add_counts(sum.crossbar, crossbar->traffic().take(origin));
  for (Dram* channel : channels_) add_counts(sum.dram, channel->traffic().take(origin));
  return sum;
}

}  // namespace manyscale::memory
