// SPDX-License-Identifier: Apache-2.0
// How lanes of a warp part and meet: branches, calls, returns and ends.
#include <algorithm>
#include <bit>
#include <cstring>

#include "gpu/exec/address_space.hpp"
#include "gpu/exec/fault.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/warp.hpp"

namespace manyscale::gpu {

void Warp::drop_current() {
  splits_.erase(splits_.begin() + static_cast<std::ptrdiff_t>(current_));
}

std::int32_t Warp::new_join(const Join& join) {
  for (std::size_t i = 0; i < joins_.size(); ++i) {
    if (!joins_[i].used) {
      joins_[i] = join;
      joins_[i].used = true;
      return static_cast<std::int32_t>(i);
    }
  }
  joins_.push_back(join);
  joins_.back().used = true;
  return static_cast<std::int32_t>(joins_.size() - 1);
}

bool Warp::branch(const Op& op, std::uint32_t pc) {
  if (mask == 0) {
    splits_[current_].pc = pc + 1;
    return true;
  }
  return diverge(mask, op.aux, pc + 1,
                 op.immediate < 0 ? ptx::kNone : static_cast<std::uint32_t>(op.immediate));
}

// The join at which lanes of the current split that go separate ways will meet.
std::int32_t Warp::join_at(std::uint32_t reconvergence) {
  const Split& split = splits_[current_];
  if (reconvergence == ptx::kNone) return split.join;
  if (split.join >= 0) {
    const Join& join = joins_[static_cast<std::size_t>(split.join)];
    if (join.pc == reconvergence && join.frame == split.frame && join.callee == nullptr) return split.join;
  }
  return new_join({reconvergence, split.mask, 0, split.join, split.frame, nullptr, nullptr, true});
}

bool Warp::diverge(Mask taken, std::uint32_t target, std::uint32_t next, std::uint32_t reconvergence) {
  const std::int32_t join = join_at(reconvergence);
  Split& split = splits_[current_];
  // The lanes that stay in a loop go on; the others wait for them at the reconvergence point.
  const bool taken_first = target < next;
  Split other = split;
  split.join = other.join = join;
  split.mask = taken_first ? taken : split.mask & ~taken;
  other.mask &= ~split.mask;
  split.pc = taken_first ? target : next;
  other.pc = taken_first ? next : target;
  splits_.push_back(other);
  return true;
}

bool Warp::branch_table(const Op& op, std::uint32_t pc) {
  const auto& targets = code().branch_tables[op.aux];
  const auto* index = lanes<std::uint32_t>(op.src[0]);
  if (mask == 0) {
    splits_[current_].pc = pc + 1;
    return true;
  }
  const Mask going = mask;
  for_each_active(going, [&](unsigned lane) {
    if (index[lane] >= targets.size())
      throw Fault("brx.idx: index " + std::to_string(index[lane]) + " is outside the table of " +
                      std::to_string(targets.size()) + " targets",
                  lane);
  });
  const std::uint32_t first = index[std::countr_zero(going)];
  const Mask together = ballot([&](unsigned lane) { return index[lane] == first; }) & going;
  if (together == splits_[current_].mask) {
    splits_[current_].pc = targets[first];
    return true;
  }
  const std::int32_t join = join_at(op.immediate < 0 ? ptx::kNone : static_cast<std::uint32_t>(op.immediate));
  Split base = splits_[current_];
  base.join = join;
  const Mask staying = base.mask & ~going;
  drop_current();
  for (Mask left = going; left != 0;) {
    const std::uint32_t to = index[std::countr_zero(left)];
    Split part = base;
    part.mask = ballot([&](unsigned lane) { return index[lane] == to; }) & left;
    part.pc = targets[to];
    left &= ~part.mask;
    splits_.push_back(part);
  }
  if (staying != 0) {
    Split part = base;
    part.mask = staying;
    part.pc = pc + 1;
    splits_.push_back(part);
  }
  select(splits_.size() - 1);
  return true;
}

void Warp::copy_parameters(const std::vector<ParameterLocation>& from, std::uint32_t from_base,
                           const std::vector<ParameterLocation>& to, std::uint32_t to_base, Mask lanes) {
  for (std::size_t i = 0; i < from.size() && i < to.size(); ++i) {
    const std::size_t bytes = std::min(from[i].bytes, to[i].bytes);
    for_each_active(lanes, [&](unsigned lane) {
      std::memcpy(local(lane) + to_base + to[i].offset, local(lane) + from_base + from[i].offset, bytes);
    });
  }
}

void Warp::copy_registers(const std::vector<Slot>& from, Frame* from_frame, const std::vector<Slot>& to,
                          Frame* to_frame, const std::vector<std::uint8_t>& bytes, Mask lanes_copied) {
  auto base = [&](Slot slot, Frame* frame) {
    return ((slot & 3) == static_cast<Slot>(Base::frame) ? frame->registers : bases_[slot & 3]) +
           (slot & ~Slot{3});
  };
  for (std::size_t i = 0; i < from.size() && i < to.size(); ++i) {
    std::byte* source = base(from[i], from_frame);
    std::byte* target = base(to[i], to_frame);
    if (bytes[i] == 0) {
      auto& value = *reinterpret_cast<Mask*>(target);
      value = (value & ~lanes_copied) | (*reinterpret_cast<const Mask*>(source) & lanes_copied);
      continue;
    }
    for_each_active(lanes_copied, [&](unsigned lane) {
      std::memcpy(target + std::size_t{bytes[i]} * lane, source + std::size_t{bytes[i]} * lane, bytes[i]);
    });
  }
}

bool Warp::call(const Op& op, std::uint32_t pc) {
  if (mask == 0) {
    splits_[current_].pc = pc + 1;
    return true;
  }
  const CallSite& site = code().calls[op.aux];
  const Split caller = splits_[current_];
  const Mask staying = caller.mask & ~mask;
  // Lanes that call different functions, or none, meet behind the call.
  std::int32_t gather = -1;
  Mask left = mask;
  drop_current();
  const auto* address = op.flow == Flow::call_indirect ? lanes<std::uint64_t>(op.src[0]) : nullptr;
  const Program& program = *launch().program;
  while (left != 0) {
    std::uint32_t callee = site.callee;
    Mask together = left;
    if (address != nullptr) {
      const auto lane = static_cast<unsigned>(std::countr_zero(left));
      const std::uint64_t target = address[lane];
      callee = program.code_of((target - kCodeWindow) / kFunctionStride);
      if (!in_window(target, kCodeWindow) || target % kFunctionStride != 0 || callee == ptx::kNone ||
          program.codes[callee].ops.empty())
        throw Fault("call through a pointer that is not the address of a device function", lane);
      together = ballot([&](unsigned i) { return address[i] == target; }) & left;
    }
    const Code& code = program.codes[callee];
    if (gather < 0 && together != caller.mask)
      gather = new_join({pc + 1, caller.mask, staying, caller.join, caller.frame, nullptr, &site, true});
    Frame* frame = new_frame(code, caller.frame);
    copy_parameters(site.arguments, caller.frame->local_base, code.parameters, frame->local_base, together);
    copy_registers(site.register_arguments, caller.frame, code.register_parameters, frame,
                   code.register_parameter_bytes, together);
    const std::int32_t parent = gather >= 0 ? gather : caller.join;
    const std::int32_t join = new_join({pc + 1, together, 0, parent, caller.frame, frame, &site, true});
    splits_.push_back({0, together, join, Split::State::ready, 0, frame});
    left &= ~together;
  }
  select(splits_.size() - 1);
  return true;
}

// If all have come, they go on together, one level further out.
void Warp::complete(std::int32_t id) {
  Join& join = joins_[static_cast<std::size_t>(id)];
  if (join.arrived != join.expected) return;
  join.used = false;
  if (join.callee != nullptr) free_frame(join.callee);
  if (join.arrived == 0) return;
  if (is_gather(join.parent)) {
    joins_[static_cast<std::size_t>(join.parent)].arrived |= join.arrived;
    complete(join.parent);
  } else {
    splits_.push_back({join.pc, join.arrived, join.parent, Split::State::ready, 0, join.frame});
  }
}

// Whether a join is where lanes meet that called different functions.
bool Warp::is_gather(std::int32_t id) const {
  if (id < 0) return false;
  const Join& join = joins_[static_cast<std::size_t>(id)];
  return join.call != nullptr && join.callee == nullptr;
}

// Lanes leave a function, or the kernel. Those that wait for them further in wait no longer.
bool Warp::leave(Mask lanes_leaving, std::uint32_t pc, bool exits) {
  if (lanes_leaving == 0) {
    splits_[current_].pc = pc + 1;
    return true;
  }
  const Split split = splits_[current_];
  if (lanes_leaving == split.mask) {
    drop_current();
  } else {
    splits_[current_].mask &= ~lanes_leaving;
    splits_[current_].pc = pc + 1;
  }
  bool returned = false;
  for (std::int32_t id = split.join; id >= 0;) {
    Join& join = joins_[static_cast<std::size_t>(id)];
    const std::int32_t parent = join.parent;
    if (!exits && join.callee != nullptr) {
      const Code& callee = *join.callee->code;
      copy_parameters(callee.results, join.callee->local_base, join.call->results, join.frame->local_base,
                      lanes_leaving);
      copy_registers(callee.register_results, join.callee, join.call->register_results, join.frame,
                     callee.register_result_bytes, lanes_leaving);
      join.arrived |= lanes_leaving;
      complete(id);
      returned = true;
      break;
    }
    join.expected &= ~lanes_leaving;
    complete(id);
    id = parent;
  }
  if (!returned) {
    live_ &= ~lanes_leaving;
    cta_->exited();
    release_complete_syncs();
    release_converged();
  }
  // Those that stay, if any, are still somewhere; go on with whatever is ready.
  return choose_ready();
}

bool Warp::arrive(std::uint32_t pc) {
  for (;;) {
    Split& split = splits_[current_];
    if (split.join < 0) break;
    Join& join = joins_[static_cast<std::size_t>(split.join)];
    if (join.pc != pc || join.frame != split.frame) break;
    join.arrived |= split.mask;
    yields_ = 0;
    if (join.arrived != join.expected) {
      drop_current();
      return choose_ready();
    }
    split.mask = join.arrived;
    split.join = join.parent;
    join.used = false;
  }
  splits_[current_].pc = pc + 1;
  return true;
}

}  // namespace manyscale::gpu
