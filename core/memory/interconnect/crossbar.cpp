// SPDX-License-Identifier: Apache-2.0
#include "memory/interconnect/crossbar.hpp"

#include "engine/registry.hpp"

namespace manyscale::memory {

namespace {
const Registered<Crossbar> registered{"memory.crossbar",
                                      "A crossbar: each message takes an input and an output port."};
}

Crossbar::Crossbar(const Spec& spec)
    : ReservingInterconnect(spec, static_cast<std::uint32_t>(spec.input_ports), spec.output_ports > 1),
      spec_(spec),
      output_ports_(static_cast<std::size_t>(spec.output_ports)) {}

void Crossbar::prepare() {
  outputs_[requests].assign(responder_count() * output_ports_, 0);
  outputs_[responses].assign(requester_count() * output_ports_, 0);
}

Passage Crossbar::carry(Direction direction, std::uint32_t, std::uint32_t destination, Cycle flits,
                        Cycle now) {
  // Messages come here in the order in which they reach their output ports, so no gap is left between two.
  Cycle* const ports = outputs_[direction].data() + destination * output_ports_;
  Cycle& free = *std::min_element(ports, ports + output_ports_);
  free = std::max(free, now + spec_.traversal) + flits;
  return {now + flits, free, spec_.traversal + flits, flits};
}

}  // namespace manyscale::memory
