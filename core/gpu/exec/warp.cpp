// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/warp.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "gpu/exec/address_space.hpp"
#include "gpu/exec/fault.hpp"
#include "gpu/exec/lanes.hpp"
#include "gpu/exec/launch.hpp"

namespace manyscale::gpu {

namespace {

// Loops around synchronising instructions after which a warp lets others run.
constexpr std::uint32_t kSpinsBeforeYield = 16;
// Times that a warp lets others run before it lets its own waiting lanes go on.
constexpr std::uint32_t kYieldsBeforeRelease = 4;
// Instructions after which a warp lets others run in any case.
constexpr std::uint64_t kTurn = 1 << 20;
// Local memory of a thread, for its frames.
constexpr std::size_t kMaximumLocal = std::size_t{512} << 10;

template <class T>
void fill(std::byte* area, Special special, T value) {
  auto* lanes = reinterpret_cast<T*>(area + static_cast<std::size_t>(special) * kSpecialStride);
  std::fill_n(lanes, kLanes, value);
}

}  // namespace

void Warp::start(Cta& cta, Worker& worker, unsigned index) {
  cta_ = &cta;
  worker_ = &worker;
  index_ = index;
  const Launch& launch = *worker.launch;
  const Program& program = *launch.program;

  const unsigned threads = launch.threads_per_cta();
  const unsigned first = index * kLanes;
  live_ = threads - first >= kLanes ? kAllLanes : (Mask{1} << (threads - first)) - 1;
  carry = 0;
  synchronised_ = false;
  spins_ = 0;
  yields_ = 0;

  std::byte* area = specials_.data();
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned thread = first + lane;
    auto set = [&](Special special, std::uint32_t value) {
      reinterpret_cast<std::uint32_t*>(area + static_cast<std::size_t>(special) * kSpecialStride)[lane] =
          value;
    };
    set(Special::tid_x, thread % launch.block[0]);
    set(Special::tid_y, thread / launch.block[0] % launch.block[1]);
    set(Special::tid_z, thread / (launch.block[0] * launch.block[1]));
    set(Special::laneid, lane);
    set(Special::lanemask_eq, 1U << lane);
    set(Special::lanemask_lt, (1U << lane) - 1);
    set(Special::lanemask_le, (2U << lane) - 1);
    set(Special::lanemask_ge, ~((1U << lane) - 1));
    set(Special::lanemask_gt, ~((2U << lane) - 1));
  }
  for (unsigned axis = 0; axis < 3; ++axis) {
    auto along = [axis](Special x) { return static_cast<Special>(static_cast<unsigned>(x) + axis); };
    fill(area, along(Special::ntid_x), launch.block[axis]);
    fill(area, along(Special::ctaid_x), cta.position()[axis]);
    fill(area, along(Special::nctaid_x), launch.grid[axis]);
  }
  fill<std::uint32_t>(area, Special::warpid, index);
  fill<std::uint32_t>(area, Special::nwarpid, launch.warps_per_cta());
  fill<std::uint32_t>(area, Special::smid, 0);
  fill<std::uint32_t>(area, Special::nsmid, 1);
  fill<std::uint64_t>(area, Special::gridid, launch.sequence);
  fill(area, Special::total_smem_size, static_cast<std::uint32_t>(launch.shared_bytes()));
  fill(area, Special::dynamic_smem_size, static_cast<std::uint32_t>(launch.dynamic_shared_bytes));
  fill<std::uint32_t>(area, Special::zero, 0);
  fill<std::uint32_t>(area, Special::one, 1);
  bases_[static_cast<std::size_t>(Base::warp)] = area;
  bases_[static_cast<std::size_t>(Base::constants)] = const_cast<std::byte*>(program.constants.data());

  splits_.clear();
  joins_.clear();
  free_frames_.clear();
  for (auto& frame : frames_) free_frames_.push_back(frame.get());
  Frame* frame = new_frame(program.codes[program.kernel], nullptr);
  std::memset(frame->registers, 0, frame->code->frame_bytes);
  std::fill(local_.begin(), local_.end(), std::byte{0});
  splits_.push_back({0, live_, -1, Split::State::ready, 0, frame});
}

std::uint64_t Warp::clock() const {
  return worker_->cycle != 0 ? worker_->cycle : worker_->counts.warp_instructions;
}

Frame* Warp::new_frame(const Code& code, Frame* caller) {
  if (free_frames_.empty()) {
    frames_.push_back(std::make_unique<Frame>());
    free_frames_.push_back(frames_.back().get());
  }
  Frame* frame = free_frames_.back();
  free_frames_.pop_back();
  if (frame->storage.size() < code.frame_bytes + 64) {
    frame->storage.resize(code.frame_bytes + 64);
    const auto address = reinterpret_cast<std::uintptr_t>(frame->storage.data());
    frame->registers = frame->storage.data() + ((address + 63) / 64 * 64 - address);
  }
  frame->code = &code;
  frame->caller = caller;
  frame->local_base = caller == nullptr ? 0 : caller->local_base + caller->code->local_bytes;
  grow_local(std::size_t{frame->local_base} + code.local_bytes);
  return frame;
}

