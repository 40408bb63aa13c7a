// SPDX-License-Identifier: Apache-2.0
// How lanes of a warp wait: at barriers of the CTA, at warp-wide instructions, and until nobody will come.
#include <algorithm>
#include <bit>
#include <limits>

#include "gpu/exec/fault.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/warp.hpp"

namespace manyscale::gpu {

bool Warp::barrier(const Op& op, std::uint32_t pc) {
  // Lanes that the guard keeps away go on alone.
  if (mask != active) {
    Split away = splits_[current_];
    away.mask = active & ~mask;
    away.pc = pc + 1;
    splits_[current_].mask = mask;
    splits_.push_back(away);
  }
  Split& split = splits_[current_];
  split.pc = pc + 1;
  split.state = Split::State::at_barrier;
  const std::size_t here = current_;
  op.handler(*this, op);  // arrives; the last one lets all go on, this one too
  if (splits_[here].state == Split::State::ready) return true;
  return choose_ready();
}

// Runs the handler when all lanes of the member mask are here. Lanes of other splits are waited for. Lanes
// that name different members are different groups.
bool Warp::warp_sync(const Op& op, std::uint32_t pc) {
  const auto* members_of = lanes<Mask>(op.src[3]);
  const auto all_here = [=, this, come = mask](unsigned lane) {
    return (members_of[lane] & live_ & ~come) == 0;
  };
  // WARPSYNC without .EXCLUSIVE only waits: where nobody has to, all stay together, whatever they name. What
  // follows it in SASS leaves lanes out by itself (VOTE is followed by an AND with the mask).
  if (op.flow == Flow::warp_barrier && op.immediate != 0 && ballot(all_here) == mask) {
    const Mask all = active;
    meet(op);
    splits_[current_].mask = all;
    splits_[current_].pc = pc + 1;
    return true;
  }
  const Mask here = mask;
  Mask going = active & ~mask;  // lanes that the guard keeps away
  // In SASS, groups that are complete go on each by itself.
  const bool apart = !code().machine.empty();
  std::vector<Split> waiting;
  std::vector<Split> complete;
  for (Mask left = mask; left != 0;) {
    const Mask named = members_of[std::countr_zero(left)];
    const Mask group = ballot([=](unsigned lane) { return members_of[lane] == named; }) & left;
    left &= ~group;
    if ((named & live_ & ~(apart ? group : here)) == 0) {  // in PTX those who name others have come, too
      mask = group;
      meet(op);
      if (!apart || group == active) {
        going |= group;
        continue;
      }
      complete.push_back(splits_[current_]);
      complete.back().mask = group;
      complete.back().pc = pc + 1;
    } else {
      Split part = splits_[current_];
      part.mask = group;
      part.pc = pc;
      part.state = Split::State::at_warp_sync;
      part.members = named & live_;
      waiting.push_back(part);
    }
  }
  if (going != 0) {
    splits_[current_].mask = going;
    splits_[current_].pc = pc + 1;
  } else {
    drop_current();
  }
  splits_.insert(splits_.end(), complete.begin(), complete.end());
  if (waiting.empty()) return going != 0 || choose_ready();
  splits_.insert(splits_.begin(), waiting.begin(), waiting.end());
  current_ = splits_.size();
  release_complete_syncs();
  return choose_ready();
}

// Executes a warp-wide instruction for the lanes in mask, which are ordered by it.
void Warp::meet(const Op& op) {
  if (worker_->checker != nullptr) worker_->checker->warp_barrier(index_);
  op.handler(*this, op);
  if (worker_->checker != nullptr) worker_->checker->warp_barrier(index_);
}

// Executes the warp-wide instructions for which everybody has come.
void Warp::release_complete_syncs() {
  for (std::size_t i = 0; i < splits_.size(); ++i) {
    const Split& split = splits_[i];
    if (split.state != Split::State::at_warp_sync) continue;
    const Op& op = split.frame->code->ops[split.pc];
    Mask present = 0;
    for (const Split& other : splits_) {
      if (other.state != Split::State::at_warp_sync || ((other.members ^ split.members) & live_) != 0)
        continue;
      const bool same = other.pc == split.pc && other.frame == split.frame;
      const Op& other_op = other.frame->code->ops[other.pc];
      if (same || (op.flow == Flow::warp_barrier && other_op.flow == Flow::warp_barrier))
        present |= other.mask;
    }
    if ((split.members & live_ & ~present) != 0) continue;
    finish_sync(i, present);
    i = std::numeric_limits<std::size_t>::max();  // those that have met may have become one: look again
  }
}

// Executes a warp-wide instruction for the lanes that wait there.
void Warp::finish_sync(std::size_t index, Mask present) {
  const Split first = splits_[index];
  const Op& op = first.frame->code->ops[first.pc];
  const Mask saved_active = active;
  const std::size_t saved = current_;
  select(index);
  Mask here = 0;
  for (const Split& split : splits_)
    if (split.state == Split::State::at_warp_sync && split.pc == first.pc && split.frame == first.frame &&
        ((split.members ^ first.members) & live_) == 0)
      here |= split.mask;
  mask = active = here;
  meet(op);
  for (Split& split : splits_) {
    if (split.state != Split::State::at_warp_sync || ((split.members ^ first.members) & live_) != 0 ||
        (split.mask & ~present) != 0)
      continue;
    const bool same = split.pc == first.pc && split.frame == first.frame;
    const bool barrier =
        op.flow == Flow::warp_barrier && split.frame->code->ops[split.pc].flow == Flow::warp_barrier;
    if (!same && !barrier) continue;
    split.state = Split::State::ready;
    ++split.pc;
  }
  active = saved_active;
  current_ = saved;
  if (!first.frame->code->machine.empty()) unite(first.pc + 1, present);
  if (current_ < splits_.size()) select(current_);
}

void Warp::pass_barrier(unsigned barrier) {
  for (Split& split : splits_) {
    if (split.state != Split::State::at_barrier) continue;
    if (split.members != barrier) continue;
    split.state = Split::State::ready;
    leaves_barrier_ = true;
    const Op& op = split.frame->code->ops[split.pc - 1];
    if (op.flags & kBarrierKeepsResult) {
      const Barrier& passed = cta_->barrier(barrier);
      barrier_result_ = {passed.last_holding,
                         barrier_holds(passed, static_cast<BarrierReduction>(op.flags & kBarrierReduction))};
    }
    if (op.dst != kNoSlot) write_barrier_result(cta_->barrier(barrier), op, split);
  }
}

void Warp::wait_at(unsigned barrier) {
  splits_[current_].members = barrier;
}

bool Warp::release_join() {
  for (std::size_t i = joins_.size(); i-- > 0;) {
    Join& join = joins_[i];
    if (!join.used || join.arrived == 0) continue;
    const Mask going = join.arrived;
    join.expected &= ~going;
    join.arrived = 0;
    std::int32_t parent = join.parent;
    for (; is_gather(parent); parent = joins_[static_cast<std::size_t>(parent)].parent)
      joins_[static_cast<std::size_t>(parent)].expected &= ~going;
    splits_.insert(splits_.begin(), {join.pc, going, parent, Split::State::ready, 0, join.frame});
    ++current_;
    return true;
  }
  return false;
}

// Where all lanes wait for each other and none for another warp, nobody else can end it.
bool Warp::release_own() {
  current_ = splits_.size();
  const bool elsewhere = std::ranges::any_of(
      splits_, [](const Split& split) { return split.state == Split::State::at_barrier; });
  return !splits_.empty() && !elsewhere && release_waiting();
}

bool Warp::release_waiting() {
  current_ = splits_.size();
  if (release_join() || release_convergence()) return true;
  for (std::size_t i = 0; i < splits_.size(); ++i) {
    if (splits_[i].state != Split::State::at_warp_sync) continue;
    const Code& code = *splits_[i].frame->code;
    const OpInfo& info = code.infos[code.ops[splits_[i].pc].info];
    worker_->warn("lanes named in the member mask of the instruction at line " +
                  std::to_string(info.where.line) + " never came; it was executed without them");
    finish_sync(i, splits_[i].mask);
    return true;
  }
  return false;
}

}  // namespace manyscale::gpu
