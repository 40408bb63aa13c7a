// SPDX-License-Identifier: Apache-2.0
#include "memory/interconnect/mesh.hpp"

#include <bit>

#include "engine/registry.hpp"

namespace manyscale::memory {

namespace {
const Registered<Mesh> registered{"memory.mesh",
                                  "A mesh of routers with XY routing and buffers of limited depth."};
}

Mesh::Mesh(const Spec& spec)
    : Interconnect(spec, false),
      spec_(spec),
      width_(static_cast<std::uint32_t>(spec.width)),
      depth_(static_cast<std::uint32_t>(spec.depth)) {
  declare(statistics_);
}

void Mesh::prepare() {
  const auto routers = static_cast<std::uint32_t>(spec_.width * spec_.height);
  position_nodes(routers);
  inputs_.resize(std::size_t{routers} * inputs);
  outputs_.resize(std::size_t{routers} * outputs);
  for (std::uint32_t router = 0; router < routers; ++router) {
    columns_.push_back(router % width_);
    wire(router);
  }
  credits_.assign(inputs_.size() * depth_, 0);
  wheel_.resize(outputs_.size());
}

// Tells each output of a router to which buffers it sends, and those buffers which output sends to them.
void Mesh::wire(std::uint32_t router) {
  const auto join = [&](std::uint32_t side, std::uint32_t to, Heading heading) {
    Output& output = outputs_[router * outputs + side];
    output.after = to * inputs + 2 * heading;
    for (const Direction direction : {requests, responses})
      inputs_[output.after + direction].before = router * outputs + side;
  };
  if (columns_[router] + 1 < width_) join(east, router + 1, east);
  if (columns_[router] > 0) join(west, router - 1, west);
  if (router + width_ < outputs_.size() / outputs) join(south, router + width_, south);
  if (router >= width_) join(north, router - width_, north);
  for (const Direction direction : {requests, responses}) {
    outputs_[router * outputs + first_entry + direction].after = router * inputs;
    inputs_[router * inputs + direction].before = router * outputs + first_entry + direction;
  }
}

void Mesh::position_nodes(std::uint32_t routers) {
  const std::uint32_t requesters = requester_count();
  const std::uint32_t responders = responder_count();
  const std::uint32_t most = spec_.share_routers ? std::max(requesters, responders) : requesters + responders;
  if (most > routers) {
    throw SimulationError(name() + ": a mesh of " + std::to_string(spec_.width) + " x " +
                          std::to_string(spec_.height) + " routers is too small for " +
                          std::to_string(requesters) + " requesters and " + std::to_string(responders) +
                          " responders" + (spec_.share_routers ? "" : " with a router each"));
  }
  positions_[1] = spec_.responder_positions.empty()
                      ? spread_positions(responders, routers)
                      : read_positions(name(), spec_.responder_positions, "responder", responders, routers);
  std::vector<bool> taken(routers);
  const auto claim = [&](const std::vector<std::uint32_t>& positions) {
    for (const std::uint32_t router : positions) {
      if (taken[router]) {
        throw SimulationError(name() + ": router " + std::to_string(router) + " is the position of two " +
                              (spec_.share_routers ? "nodes of one kind" : "nodes"));
      }
      taken[router] = true;
    }
  };
  claim(positions_[1]);
  if (spec_.share_routers) taken.assign(routers, false);
  if (!spec_.requester_positions.empty()) {
    positions_[0] = read_positions(name(), spec_.requester_positions, "requester", requesters, routers);
  } else {
    for (std::uint32_t router = 0; positions_[0].size() < requesters; ++router) {
      if (!taken[router]) positions_[0].push_back(router);
    }
  }
  claim(positions_[0]);
}

void Mesh::accept(Direction direction, const Message& message, Cycle ready) {
  const Cycle flits = flits_of(message);
  if (flits > depth_) [[unlikely]]
    refuse_length(flits);
  const Packet packet{message,
                      now(),
                      ready,
                      ready,
                      positions_[1 - direction][message.destination],
                      static_cast<std::uint32_t>(flits),
                      0,
                      none};
  std::uint32_t index = unused_;
  if (index == none) {
    index = static_cast<std::uint32_t>(packets_.size());
    packets_.push_back(packet);
  } else {
    unused_ = packets_[index].next;
    packets_[index] = packet;
  }
  push(positions_[direction][message.source] * inputs + first_queue + direction, index, ready);
  clock().wake_at(std::max(ready, wheel_.next(ready - 1)));
}

Cycle Mesh::tick(Cycle cycle) {
  wheel_.turn(cycle, [&](std::uint32_t output) { look(output, cycle); });
  return wheel_.next(cycle);
}

// Gives an output that is free to one of the inputs that want it, or finds out when to look again.
void Mesh::look(std::uint32_t output, Cycle now) {
  Output& out = outputs_[output];
  if (out.wanted == 0) return;
  if (out.free > now) {
    wheel_.wake(output, out.free, now);
    return;
  }
  const std::uint32_t router = output / outputs;
  const std::uint32_t side = output % outputs;
  const bool exit = side == local || side == response_exit;
  Cycle again = never;
  // First the inputs from the turn on, then those before it.
  const std::uint32_t before = (1u << out.turn) - 1;
  for (std::uint32_t part : {out.wanted & ~before, out.wanted & before}) {
    for (; part != 0; part &= part - 1) {
      const auto index = static_cast<std::uint32_t>(std::countr_zero(part));
      Input& input = inputs_[router * inputs + index];
      const Packet& packet = packets_[input.head];
      if (packet.ready_to_leave > now) {
        again = std::min(again, packet.ready_to_leave);
        continue;
      }
      if (!exit) {
        const Cycle credit = credits_at(out.after + index % 2, packet.flits);
        if (credit > now) {
          if (input.stalled == never) input.stalled = now;
          if (credit > never / 2) {
            out.out_of_credit = true;
          } else {
            again = std::min(again, credit);
          }
          continue;
        }
      }
      out.turn = static_cast<std::uint16_t>(index + 1);
      out.free = now + packet.flits;
      move(router, side, index, now);
      if (out.wanted != 0) wheel_.wake(output, out.free, now);
      return;
    }
  }
  if (again != never) wheel_.wake(output, again, now);
}

// The head of an input leaves the router by one of its sides.
void Mesh::move(std::uint32_t router, std::uint32_t side, std::uint32_t index, Cycle now) {
  const std::uint32_t from = router * inputs + index;
  const auto direction = static_cast<Direction>(index % 2);
  Input& input = inputs_[from];
  const std::uint32_t moving = input.head;
  Packet& packet = packets_[moving];
  const Time taken = packet.flits * period();

  outputs_[router * outputs + side].wanted &= static_cast<std::uint16_t>(~(1u << index));
  input.head = packet.next;
  input.left = now + packet.flits;
  if (input.stalled != never) {
    statistics_.credit_stall += (now - input.stalled) * period();
    input.stalled = never;
  }
  if (index < first_queue) return_credits(from, packet.flits, now);
  if (input.head == none) {
    input.tail = none;
  } else {
    set_head(from, now);
  }

  if (side == local || side == response_exit) {
    deliver_packet(direction, packet, now);
    packet.next = unused_;
    unused_ = moving;
    return;
  }
  if (side == east) statistics_.east_busy += taken;
  if (side == west) statistics_.west_busy += taken;
  if (side == south) statistics_.south_busy += taken;
  if (side == north) statistics_.north_busy += taken;
  const std::uint32_t to = outputs_[router * outputs + side].after + direction;
  take_credits(to, packet.flits);
  if (side < headings) ++packet.hops;
  packet.ready_to_leave = now + spec_.link + spec_.router;
  packet.next = none;
  push(to, moving, now);
}

void Mesh::push(std::uint32_t input, std::uint32_t packet, Cycle now) {
  Input& in = inputs_[input];
  if (in.head == none) {
    in.head = in.tail = packet;
    set_head(input, now);
  } else {
    packets_[in.tail].next = packet;
    in.tail = packet;
  }
}

// A message has become the first of its input: it asks for its output.
void Mesh::set_head(std::uint32_t input, Cycle now) {
  Input& in = inputs_[input];
  Packet& packet = packets_[in.head];
  packet.ready_to_leave = std::max(packet.ready_to_leave, in.left);
  const std::uint32_t wanted = route(input, packet);
  Output& out = outputs_[wanted];
  out.wanted |= static_cast<std::uint16_t>(1u << (input % inputs));
  wheel_.wake(wanted, std::max({packet.ready_to_leave, out.free, now}), now);
}

std::uint32_t Mesh::route(std::uint32_t input, const Packet& packet) const {
  const std::uint32_t router = input / inputs;
  const std::uint32_t index = input % inputs;
  const std::uint32_t direction = index % 2;
  std::uint32_t side = 0;
  if (index >= first_queue) {
    side = first_entry + direction;
  } else {
    const std::uint32_t column = columns_[router];
    const std::uint32_t last_column = columns_[packet.to];
    if (column != last_column) {
      side = column < last_column ? east : west;
    } else if (router != packet.to) {
      side = router < packet.to ? south : north;
    } else {
      side = direction == requests ? local : response_exit;
    }
  }
  return router * outputs + side;
}

// The first cycle at which a message can be sent to a buffer so that each flit finds a credit in its turn.
Cycle Mesh::credits_at(std::uint32_t input, std::uint32_t flits) const {
  const Cycle* const credits = credits_.data() + std::size_t{input} * depth_;
  std::uint32_t position = inputs_[input].next;
  Cycle at = 0;
  for (std::uint32_t flit = 0; flit < flits; ++flit) {
    at = std::max(at, credits[position] - flit);
    if (++position == depth_) position = 0;
  }
  return at;
}

void Mesh::take_credits(std::uint32_t input, std::uint32_t flits) {
  Cycle* const credits = credits_.data() + std::size_t{input} * depth_;
  std::uint32_t& position = inputs_[input].next;
  for (std::uint32_t flit = 0; flit < flits; ++flit) {
    credits[position] = never;
    if (++position == depth_) position = 0;
  }
}

// A message leaves a buffer from now on, a flit per cycle.
void Mesh::return_credits(std::uint32_t input, std::uint32_t flits, Cycle now) {
  Cycle* const credits = credits_.data() + std::size_t{input} * depth_;
  std::uint32_t& position = inputs_[input].first;
  for (std::uint32_t flit = 0; flit < flits; ++flit) {
    credits[position] = now + flit + spec_.credit;
    if (++position == depth_) position = 0;
  }
  const std::uint32_t before = inputs_[input].before;
  if (outputs_[before].out_of_credit) {
    outputs_[before].out_of_credit = false;
    wheel_.wake(before, now + spec_.credit, now);
  }
}

void Mesh::deliver_packet(Direction direction, const Packet& packet, Cycle now) {
  const Cycle hops = packet.hops;
  statistics_.hops.record(hops);
  const Cycle tail = spec_.link + packet.flits - 1;
  const Cycle unloaded = (hops + 1) * (spec_.router + spec_.link) + tail;
  deliver(direction, packet.message, packet.arrived, packet.ready, now + tail, unloaded, hops * packet.flits);
}

void Mesh::refuse_length(Cycle flits) const {
  throw SimulationError(name() + ": a message of " + std::to_string(flits) +
                        " flits does not fit into a buffer of " + std::to_string(depth_) +
                        "; a larger depth or larger flits are needed");
}

}  // namespace manyscale::memory
