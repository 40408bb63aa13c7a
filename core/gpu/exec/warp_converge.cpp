// SPDX-License-Identifier: Apache-2.0
// How lanes of SASS part and meet. Branches only part them. They meet where the code says so: at a
// convergence barrier, which each lane knows by a mask of the lanes that are to come (BSSY sets it, BSYNC
// waits for them), and behind warp-wide waits.
#include <algorithm>
#include <bit>

#include "gpu/exec/address_space.hpp"
#include "gpu/exec/fault.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/sass/builtins.hpp"
#include "gpu/exec/sass/flow.hpp"
#include "gpu/exec/warp.hpp"

namespace manyscale::gpu {

bool Warp::branch_if(const Op& op, std::uint32_t pc) {
  const Mask condition = predicate(op.src[0]);
  mask &= op.flags & kNegatedCondition ? ~condition : condition;
  if (mask != active) return branch(op, pc);
  splits_[current_].pc = op.aux;
  return true;
}

bool Warp::exit_if(const Op& op, std::uint32_t pc) {
  if (op.src[0] != kNoSlot) {
    const Mask condition = predicate(op.src[0]);
    mask &= op.flags & kNegatedCondition ? ~condition : condition;
  }
  return leave(mask, pc, true);
}

bool Warp::branch_if_divergent(const Op& op, std::uint32_t pc) {
  // The lanes that the guard lets pass are together if they are all that are meant; then or else all branch.
  const Mask meant = lanes<Mask>(op.src[0])[std::countr_zero(active)] & live_;
  const bool apart = mask != meant;
  mask = apart == ((op.flags & kNegatedCondition) != 0) ? 0 : active;
  if (mask != active) return branch(op, pc);
  splits_[current_].pc = op.aux;
  return true;
}

// The operation at an address that a lane jumps to.
std::uint32_t Warp::jump_target(const Op& op, std::uint64_t address, unsigned lane) const {
  if (op.flags & kAbsoluteAddress) {
    for (const CodeSection& section : code().sections) {
      const std::uint64_t inside = address - kCodeWindow - section.address;
      if (inside < std::uint64_t{section.count} * sass::Instruction::kBytes &&
          inside % sass::Instruction::kBytes == 0)
        return section.first + static_cast<std::uint32_t>(inside / sass::Instruction::kBytes);
    }
  } else if (address / sass::Instruction::kBytes < code().ops.size() &&
             address % sass::Instruction::kBytes == 0) {
    return static_cast<std::uint32_t>(address / sass::Instruction::kBytes);
  }
  throw Fault("it jumps to an address where there is no code", lane);
}

bool Warp::jump(const Op& op, std::uint32_t pc) {
  if (mask == 0) {
    splits_[current_].pc = pc + 1;
    return true;
  }
  const auto* low = lanes<std::uint32_t>(op.src[0]);
  const auto* high = lanes<std::uint32_t>(op.src[1]);
  const Mask going = mask;
  Mask calling = 0;
  std::array<std::uint32_t, kLanes> targets{};
  for_each_active(going, [&](unsigned lane) {
    const std::uint64_t address =
        (low[lane] | std::uint64_t{high[lane]} << 32) + static_cast<std::uint64_t>(op.immediate);
    if (op.flags & kAbsoluteAddress && is_builtin(address)) {
      calling |= Mask{1} << lane;
      targets[lane] = pc + 1;
    } else {
      targets[lane] = jump_target(op, address, lane);
    }
  });
  // Functions of the system are carried out on the spot.
  for (Mask left = calling; left != 0;) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::uint64_t address = low[lane] | std::uint64_t{high[lane]} << 32;
    mask = ballot([&](unsigned i) { return low[i] == low[lane] && high[i] == high[lane]; }) & left;
    left &= ~mask;
    call_builtin(*this, op, address);
  }
  mask = going;
  return part(targets, pc + 1, active & ~going);
}

// The lanes of the current split go where `targets` says, but for those that stay.
bool Warp::part(const std::array<std::uint32_t, kLanes>& targets, std::uint32_t next, Mask staying) {
  const Split base = splits_[current_];
  Mask left = base.mask & ~staying;
  const auto group_of = [&](std::uint32_t target) {
    return ballot([&](unsigned lane) { return targets[lane] == target; }) & left;
  };
  const std::uint32_t first = targets[static_cast<unsigned>(std::countr_zero(left))];
  if (group_of(first) == base.mask) {
    splits_[current_].pc = first;
    return true;
  }
  drop_current();
  const auto add = [&](Mask lanes, std::uint32_t to) {
    Split split = base;
    split.mask = lanes;
    split.pc = to;
    splits_.push_back(split);
  };
  while (left != 0) {
    const std::uint32_t to = targets[static_cast<unsigned>(std::countr_zero(left))];
    const Mask together = group_of(to);
    add(together, to);
    left &= ~together;
  }
  if (staying != 0) add(staying, next);
  select(splits_.size() - 1);
  return true;
}

