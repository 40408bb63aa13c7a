// SPDX-License-Identifier: Apache-2.0
// A clock that sleeps: it ticks only at the cycles its component asked for, so idle cycles cost nothing.
#pragma once
#include "engine/port.hpp"

namespace manyscale {

class Clock {
 public:
  static constexpr Cycle asleep = never;

  Clock(Component& owner, Time period) : owner_(owner), period_(period) {
    if (period <= 0) throw SimulationError("a clock's period must be at least 1 fs");
  }

  // Says which method is called at an edge: Cycle method(Cycle now), which returns the cycle of the next tick
  // it wants (later than now) or Clock::asleep.
  template <auto method>
  void on_tick() {
    using Class = typename detail::MethodOf<decltype(method)>::type;
    on_tick([](Component& component, Clock&, Cycle cycle) {
      return (static_cast<Class&>(component).*method)(cycle);
    });
  }
  // The same with a function that captures nothing: Cycle function(Component&, Clock&, Cycle now).
  template <class Function>
  void on_tick(Function) {
    endpoint_ = owner_.add_endpoint(this, [](Component& component, void* clock, const Event& event) {
      auto& self = *static_cast<Clock*>(clock);
      if (!self.due(event)) return;
      const Cycle next = Function{}(component, self, event.load<Cycle>());
      if (next != asleep) self.wake_at(next);
    });
  }

  Time period() const { return period_; }
  // The cycle whose edge is at the present time or was the last before it.
  Cycle cycle() const { return owner_.now() / period_; }
  // The first cycle whose edge is not before the time.
  Cycle cycle_at(Time time) const { return time / period_ + (time % period_ != 0); }
  Time edge(Cycle cycle) const { return cycle * period_; }

  // Makes sure of a tick at the next edge that is not before the present.
  void wake() { wake_at(cycle_at(owner_.now())); }
  // Makes sure of a tick no later than that cycle; a later one that was wanted before is dropped, since the
  // tick itself says when the next is due.
  void wake_at(Cycle cycle) {
    if (cycle >= wanted_) return;
    wanted_ = cycle;
    const Time delay = edge(cycle) - owner_.now();
    owner_.post(owner_.partition_index(), owner_.first_endpoint() + endpoint_, 0, delay, tick_priority,
                cycle);
  }

 private:
  // Ticks come after the messages of the same moment, so that a tick sees all that arrived by its edge.
  static constexpr std::uint8_t tick_priority = 192;

  // Whether this tick is still the one wanted: an earlier wake replaces it.
  bool due(const Event& event) {
    if (event.load<Cycle>() != wanted_) return false;
    wanted_ = asleep;
    return true;
  }

  Component& owner_;
  Time period_;
  std::uint32_t endpoint_ = 0;
  Cycle wanted_ = asleep;
};

}  // namespace manyscale
