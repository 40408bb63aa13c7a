// SPDX-License-Identifier: Apache-2.0
#include "memory/interconnect/sockets.hpp"

#include <bit>
#include <cmath>

#include "engine/registry.hpp"

namespace manyscale::memory {

namespace {

const Registered<Sockets> registered{
    "memory.sockets", "The networks of several sockets, joined by links; allocates pages to sockets."};

bool is_first_touch(const std::string& placement) {
  if (placement == "first_touch") return true;
  if (placement == "interleave") return false;
  throw std::invalid_argument("placement: expected 'first_touch' or 'interleave', not '" + placement + "'");
}

}  // namespace

Sockets::Sockets(const Spec& spec)
    : ReservingInterconnect(spec, 1, true),
      spec_(spec),
      sockets_(static_cast<std::uint32_t>(spec.sockets)),
      first_touch_(is_first_touch(spec.placement)),
      page_shift_(std::countr_zero(static_cast<std::uint64_t>(spec.page_size))),
      pages_(1024) {
  if (!std::has_single_bit(static_cast<std::uint64_t>(spec.page_size)))
    throw std::invalid_argument("page_size: must be a power of two, not " + std::to_string(spec.page_size));
  declare(statistics_);
}

void Sockets::prepare() {
  const std::array<std::uint32_t, 2> nodes{requester_count(), responder_count()};
  for (const std::uint32_t side : {0u, 1u}) {
    if (nodes[side] % sockets_ != 0) {
      throw SimulationError(name() + ": " + std::to_string(nodes[side]) +
                            (side == 0 ? " requesters" : " responders") + " cannot be divided among " +
                            std::to_string(sockets_) + " sockets, as many to each");
    }
    per_socket_[side] = nodes[side] / sockets_;
    outputs_[side].resize(nodes[1 - side]);
    links_[side].resize(std::size_t{sockets_} * sockets_);
  }
  crossing_latency_ = (spec_.crossing_latency + period() - 1) / period();
  link_cycles_per_flit_ = static_cast<double>(spec_.flit) * static_cast<double>(spec_.clock) /
                          static_cast<double>(spec_.crossing_bandwidth);
}

// Sends a request to the socket that has its page.
void Sockets::readdress(Message& message) {
  const std::uint64_t page = message.address >> page_shift_;
  auto socket = static_cast<std::uint32_t>(page % sockets_);
  if (first_touch_) {
    if (const std::uint32_t* found = pages_.find(page)) {
      socket = *found;
    } else {
      socket = socket_of(requests, message.source);
      pages_[page] = socket;
      ++statistics_.pages;
    }
  }
  const std::uint32_t each = per_socket_[responses];
  message.destination = static_cast<std::uint16_t>(socket * each + message.destination % each);
}

Passage Sockets::carry(Direction direction, std::uint32_t source, std::uint32_t destination, Cycle flits,
                       Cycle now) {
  const std::uint32_t from = socket_of(direction, source);
  const std::uint32_t to = socket_of(direction == requests ? responses : requests, destination);
  Cycle arrives = now + spec_.traversal;
  Cycle unloaded = spec_.traversal + flits;
  Cycle busy = flits;
  if (from != to) {
    const auto taken =
        std::max<Cycle>(1, static_cast<Cycle>(std::ceil(static_cast<double>(flits) * link_cycles_per_flit_)));
    const Cycle start = links_[direction][from * sockets_ + to].reserve(arrives, taken, now);
    ++statistics_.remote;
    statistics_.link_busy += taken * period();
    statistics_.link_queueing.record((start - arrives) * period());
    // The last flit leaves the link no sooner than the link's width allows.
    const Cycle more = crossing_latency_ + spec_.traversal + std::max<Cycle>(0, taken - flits);
    arrives = start + more;
    unloaded += more;
    busy += taken;
  }
  const Cycle start = outputs_[direction][destination].reserve(arrives, flits, now);
  return {now + flits, start + flits, unloaded, busy};
}

}  // namespace manyscale::memory
