// SPDX-License-Identifier: Apache-2.0
// The native half of a model written in Python: its ports, timers and clocks are endpoints like any other,
// and what arrives is handed to methods of the Python object. The object is borrowed for the length of a run
// only, so that no reference cycle passes through C++, where Python's collector could not see it.
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <vector>

#include "engine/clock.hpp"
#include "engine/exchange.hpp"
#include "engine/simulation.hpp"
#include "engine/timer.hpp"
#include "module.hpp"
#include "values.hpp"

using namespace manyscale;

namespace {

// A message between two Python models: the object itself stays in Python, under this number.
struct ObjectNumber {
  std::int64_t number;
};

class PythonComponent final : public Component, public Distributable {
 public:
  // Its messages are objects of one interpreter.
  bool stays_with_first() const override { return true; }

  // Called with the interpreter lock held or not, from any thread.
  void start() override { call("_start"); }
  void settle() override { call("_settle"); }

  std::vector<Wait> waits() const override {
    const nb::gil_scoped_acquire held;
    std::vector<Wait> waits;
    for (nb::handle wait : nb::object(self_.attr("_waits")())) {
      waits.push_back({nb::cast<std::string>(wait[0]), nb::cast<std::string>(wait[1])});
    }
    return waits;
  }

  // The Python object, borrowed; None takes it back.
  void attach(nb::handle self) { self_ = self; }

  PortBase& add_port(const std::string& name, const std::string& protocol, const std::string& role,
                     const std::string& other_role, const std::string& links, const std::string& doc) {
    const Links count = links == "many" ? Links::many : links == "optional" ? Links::optional : Links::one;
    ports_.push_back(
        std::make_unique<PythonPort>(*this, name, protocol, role, other_role, count, doc, ports_.size()));
    return *ports_.back();
  }

  void send(std::size_t port, nb::object message, Time delay, std::uint32_t lane, std::uint8_t priority) {
    ports_.at(port)->send(message, delay, lane, priority);
  }

  std::size_t add_timer() {
    timers_.push_back(std::make_unique<PythonTimer>(*this, timers_.size()));
    return timers_.size() - 1;
  }
  void set_timer(std::size_t timer, Time delay, std::int64_t number) {
    if (delay < 0) throw SimulationError(name() + " sets a timer with a negative delay");
    timers_.at(timer)->after(delay, {number});
  }

  std::size_t add_clock(Time period) {
    clocks_.push_back(std::make_unique<PythonClock>(*this, period, clocks_.size()));
    return clocks_.size() - 1;
  }
  void wake(std::size_t clock) { clocks_.at(clock)->wake(); }
  void wake_at(std::size_t clock, Cycle cycle) {
    PythonClock& waked = *clocks_.at(clock);
    if (waked.edge(cycle) < now())
      throw SimulationError(name() + " wants a tick in the past: cycle " + std::to_string(cycle));
    waked.wake_at(cycle);
  }
  Cycle cycle(std::size_t clock) const { return clocks_.at(clock)->cycle(); }

  void declare_statistic(const std::string& name, const std::string& unit, const std::string& doc,
                         nb::handle statistic) {
    StatisticPointer source;
    if (nb::isinstance<Counter>(statistic)) {
      source = nb::cast<const Counter*>(statistic);
    } else if (nb::isinstance<Gauge>(statistic)) {
      source = nb::cast<const Gauge*>(statistic);
    } else if (nb::isinstance<Histogram>(statistic)) {
      source = nb::cast<const Histogram*>(statistic);
    } else {
      source = nb::cast<const Series*>(statistic);
    }
    declare(name, unit, doc, source);
  }

 private:
  class PythonPort final : public PortBase {
   public:
    PythonPort(PythonComponent& owner, const std::string& name, const std::string& protocol,
               const std::string& role, const std::string& other_role, Links links, const std::string& doc,
               std::size_t index)
        : PortBase(owner, name, protocol, role, other_role, links, doc), index_(index) {
      endpoint_ = owner.add_endpoint(this, [](Component& component, void* port, const Event& event) {
        static_cast<PythonPort*>(port)->receive(static_cast<PythonComponent&>(component), event);
      });
    }

