// SPDX-License-Identifier: Apache-2.0
// Traces into and logs out of traffic generators, as packed bytes that numpy reads without a copy per record.
#include <nanobind/stl/vector.h>

#include <cstring>

#include "memory/traffic/generator.hpp"
#include "module.hpp"

using namespace manyscale;
using memory::Generator;

namespace {

Generator& generator(Component& component) {
  auto* found = dynamic_cast<Generator*>(&component);
  if (found == nullptr) throw std::invalid_argument(component.name() + " is no memory.generator");
  return *found;
}

}  // namespace

void bind_traffic(nb::module_& module) {
  // One record is 8 bytes of address and 8 of kind (0 load, 1 store, 2 atomic), size in the upper half.
  module.def("set_trace", [](Component& component, nb::bytes records) {
    std::vector<memory::Access> trace(records.size() / 16);
    for (std::size_t i = 0; i < trace.size(); ++i) {
      std::uint64_t fields[2];
      std::memcpy(fields, records.c_str() + i * sizeof(fields), sizeof(fields));
      trace[i].address = fields[0];
      trace[i].kind = static_cast<memory::AccessKind>(fields[1] & 0xff);
      trace[i].size = static_cast<std::uint32_t>(fields[1] >> 32);
    }
    generator(component).set_trace(std::move(trace));
  });
  // Records of time, address, value and kind, 8 bytes each.
  module.def("take_log", [](Component& component) {
    const auto log = generator(component).take_log();
    static_assert(sizeof(memory::PerformedAccess) == 32);
    return nb::bytes(reinterpret_cast<const char*>(log.data()), log.size() * sizeof(memory::PerformedAccess));
  });
}