void Warp::free_frame(Frame* frame) {
  free_frames_.push_back(frame);
}

void Warp::grow_local(std::size_t bytes) {
  if (bytes <= local_stride_) return;
  if (bytes > kMaximumLocal)
    throw Fault(
        "the stack overflows: calls this deep need more than the 512 KiB of local memory that a thread has",
        static_cast<unsigned>(std::countr_zero(mask != 0 ? mask : Mask{1})));
  const std::size_t stride = std::min(kMaximumLocal, std::max<std::size_t>(std::bit_ceil(bytes), 256));
  std::vector<std::byte> larger(stride * kLanes);
  for (unsigned lane = 0; lane < kLanes && local_stride_ != 0; ++lane)
    std::memcpy(larger.data() + lane * stride, local(lane), local_stride_);
  local_ = std::move(larger);
  local_stride_ = stride;
}

void Warp::select(std::size_t split) {
  current_ = split;
  frame_ = splits_[split].frame;
  bases_[static_cast<std::size_t>(Base::frame)] = frame_->registers;
}

bool Warp::choose_ready() {
  for (std::size_t i = splits_.size(); i-- > 0;) {
    if (splits_[i].state == Split::State::ready) {
      select(i);
      return true;
    }
  }
  return false;
}

Outcome Warp::run() {
  while (choose_ready() || release_own()) {
    if (current_ < splits_.size() && run_split() == Outcome::yielded) return Outcome::yielded;
  }
  return splits_.empty() ? Outcome::finished : Outcome::blocked;
}

// The inner loop: instructions of the current split, until it ends, waits or lets others run.
Outcome Warp::run_split() {
  Worker& worker = *worker_;
  std::uint64_t turn = 0;
  std::uint64_t counted = 0;
  std::uint64_t thread_instructions = 0;
  const auto count = [&] {
    worker.counts.warp_instructions += turn - counted;
    worker.counts.thread_instructions += thread_instructions;
    counted = turn;
    thread_instructions = 0;
  };
  const Op* ops = frame_->code->ops.data();
  std::uint32_t pc = splits_[current_].pc;
  std::uint32_t executing = pc;
  active = splits_[current_].mask;
  try {
    for (;;) {
      const Op& op = ops[pc];
      executing = pc;
      if (op.flow == Flow::next) [[likely]] {
        ++turn;
        thread_instructions += static_cast<unsigned>(std::popcount(active));
        mask = active;
        ++pc;
        if (op.guard != kNoSlot) {
          const Mask guard = predicate(op.guard);
          mask &= op.guard_negated ? ~guard : guard;
          if (mask == 0) continue;
        }
        op.handler(*this, op);
        continue;
      }
      if (op.flow == Flow::join) {
        splits_[current_].pc = pc;
        if (arrive(pc)) {
          pc = splits_[current_].pc;
          active = splits_[current_].mask;
          ops = frame_->code->ops.data();
          continue;
        }
        count();
        return Outcome::blocked;
      }
      ++turn;
      thread_instructions += static_cast<unsigned>(std::popcount(active));
      mask = active;
      if (op.guard != kNoSlot) {
        const Mask guard = predicate(op.guard);
        mask &= op.guard_negated ? ~guard : guard;
      }
      if (op.flow == Flow::yield) count();  // it may read the clock
      const bool goes_on = redirect(op, pc);
      if (goes_on && returns_to_spin(op, pc, turn)) {
        count();
        yield();
        return Outcome::yielded;
      }
      if (!goes_on) {
        count();
        return Outcome::blocked;
      }
      pc = splits_[current_].pc;
      active = splits_[current_].mask;
      ops = frame_->code->ops.data();
    }
  } catch (...) {
    count();
    fault_info_ = ops[executing].info;
    throw;
  }
}

// Carries out an instruction that changes the flow, for the lanes in mask. False if the current split does
// not go on and no other is ready; else current_ is one that does.
bool Warp::redirect(const Op& op, std::uint32_t pc) {
  splits_[current_].pc = pc;
  switch (op.flow) {
    case Flow::branch:
      if (mask != active) return branch(op, pc);
      splits_[current_].pc = op.aux;
      return true;
    case Flow::branch_table:
      return branch_table(op, pc);
    case Flow::call:
    case Flow::call_indirect:
      return call(op, pc);
    case Flow::ret:
    case Flow::exit:
      return leave(mask, pc, op.flow == Flow::exit);
    default:
      break;
  }
  if (mask != 0) {
    if (op.flow == Flow::barrier) return barrier(op, pc);
    if (op.flow != Flow::yield) return warp_sync(op, pc);
    op.handler(*this, op);
    synchronised_ = true;
  }
  splits_[current_].pc = pc + 1;
  return true;
}

