// SPDX-License-Identifier: Apache-2.0
#include "engine/statistics.hpp"

#include <nanobind/stl/vector.h>

#include <map>

#include "engine/component.hpp"
#include "module.hpp"

using namespace manyscale;

namespace {

// What components have counted so far: for each name of a counter, the sum over all that have one so called.
nb::dict counter_totals(const std::vector<Component*>& components) {
  std::map<std::string_view, std::int64_t> totals;
  for (Component* component : components) {
    component->settle();
    for (const StatisticInfo& info : component->statistics()) {
      const auto* counter = std::get_if<const Counter*>(&info.source);
      if (counter != nullptr) totals[info.name] += (*counter)->value();
    }
  }
  nb::dict out;
  for (const auto& [name, total] : totals) out[nb::str(name.data(), name.size())] = total;
  return out;
}

}  // namespace

void bind_statistics(nb::module_& module) {
  nb::class_<Counter>(module, "Counter")
      .def(nb::init<>())
      .def(
          "add", [](Counter& counter, std::int64_t amount) { counter += amount; }, nb::arg("amount") = 1,
          "Counts one more, or `amount` more.")
      .def_prop_ro("value", &Counter::value);
  nb::class_<Gauge>(module, "Gauge")
      .def(nb::init<>())
      .def("set", &Gauge::set, nb::arg("value"), "The level from now on.")
      .def_prop_ro("value", &Gauge::last)
      .def_prop_ro("min", &Gauge::lowest)
      .def_prop_ro("max", &Gauge::highest);
  nb::class_<Histogram>(module, "Histogram")
      .def(nb::init<>())
      .def("record", &Histogram::record, nb::arg("value"), "Takes one value in; negative ones count as 0.")
      .def_prop_ro("count", &Histogram::count)
      .def_prop_ro("mean", &Histogram::mean)
      .def_prop_ro("min", &Histogram::least)
      .def_prop_ro("max", &Histogram::greatest)
      .def("quantile", &Histogram::quantile, nb::arg("fraction"));
  nb::class_<Series>(module, "Series")
      .def(nb::init<Time>(), nb::arg("interval") = nanosecond)
      .def("add", &Series::add, nb::arg("time"), nb::arg("amount"),
           "Adds to the interval that holds the time.")
      .def_prop_ro("interval", &Series::interval)
      .def_prop_ro("sums", &Series::sums);
  module.def("counter_totals", &counter_totals, nb::arg("components"),
             "The sums of all counters of the components, by name, as they are now.");
}
