// SPDX-License-Identifier: Apache-2.0
#include "engine/queue.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "engine/hold_benchmark.hpp"
#include "engine/random.hpp"
#include "module.hpp"

using namespace manyscale;

void bind_queue(nb::module_& module) {
  nb::class_<EventQueue>(module, "EventQueue")
      .def_static("make", &make_queue, nb::arg("name"))
      .def("push",
           [](EventQueue& queue, Time time, std::uint64_t order) {
             Event event{};
             event.time = time;
             event.order = order;
             queue.push(event);
           })
      .def("pop_before",
           [](EventQueue& queue, Time end) -> std::optional<std::pair<Time, std::uint64_t>> {
             const Event* event = queue.pop_before(end);
             if (event == nullptr) return std::nullopt;
             return std::pair{event->time, event->order};
           })
      .def("next_time", &EventQueue::next_time)
      .def("bytes", &EventQueue::bytes)
      .def("__len__", &EventQueue::size);
  module.def("queue_names", &queue_names);
  module.def(
      "run_hold",
      [](std::string_view queue, std::size_t population, std::size_t holds, std::uint64_t seed) {
        HoldResult result;
        {
          const nb::gil_scoped_release released;
          result = run_hold(queue, population, holds, seed);
        }
        nb::dict out;
        out["holds_per_second"] = result.holds_per_second;
        out["bytes_per_event"] = result.bytes_per_event;
        out["checksum"] = result.checksum;
        return out;
      },
      nb::arg("queue"), nb::arg("population"), nb::arg("holds"), nb::arg("seed") = 1);
  nb::class_<Random>(module, "Random")
      .def(nb::init<std::uint64_t, std::uint64_t>(), nb::arg("seed"), nb::arg("stream"))
      .def("next", &Random::next)
      .def("below",
           [](Random& random, std::uint64_t bound) {
             if (bound == 0) throw std::invalid_argument("below() needs a bound of at least 1");
             return random.below(bound);
           })
      .def("uniform", &Random::uniform)
      .def("exponential", &Random::exponential);
  module.attr("never") = never;
}
