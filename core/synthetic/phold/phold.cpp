// SPDX-License-Identifier: Apache-2.0
#include "synthetic/phold/phold.hpp"

#include <algorithm>

#include "engine/registry.hpp"

namespace manyscale::synthetic {

namespace {
const Registered<Phold> registered{
    "synthetic.phold", "Jobs that wander between components at random: the usual load for an event engine."};
}

Phold::Phold(const Spec& spec) : spec_(spec) {
  declare(statistics_);
  peers_.on_receive<&Phold::receive>();
  own_.on_expire<&Phold::come_back>();
}

void Phold::start() {
  lanes_per_draw_ = static_cast<double>(peers_.width()) / spec_.remote;
  for (std::int64_t job = 0; job < spec_.jobs; ++job) pass_on(Job{});
}

void Phold::receive(const Job& job, std::uint32_t) {
  ++statistics_.received;
  statistics_.arrivals.add(now(), 1);
  show_level("received", static_cast<double>(statistics_.received.value()));
  pass_on(Job{job.hops + 1});
}

void Phold::come_back(const Job& job) {
  receive(job, 0);
}

void Phold::pass_on(const Job& job) {
  const auto delay = static_cast<Time>(random().exponential() * static_cast<double>(spec_.mean_delay));
  // One draw says both whether the job goes to a peer and to which.
  const double draw = random().uniform();
  if (draw <= spec_.remote) {
    peers_.send(job, delay, std::min(static_cast<std::uint32_t>(draw * lanes_per_draw_), peers_.width() - 1));
  } else {
    own_.after(delay, job);
  }
}

}  // namespace manyscale::synthetic
