// SPDX-License-Identifier: Apache-2.0
// Several nodes in detail on a simulated network.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cluster/external_ranks.hpp"
#include "cluster/node_network.hpp"
#include "module.hpp"
#include "network_values.hpp"
#include "values.hpp"

using namespace manyscale;

namespace {

cpu::LiveSource& program_of(Component& component) {
  auto* program = dynamic_cast<cpu::LiveSource*>(&component);
  if (program == nullptr) throw std::invalid_argument(component.name() + " is not a running program");
  return *program;
}

memory::Dma& engine_of(Component& component) {
  auto* engine = dynamic_cast<memory::Dma*>(&component);
  if (engine == nullptr) throw std::invalid_argument(component.name() + " is no memory.dma");
  return *engine;
}

}  // namespace

void bind_cluster(nb::module_& module) {
  nb::class_<cluster::NodeNetwork>(module, "NodeNetwork")
      .def(
          "__init__",
          [](cluster::NodeNetwork* self, Simulation& simulation, const nb::dict& description,
             const nb::dict& gateway, const std::vector<Component*>& programs,
             const std::vector<Component*>& engines) {
            std::vector<cpu::LiveSource*> sources;
            for (Component* component : programs) sources.push_back(&program_of(*component));
            std::vector<memory::Dma*> dmas;
            for (Component* component : engines) dmas.push_back(&engine_of(*component));
            new (self)
                cluster::NodeNetwork(simulation, read_network(description),
                                     from_values<cluster::GatewaySpec>(named_values(gateway)), sources, dmas);
          },
          nb::keep_alive<1, 2>(), nb::arg("simulation"), nb::arg("network"), nb::arg("gateway"),
          nb::arg("programs"), nb::arg("engines") = std::vector<Component*>{})
      .def("totals", [](const cluster::NodeNetwork& self) {
        const network::Totals totals = self.network().totals();
        nb::dict out;
        out["messages"] = totals.messages;
        out["bytes"] = totals.bytes;
        out["packets"] = totals.packets;
        return out;
      });
  nb::class_<cluster::ExternalRanks>(module, "ExternalRanks")
      .def(
          "__init__",
          [](cluster::ExternalRanks* self, Component& program, const std::string& path, Component* engine) {
            new (self) cluster::ExternalRanks(program_of(program), path,
                                              engine == nullptr ? nullptr : &engine_of(*engine));
          },
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 4>(), nb::arg("program"), nb::arg("path"),
          nb::arg("engine") = nb::none())
      .def("send", &cluster::ExternalRanks::send)
      .def("all_wait", &cluster::ExternalRanks::all_wait, nb::arg("ended"))
      .def("receive", &cluster::ExternalRanks::receive)
      .def_prop_ro("aborted", &cluster::ExternalRanks::aborted)
      .def_prop_ro("bytes_out", &cluster::ExternalRanks::bytes_out)
      .def_prop_ro("bytes_in", &cluster::ExternalRanks::bytes_in);
}
