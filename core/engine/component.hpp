// SPDX-License-Identifier: Apache-2.0
// A component: a piece of a simulated machine with its own state, reached only by events through its
// endpoints. Ports, timers and clocks are the endpoints; see port.hpp, timer.hpp and clock.hpp.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/event.hpp"
#include "engine/partition.hpp"
#include "engine/random.hpp"
#include "engine/spec.hpp"
#include "engine/statistics.hpp"
#include "engine/timeline.hpp"

namespace manyscale {

class Component;
class PortBase;

using Handler = void (*)(Component&, void* endpoint, const Event&);

// Where events arrive: which component, which of its endpoints, and the function that takes them.
struct Endpoint {
  Component* component;
  void* object;
  Handler handler;
};

// Something a component cannot go on without; `holder` is the component that would have to act, if known.
struct Wait {
  std::string what;
  std::string holder;
};

// An error inside a model, with the words for the person who runs it.
class SimulationError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Component {
 public:
  Component(const Component&) = delete;
  Component& operator=(const Component&) = delete;
  virtual ~Component() = default;

  // Called once before the first event, at time zero; first messages are sent here.
  virtual void start() {}
  // Called at the start of every run, the first too; what came from outside in between is taken up here.
  virtual void resume() {}
  // Brings statistics up to the present; called before they are read, any number of times.
  virtual void settle() {}
  // What the component still waits for. Asked when no event is left: an answer means deadlock.
  virtual std::vector<Wait> waits() const { return {}; }

  const std::string& name() const { return name_; }
  const std::vector<PortBase*>& ports() const { return ports_; }
  const std::vector<StatisticInfo>& statistics() const { return statistics_; }
  const std::vector<Endpoint>& endpoints() const { return endpoints_; }
  std::uint32_t id() const { return id_; }

  Time now() const { return partition_->now; }
  Random& random() { return random_; }
  // Ends the run: after this event where all components run in one partition anyway, else at the end of the
  // current window, which is the same moment on any number of threads.
  void stop() { partition_->stop_requested = true; }
  // Spans and counters for a person to look at; nullptr when nobody asked for a timeline.
  Timeline* timeline() { return timeline_; }
  // Shows a level from now on, if somebody asked for a timeline.
  void show_level(std::string_view level, double value) {
    if (timeline_ != nullptr) timeline_->counter(timeline_->name(level), now(), value);
  }

  // Sends an event to an endpoint. Used by ports, timers and clocks; models use those.
  template <Payload T>
  void post(std::uint32_t partition, std::uint32_t target, std::uint32_t lane, Time delay,
            std::uint8_t priority, const T& payload) {
    Event event;
    event.time =
        static_cast<Time>(static_cast<std::uint64_t>(partition_->now) + static_cast<std::uint64_t>(delay));
    if (event.time < partition_->now || event.time == never) [[unlikely]]
      refuse_delay(delay);
    event.order = Order::make(priority, id_, sequence_++);
    event.target = target;
    event.lane = lane;
    event.store(payload);
    partition_->deliver(partition, event);
  }

  // Takes back all pending events for an endpoint of this component's own. It looks at all events of the
  // partition, so it is for what happens once.
  void take_back(std::uint32_t target);

  std::uint32_t partition_index() const { return partition_->index; }
  std::uint32_t first_endpoint() const { return first_endpoint_; }

  // Called by the members that are endpoints or ports, while the component is being constructed.
  std::uint32_t add_endpoint(void* object, Handler handler);
  void add_port(PortBase& port) { ports_.push_back(&port); }

 protected:
  Component() = default;

  // Declares all statistics of a struct that has a table of them (describe<Statistics>), with a prefix if
  // given.
  template <class Statistics>
  void declare(const Statistics& statistics, const std::string& prefix = "") {
    for_each_field<Statistics>([&](const auto& entry) {
      declare(prefix + std::string(entry.name), std::string(entry.unit), std::string(entry.doc),
              &(statistics.*(entry.member)));
    });
  }
  void declare(std::string name, std::string unit, std::string doc, StatisticPointer source) {
    statistics_.push_back({std::move(name), std::move(unit), std::move(doc), source});
  }

 private:
  friend class Simulation;

  [[noreturn]] void refuse_delay(Time delay) const;

  std::string name_;
  std::uint32_t id_ = 0;
  std::uint32_t first_endpoint_ = 0;
  std::uint32_t sequence_ = 0;
  Partition* partition_ = nullptr;
  Random random_;
  Timeline* timeline_ = nullptr;
  std::vector<Endpoint> endpoints_;
  std::vector<PortBase*> ports_;
  std::vector<StatisticInfo> statistics_;
};

}  // namespace manyscale
