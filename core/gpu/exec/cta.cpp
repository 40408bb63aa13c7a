// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "gpu/exec/access_check.hpp"
#include "gpu/exec/fault.hpp"
#include "gpu/exec/launch.hpp"

namespace manyscale::gpu {

void Cta::start(const Launch& launch, Worker& worker, std::uint64_t index) {
  launch_ = &launch;
  worker_ = &worker;
  index_ = index;
  position_ = {static_cast<std::uint32_t>(index % launch.grid[0]),
               static_cast<std::uint32_t>(index / launch.grid[0] % launch.grid[1]),
               static_cast<std::uint32_t>(index / launch.grid[0] / launch.grid[1])};
  shared_bytes_ = launch.program->reserved_shared_bytes + launch.shared_bytes();
  shared_.assign(shared_bytes_, std::byte{0});
  const unsigned warps = launch.warps_per_cta();
  while (warps_.size() < warps) warps_.push_back(std::make_unique<Warp>());
  warps_.resize(warps);
  finished_.assign(warps, 0);
  for (Barrier& barrier : barriers_) barrier = Barrier{};
  checker_ = launch.check ? std::make_unique<Checker>(launch.check, shared_bytes_, launch.threads_per_cta())
                          : nullptr;
  for (unsigned i = 0; i < warps; ++i) warps_[i]->start(*this, worker, i);
}

Cta::State Cta::run() {
  worker_->checker = checker_.get();
  for (;;) {
    bool unfinished = false;
    bool progress = false;
    bool yielded = false;
    released_ = false;
    for (std::size_t i = 0; i < warps_.size(); ++i) {
      if (finished_[i]) continue;
      running_ = warps_[i].get();
      const Outcome outcome = warps_[i]->run();
      if (outcome == Outcome::finished) {
        finished_[i] = 1;
        progress = true;
      } else {
        unfinished = true;
        progress |= outcome == Outcome::paused;
        yielded |= outcome == Outcome::yielded;
      }
    }
    if (!unfinished) return State::finished;
    if (progress || released_) {
      launch_->check_end(worker_->counts);  // warps may meet at a barrier for ever
      continue;
    }
    if (yielded) return State::waiting;
    if (!std::ranges::any_of(warps_, [](auto& warp) { return warp->release_waiting(); })) throw Deadlock();
  }
}

bool Cta::arrive(Warp& warp, unsigned index, Mask lanes, std::uint32_t expected) {
  Barrier& barrier = barriers_[index];
  barrier.arrived.resize(warps_.size(), 0);
  const Mask before = barrier.arrived[warp.index()];
  barrier.arrived[warp.index()] |= lanes;
  // A warp that arrives counts as a whole, once.
  if (before == 0) barrier.arrived_threads += kLanes;
  barrier.expected = expected;
  return complete_if_full(index);
}

bool Cta::complete_if_full(unsigned index) {
  Barrier& barrier = barriers_[index];
  if (barrier.arrived_threads == 0) return false;
  for (const auto& warp : warps_) {
    const Mask arrived = barrier.arrived[warp->index()];
    const bool takes_part = barrier.expected == 0 || arrived != 0;
    if (takes_part && (warp->live() & ~arrived) != 0) return false;
  }
  if (barrier.expected != 0 && barrier.arrived_threads < barrier.expected) return false;
  barrier.last_holding = barrier.holding;
  barrier.last_asked = barrier.asked;
  barrier.holding = barrier.asked = barrier.arrived_threads = 0;
  std::ranges::fill(barrier.arrived, 0);
  if (checker_) {
    check_barrier(*this, *worker_, index);
    checker_->barrier();
  }
  for (const auto& warp : warps_) warp->pass_barrier(index);
  released_ = true;
  return true;
}

void Cta::exited() {
  for (unsigned i = 0; i < kBarriers; ++i) complete_if_full(i);
}

}  // namespace manyscale::gpu
