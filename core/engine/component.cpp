// SPDX-License-Identifier: Apache-2.0
#include "engine/component.hpp"

namespace manyscale {

std::uint32_t Component::add_endpoint(void* object, Handler handler) {
  endpoints_.push_back({this, object, handler});
  return static_cast<std::uint32_t>(endpoints_.size() - 1);
}

void Component::take_back(std::uint32_t target) {
  std::vector<Event> pending;
  partition_->queue->drain(pending);
  for (const Event& event : pending) {
    if (event.target != target) partition_->queue->push(event);
  }
}

void Component::refuse_delay(Time delay) const {
  if (delay < 0)
    throw SimulationError(name_ + " sends into the past: its delay is " + std::to_string(delay) + " fs");
  throw SimulationError(name_ + " sends beyond the end of time (9223 s of simulated time)");
}

}  // namespace manyscale