// Whom the lanes of a split wait for at a convergence barrier: those that each of them has in its mask.
Mask Warp::barrier_members(const Split& split) const {
  const Op& op = split.frame->code->ops[split.pc];
  const auto* members = reinterpret_cast<const Mask*>(split.frame->registers + (op.src[3] & ~Slot{3}));
  Mask all = 0;
  for_each_active(split.mask, [&](unsigned lane) { all |= members[lane]; });
  return all & live_;
}

bool Warp::converge(const Op& op, std::uint32_t pc) {
  // Lanes that the guard keeps away go on alone.
  if (mask != active) {
    Split away = splits_[current_];
    away.mask = active & ~mask;
    away.pc = pc + 1;
    splits_[current_].mask = mask;
    splits_.insert(splits_.begin() + static_cast<std::ptrdiff_t>(current_), away);
    ++current_;
  }
  Split& split = splits_[current_];
  if ((lanes<Mask>(op.src[3])[std::countr_zero(mask)] & live_) == split.mask) {
    split.pc = pc + 1;
    return true;
  }
  split.state = Split::State::at_convergence;
  yields_ = 0;
  release_converged();
  return choose_ready();
}

// Lets those go on together who wait at a convergence barrier and for whom everybody has come.
bool Warp::release_converged() {
  bool released = false;
  for (std::size_t i = 0; i < splits_.size(); ++i) {
    if (splits_[i].state != Split::State::at_convergence) continue;
    const std::uint32_t pc = splits_[i].pc;
    const auto waits_here = [&](const Split& split) {
      return split.state == Split::State::at_convergence && split.pc == pc;
    };
    Mask together = splits_[i].mask;
    Mask needed = 0;
    for (Mask before = 0; before != together;) {
      before = together;
      for (const Split& split : splits_)
        if (waits_here(split) && (split.mask & (together | needed)) != 0) {
          together |= split.mask;
          needed |= barrier_members(split);
        }
    }
    if ((needed & ~together) != 0) continue;
    splits_[i].mask = together;
    splits_[i].pc = pc + 1;
    splits_[i].state = Split::State::ready;
    for (std::size_t k = splits_.size(); k-- > 0;) {
      if (k == i || !waits_here(splits_[k]) || (splits_[k].mask & together) == 0) continue;
      splits_.erase(splits_.begin() + static_cast<std::ptrdiff_t>(k));
      if (k < current_) --current_;
      if (k < i) --i;
    }
    released = true;
  }
  return released;
}

// Lets lanes go on from a convergence barrier without those they wait for, which no longer wait for them.
bool Warp::release_convergence() {
  for (Split& split : splits_) {
    if (split.state != Split::State::at_convergence) continue;
    const Op& op = split.frame->code->ops[split.pc];
    auto* members = reinterpret_cast<Mask*>(split.frame->registers + (op.src[3] & ~Slot{3}));
    for_each_active(barrier_members(split) & ~split.mask,
                    [&](unsigned lane) { members[lane] &= ~split.mask; });
    for_each_active(split.mask, [&](unsigned lane) { members[lane] &= split.mask; });
    split.state = Split::State::ready;
    ++split.pc;
    return true;
  }
  return false;
}

// Of these lanes, those that are ready with one program counter become one split.
void Warp::unite(std::uint32_t pc, Mask lanes_meant) {
  const auto is_meant = [&](const Split& split) {
    return split.state == Split::State::ready && split.pc == pc && (split.mask & ~lanes_meant) == 0;
  };
  std::size_t first = splits_.size();
  for (std::size_t i = 0; i < splits_.size(); ++i) {
    if (!is_meant(splits_[i])) continue;
    if (first == splits_.size()) {
      first = i;
      continue;
    }
    splits_[first].mask |= splits_[i].mask;
    splits_.erase(splits_.begin() + static_cast<std::ptrdiff_t>(i));
    if (i == current_)
      current_ = first;
    else if (i < current_)
      --current_;
    --i;
  }
}

}  // namespace manyscale::gpu
