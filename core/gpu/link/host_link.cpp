// SPDX-License-Identifier: Apache-2.0
#include "gpu/link/host_link.hpp"

#include <algorithm>

#include "engine/registry.hpp"

namespace manyscale::gpu {

namespace {

const Registered<HostLink> registered{"gpu.host_link",
                                      "The link between host and GPU: pages cross it one after the other."};

// Rounded up. In two steps, since the product of bytes and a second may be larger than 64 bits.
Time time_of(std::uint64_t bytes, std::int64_t bandwidth) {
  const auto rate = static_cast<std::uint64_t>(bandwidth);
  const auto whole = static_cast<std::uint64_t>(second) / rate;
  const auto rest = static_cast<std::uint64_t>(second) % rate;
  return static_cast<Time>(bytes * whole + (bytes * rest + rate - 1) / rate);
}

}  // namespace

HostLink::HostLink(const Spec& spec) : spec_(spec) {
  declare(statistics_);
  engines_.on_receive<&HostLink::move>();
}

void HostLink::move(const PageMove& page, std::uint32_t lane) {
  const Time taken = page.duration != 0 ? page.duration : time_of(page.bytes, spec_.bandwidth);
  const Time latency = page.duration != 0 ? 0 : spec_.data_latency;
  Direction& direction = directions_[page.to_host];
  ++(page.to_host ? statistics_.pages_to_host : statistics_.pages_to_device);
  (page.to_host ? statistics_.bytes_to_host : statistics_.bytes_to_device) += page.bytes;
  (page.to_host ? statistics_.busy_to_host : statistics_.busy_to_device) += taken;
  Time& free = page.between ? direction.free_between : direction.free;
  free = std::max(free, now()) + taken;
  // The wires are the same: what passes between others delays those that come next.
  if (page.between) direction.free = std::max(direction.free + taken, free);
  engines_.send({page.page}, free + latency - now(), lane);
}

}  // namespace manyscale::gpu