    void send(nb::object message, Time delay, std::uint32_t lane, std::uint8_t priority) {
      if (lane >= width()) {
        throw SimulationError(path() + " has " + std::to_string(width()) + " links and none numbered " +
                              std::to_string(lane));
      }
      // A port of the core says how its payload is made of named values; a Python one takes any object by its
      // number.
      if (const PayloadInfo* payload = lanes()[lane].peer->receives()) {
        Event event{};
        try {
          payload->encode(named_values(nb::cast<nb::dict>(message)), event);
        } catch (const std::invalid_argument& error) {
          std::string known;
          for (const auto& field : payload->fields) known += (known.empty() ? "" : ", ") + field.name;
          throw SimulationError(path() + " sends a wrong message: " + error.what() + "; its fields are " +
                                known);
        }
        post(event.load<std::array<std::int64_t, 3>>(), delay, lane, priority);
      } else {
        post(ObjectNumber{nb::cast<std::int64_t>(message)}, delay, lane, priority);
      }
    }

    bool speaks_core(std::uint32_t lane) const { return lanes().at(lane).peer->receives() != nullptr; }

   private:
    void receive(PythonComponent& component, const Event& event) {
      const nb::gil_scoped_acquire held;
      if (const PayloadInfo* payload = lanes()[event.lane].peer->sends()) {
        component.self_.attr("_receive_values")(index_, event.lane, value_dict(payload->decode(event)));
      } else {
        component.self_.attr("_receive_object")(index_, event.lane, event.load<ObjectNumber>().number);
      }
    }

    std::size_t index_;
  };

  class PythonTimer {
   public:
    PythonTimer(PythonComponent& owner, std::size_t index) : owner_(owner), index_(index) {
      endpoint_ = owner.add_endpoint(this, [](Component& component, void* timer, const Event& event) {
        const nb::gil_scoped_acquire held;
        static_cast<PythonComponent&>(component).self_.attr("_expire")(
            static_cast<PythonTimer*>(timer)->index_, event.load<ObjectNumber>().number);
      });
    }
    void after(Time delay, const ObjectNumber& number) {
      owner_.post(owner_.partition_index(), owner_.first_endpoint() + endpoint_, 0, delay, default_priority,
                  number);
    }

   private:
    PythonComponent& owner_;
    std::size_t index_;
    std::uint32_t endpoint_;
  };

  class PythonClock final : public Clock {
   public:
    PythonClock(PythonComponent& owner, Time period, std::size_t index)
        : Clock(owner, period), index_(index) {
      on_tick([](Component& component, Clock& clock, Cycle cycle) -> Cycle {
        const nb::gil_scoped_acquire held;
        const nb::object next = static_cast<PythonComponent&>(component).self_.attr("_tick")(
            static_cast<PythonClock&>(clock).index_, cycle);
        return next.is_none() ? asleep : nb::cast<Cycle>(next);
      });
    }

   private:
    std::size_t index_;
  };

  void call(const char* method) {
    const nb::gil_scoped_acquire held;
    self_.attr(method)();
  }

  nb::handle self_;
  std::vector<std::unique_ptr<PythonPort>> ports_;
  std::vector<std::unique_ptr<PythonTimer>> timers_;
  std::vector<std::unique_ptr<PythonClock>> clocks_;

 public:
  bool speaks_core(std::size_t port, std::uint32_t lane) const { return ports_.at(port)->speaks_core(lane); }
};

}  // namespace

void bind_python_component(nb::module_& module) {
  nb::class_<PythonComponent, Component>(module, "PythonComponent")
      .def("attach", &PythonComponent::attach, nb::arg("model").none())
      .def("add_port", &PythonComponent::add_port, nb::rv_policy::reference_internal)
      .def("send", &PythonComponent::send)
      .def("speaks_core", &PythonComponent::speaks_core)
      .def("add_timer", &PythonComponent::add_timer)
      .def("set_timer", &PythonComponent::set_timer)
      .def("add_clock", &PythonComponent::add_clock)
      .def("wake", &PythonComponent::wake)
      .def("wake_at", &PythonComponent::wake_at)
      .def("cycle", &PythonComponent::cycle)
      .def("stop", &PythonComponent::stop)
      .def("declare_statistic", &PythonComponent::declare_statistic)
      .def_prop_ro("random", &PythonComponent::random, nb::rv_policy::reference_internal)
      .def(
          "emit_span",
          [](PythonComponent& component, const std::string& name, Time begin, Time end, std::uint32_t track) {
            if (Timeline* lines = component.timeline()) lines->span(lines->name(name), begin, end, track);
          })
      .def("emit_counter", [](PythonComponent& component, const std::string& name, Time time, double value) {
        if (Timeline* lines = component.timeline()) lines->counter(lines->name(name), time, value);
      });
  module.def(
      "add_python_component",
      [](Simulation& simulation, const std::string& name) -> PythonComponent& {
        return static_cast<PythonComponent&>(simulation.add(name, std::make_unique<PythonComponent>()));
      },
      nb::rv_policy::reference, nb::keep_alive<0, 1>());
}
