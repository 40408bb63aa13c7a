// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "memory/interconnect/reserving.hpp"

namespace manyscale::memory {

// Defaults: clock, flit and ports from the GPU of Table 2 of the seeds; the traversal is an assumption.
struct CrossbarSpec : InterconnectSpec {
  std::int64_t input_ports = 2;
  std::int64_t output_ports = 1;
  Cycle traversal = 4;
};

// The crossbar between the SMs and the shared cache of a GPU, one for requests and one for responses: a
// message takes an input port of its source and then an output port of its destination for a cycle per flit
// each, first come first served. Leaves out: limits of the buffers before the output ports, and so back
// pressure; conflicts inside the switch.
class Crossbar final : public ReservingInterconnect<Crossbar> {
 public:
  using Spec = CrossbarSpec;

  explicit Crossbar(const Spec& spec);

 private:
  friend class ReservingInterconnect<Crossbar>;

  void prepare();
  Passage carry(Direction direction, std::uint32_t source, std::uint32_t destination, Cycle flits, Cycle now);

  const Spec spec_;
  const std::size_t output_ports_;
  std::array<std::vector<Cycle>, 2> outputs_;  // per output port: from when on it is free
};

}  // namespace manyscale::memory

namespace manyscale {

template <>
struct describe<memory::CrossbarSpec> {
  using Spec = memory::CrossbarSpec;
  static constexpr auto fields = std::tuple_cat(
      memory::interconnect_fields<Spec>("what a port takes in a cycle"),
      std::tuple{Field<Spec, std::int64_t>{"input_ports", &Spec::input_ports, Unit::count,
                                           "messages of one node that can enter at the same time", 1, 64},
                 Field<Spec, std::int64_t>{"output_ports", &Spec::output_ports, Unit::count,
                                           "messages for one node that can leave at the same time", 1, 64},
                 Field<Spec, Cycle>{"traversal", &Spec::traversal, Unit::cycles,
                                    "from the input port to the output port, for the first flit", 0, 1e6}});
};

}  // namespace manyscale