// Whether a branch goes back in a way that looks like waiting for somebody.
bool Warp::returns_to_spin(const Op& op, std::uint32_t pc, std::uint64_t turn) {
  if (op.flow != Flow::branch || op.aux > pc || mask == 0) return false;
  return (synchronised_ && ++spins_ >= kSpinsBeforeYield) || turn >= kTurn;
}

const Op* Warp::next() {
  for (;;) {
    if (current_ >= splits_.size() || splits_[current_].state != Split::State::ready) {
      if (!choose_ready() && !release_own()) return nullptr;
      if (!choose_ready()) continue;
    } else {
      select(current_);
    }
    const std::uint32_t pc = splits_[current_].pc;
    const Op& op = frame_->code->ops[pc];
    if (op.flow != Flow::join) return &op;
    if (!arrive(pc)) current_ = splits_.size();
  }
}

void Warp::step() {
  const std::uint32_t pc = splits_[current_].pc;
  const Op& op = frame_->code->ops[pc];
  fault_info_ = op.info;
  active = mask = splits_[current_].mask;
  ++worker_->counts.warp_instructions;
  worker_->counts.thread_instructions += static_cast<unsigned>(std::popcount(active));
  if (op.guard != kNoSlot) {
    const Mask guard = predicate(op.guard);
    mask &= op.guard_negated ? ~guard : guard;
  }
  if (op.flow == Flow::next) {
    if (mask != 0) op.handler(*this, op);
    splits_[current_].pc = pc + 1;
    return;
  }
  const Mask executed = mask;
  if (redirect(op, pc)) {
    mask = executed;
    if (returns_to_spin(op, pc, 0)) {
      yield();
      current_ = splits_.size();
    }
  }
  mask = executed;
}

// The current split stops for now, so that those it may wait for can run: it becomes the last to be chosen.
void Warp::yield() {
  spins_ = 0;
  synchronised_ = false;
  if (++yields_ % kYieldsBeforeRelease == 0) release_join();
  const auto at = splits_.begin() + static_cast<std::ptrdiff_t>(current_);
  std::rotate(splits_.begin(), at, at + 1);
}

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
std::int32_t Warp::join_at(std::uint32_t meeting) {
  const Split& split = splits_[current_];
  if (meeting == ptx::kNone) return split.join;
  if (split.join >= 0) {
    const Join& join = joins_[static_cast<std::size_t>(split.join)];
    if (join.pc == meeting && join.frame == split.frame && join.callee == nullptr) return split.join;
  }
  return new_join({meeting, split.mask, 0, split.join, split.frame, nullptr, nullptr, true});
}

bool Warp::diverge(Mask taken, std::uint32_t target, std::uint32_t next, std::uint32_t meeting) {
  const std::int32_t join = join_at(meeting);
  Split& split = splits_[current_];
  // The lanes that stay in a loop go on; the others have a place to wait for them.
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

void Warp::copy_parameters(const std::vector<ParameterPlace>& from, std::uint32_t from_base,
                           const std::vector<ParameterPlace>& to, std::uint32_t to_base, Mask lanes) {
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
      const std::uint64_t index = (target - kCodeWindow) / kFunctionStride;
      if (!in_window(target, kCodeWindow) || target % kFunctionStride != 0 || index >= program.codes.size() ||
          program.codes[index].ops.empty())
        throw Fault("call through a pointer that is not the address of a device function", lane);
      callee = static_cast<std::uint32_t>(index);
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
  Mask going = active & ~mask;  // lanes that the guard keeps away
  std::vector<Split> waiting;
  for (Mask left = mask; left != 0;) {
    const Mask named = members_of[std::countr_zero(left)];
    const Mask group = ballot([=](unsigned lane) { return members_of[lane] == named; }) & left;
    left &= ~group;
    if ((named & live_ & ~group) == 0) {
      mask = group;
      meet(op);
      going |= group;
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
  if (waiting.empty()) return true;
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
      if (other.state != Split::State::at_warp_sync || other.members != split.members) continue;
      const bool same = other.pc == split.pc && other.frame == split.frame;
      const Op& other_op = other.frame->code->ops[other.pc];
      if (same || (op.flow == Flow::warp_barrier && other_op.flow == Flow::warp_barrier))
        present |= other.mask;
    }
    if ((split.members & live_ & ~present) != 0) continue;
    finish_sync(i, present);
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
        split.members == first.members)
      here |= split.mask;
  mask = active = here;
  meet(op);
  for (Split& split : splits_) {
    if (split.state != Split::State::at_warp_sync || split.members != first.members ||
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
  if (saved < splits_.size()) select(saved);
}

void Warp::pass_barrier(unsigned barrier) {
  for (Split& split : splits_) {
    if (split.state != Split::State::at_barrier) continue;
    if (split.members != barrier) continue;
    split.state = Split::State::ready;
    const Op& op = split.frame->code->ops[split.pc - 1];
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
  if (release_join()) return true;
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
