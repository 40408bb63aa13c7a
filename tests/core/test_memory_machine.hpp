// SPDX-License-Identifier: Apache-2.0
// A small machine for tests of private caches: cores' stand-ins that make accesses at given times, a slice of
// a shared cache and memory, with latencies that are easy to add up.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/simulation.hpp"
#include "engine/timer.hpp"
#include "memory/cache/private_caches.hpp"
#include "memory/dram/dram.hpp"
#include "memory/shared/home.hpp"
#include "memory/shared/shared_cache.hpp"
#include "test_checks.hpp"

namespace manyscale::memory::test {

using manyscale::test::check;
using manyscale::test::check_equal;

inline constexpr auto fetch = AccessKind::fetch, load = AccessKind::load, store = AccessKind::store;
inline constexpr Time us = 1000 * nanosecond;

struct Step {
  Time time;
  std::uint64_t address;
  AccessKind kind;
  std::uint32_t id = 0;
};

struct Measured {
  Time latency = -1;
  Served served = Served::l1;
};

// A core's stand-in that makes accesses at given times.
class Prober final : public Component, public PrivateCaches::Owner {
 public:
  Prober(const PrivateCachesSpec& spec, std::vector<Step> steps)
      : caches(*this, spec, nanosecond, 1), steps_(std::move(steps)), outcomes(steps_.size()) {
    memory.on_receive<&Prober::receive>();
    timer_.on_expire<&Prober::begin>();
  }
  void start() override {
    for (std::uint32_t i = 0; i < steps_.size(); ++i) timer_.after(steps_[i].time, i);
  }

  PrivateCaches caches;
  RequesterPort memory{*this, "memory", "what serves the misses"};

 private:
  void begin(const std::uint32_t& number) {
    Access access;
    access.address = steps_[number].address;
    access.kind = steps_[number].kind;
    access.id = steps_[number].id;
    access.token = number;
    const AccessResult result = caches.access(access, now());
    if (result.status == AccessResult::Status::done) note(number, result.ready, result.served);
    if (result.status == AccessResult::Status::blocked) blocked_.push_back(number);
  }
  void receive(const Message& message, std::uint32_t) { caches.receive(message, now()); }
  void send_to_memory(const Message& message, Time when) override { memory.send(message, when - now()); }
  void access_done(std::uint32_t token, Time ready, Value, Served served) override {
    note(token, ready, served);
  }
  void unblocked() override {
    for (const std::uint32_t number : std::exchange(blocked_, {})) timer_.after(0, number);
  }
  void note(std::uint32_t number, Time ready, Served served) {
    outcomes[number] = {ready - steps_[number].time, served};
  }

  std::vector<Step> steps_;
  std::vector<std::uint32_t> blocked_;
  Timer<std::uint32_t> timer_{*this};

 public:
  std::vector<Measured> outcomes;
};

inline CacheSpec cache(std::int64_t size, std::int64_t ways, std::int64_t tag, std::int64_t data) {
  CacheSpec spec;
  spec.size = size;
  spec.ways = ways;
  spec.tag_latency = tag;
  spec.data_latency = data;
  return spec;
}

// L1D 4 KiB, 1 + 3 cycles; L1I 1 KiB, 1 + 2; L2 16 KiB, 3 + 8. A cycle is a nanosecond.
inline PrivateCachesSpec two_levels(bool coherent) {
  PrivateCachesSpec spec;
  spec.levels = {cache(4096, 2, 1, 3), cache(16384, 4, 3, 8)};
  spec.instruction = cache(1024, 2, 1, 2);
  spec.coherent = coherent;
  return spec;
}

inline PrivateCachesSpec one_level(bool coherent) {
  PrivateCachesSpec spec = two_levels(coherent);
  spec.levels.pop_back();
  return spec;
}

inline PortBase& port(Component& component, const std::string& name) {
  for (PortBase* port : component.ports()) {
    if (port->path().ends_with("." + name)) return *port;
  }
  throw std::invalid_argument("no port " + name);
}

// Probers, 5 ns from a slice (tag 8, data 22) that is 10 ns from memory (40 ns, 64 B in 4 ns).
struct Machine {
  Machine(const PrivateCachesSpec& spec, const std::vector<std::vector<Step>>& steps,
          std::int64_t slice_size = 1 << 20) {
    DramSpec dram;
    dram.backend = "simple";
    dram.latency = 40 * nanosecond;
    dram.bandwidth = 16'000'000'000;
    Component& channel = simulation.add("channel", std::make_unique<Dram>(dram));
    const CacheSpec lines = cache(slice_size, 16, 8, 22);
    if (spec.coherent) {
      HomeSpec home;
      home.clock = 1'000'000'000;
      home.cache = lines;
      slice = &simulation.add("slice", std::make_unique<Home>(home));
    } else {
      SharedCacheSpec shared;
      shared.clock = 1'000'000'000;
      shared.cache = lines;
      shared.width = 64;
      slice = &simulation.add("slice", std::make_unique<SharedCache>(shared));
    }
    simulation.connect(port(*slice, "memory"), port(channel, "requests"), 10 * nanosecond);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      auto prober = std::make_unique<Prober>(spec, steps[i]);
      probers.push_back(prober.get());
      Component& core = simulation.add("core" + std::to_string(i), std::move(prober));
      simulation.connect(port(core, "memory"), port(*slice, "requesters"), 5 * nanosecond);
    }
    const RunReport report = simulation.run({});
    check(report.outcome == manyscale::Outcome::finished, "the run ends by itself");
  }

  void expect(std::size_t core, std::size_t step, Time nanoseconds, Served served, const std::string& what) {
    const Measured& found = probers[core]->outcomes[step];
    check_equal(found.latency, nanoseconds * nanosecond, what + ", latency");
    check_equal(static_cast<int>(found.served), static_cast<int>(served), what + ", served by");
  }
  std::int64_t statistic(const std::string& name) {
    const StatisticRows rows = simulation.statistics();
    for (std::size_t i = 0; i < rows.value.size(); ++i) {
      if (rows.component[i] == "slice" && rows.statistic[i] == name)
        return std::get<std::int64_t>(rows.value[i]);
    }
    throw std::invalid_argument("no statistic " + name);
  }

  Simulation simulation;
  Component* slice = nullptr;
  std::vector<Prober*> probers;
};

}  // namespace manyscale::memory::test
