// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/warp.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "gpu/exec/fault.hpp"
#include "gpu/exec/launch.hpp"

namespace manyscale::gpu {

namespace {

// Loops around synchronising instructions after which a warp lets others run.
constexpr std::uint32_t kSpinsBeforeYield = 16;
// Times that a warp lets others run before it lets its own waiting lanes go on.
constexpr std::uint32_t kYieldsBeforeRelease = 4;
// Instructions after which a warp lets others run in any case.
constexpr std::uint64_t kTurn = 1 << 20;
// Instructions of a warp behind a barrier before the other warps have left it, too. On hardware all leave it
// at about the same time; a program that reads shared memory there and soon writes it again, without a
// barrier between, gets on hardware what was there, and not what a warp far ahead has written.
constexpr std::uint64_t kBriefTurn = 32;
// Local memory of a thread, for its frames.
constexpr std::size_t kMaximumLocal = std::size_t{512} << 10;

std::uint32_t* special(std::byte* area, Special special) {
  return reinterpret_cast<std::uint32_t*>(area + static_cast<std::size_t>(special) * kSpecialStride);
}

template <class T>
void fill(std::byte* area, Special special, T value) {
  auto* lanes = reinterpret_cast<T*>(area + static_cast<std::size_t>(special) * kSpecialStride);
  std::fill_n(lanes, kLanes, value);
}

}  // namespace

// Fills in what is the same in every warp.
Warp::Warp() {
  splits_.reserve(first_splits_.size() / sizeof(Split));
  std::byte* area = specials_.data();
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    special(area, Special::laneid)[lane] = lane;
    special(area, Special::lanemask_eq)[lane] = 1U << lane;
    special(area, Special::lanemask_lt)[lane] = (1U << lane) - 1;
    special(area, Special::lanemask_le)[lane] = (2U << lane) - 1;
    special(area, Special::lanemask_ge)[lane] = ~((1U << lane) - 1);
    special(area, Special::lanemask_gt)[lane] = ~((2U << lane) - 1);
  }
  fill<std::uint32_t>(area, Special::smid, 0);
  fill<std::uint32_t>(area, Special::nsmid, 1);
  fill<std::uint32_t>(area, Special::zero, 0);
  fill<std::uint32_t>(area, Special::one, 1);
}

void Warp::start(Cta& cta, Worker& worker, unsigned index) {
  cta_ = &cta;
  worker_ = &worker;
  access = worker.access;
  index_ = index;
  const Launch& launch = *worker.launch;
  const Program& program = *launch.program;

  const unsigned threads = launch.threads_per_cta();
  const unsigned first = index * kLanes;
  live_ = threads - first >= kLanes ? kAllLanes : (Mask{1} << (threads - first)) - 1;
  carry = 0;
  synchronised_ = false;
  leaves_barrier_ = false;
  spins_ = 0;
  yields_ = 0;

  std::byte* area = specials_.data();
  std::array<std::uint32_t, 3> thread{first % launch.block[0], first / launch.block[0] % launch.block[1],
                                      first / (launch.block[0] * launch.block[1])};
  auto* x = special(area, Special::tid_x);
  auto* y = special(area, Special::tid_y);
  auto* z = special(area, Special::tid_z);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    x[lane] = thread[0];
    y[lane] = thread[1];
    z[lane] = thread[2];
    if (++thread[0] != launch.block[0]) continue;
    thread[0] = 0;
    if (++thread[1] != launch.block[1]) continue;
    thread[1] = 0;
    ++thread[2];
  }
  for (unsigned axis = 0; axis < 3; ++axis) {
    auto along = [axis](Special x) { return static_cast<Special>(static_cast<unsigned>(x) + axis); };
    fill(area, along(Special::ntid_x), launch.block[axis]);
    fill(area, along(Special::ctaid_x), cta.position()[axis]);
    fill(area, along(Special::nctaid_x), launch.grid[axis]);
  }
  fill<std::uint32_t>(area, Special::warpid, index);
  fill<std::uint32_t>(area, Special::nwarpid, launch.warps_per_cta());
  fill<std::uint64_t>(area, Special::gridid, launch.sequence);
  fill(area, Special::total_smem_size, static_cast<std::uint32_t>(launch.shared_bytes()));
  fill(area, Special::dynamic_smem_size, static_cast<std::uint32_t>(launch.dynamic_shared_bytes));
  fill(area, Special::workspace_low, static_cast<std::uint32_t>(launch.workspace));
  fill(area, Special::workspace_high, static_cast<std::uint32_t>(launch.workspace >> 32));
  bases_[static_cast<std::size_t>(Base::warp)] = area;
  bases_[static_cast<std::size_t>(Base::constants)] = const_cast<std::byte*>(
      launch.constants.empty() ? program.constants.data() : launch.constants.front().data());

  splits_.clear();
  joins_.clear();
  free_frames_.clear();
  for (auto& frame : frames_) free_frames_.push_back(frame.get());
  Frame* frame = new_frame(program.codes[program.kernel], nullptr);
  std::memset(frame->registers, 0, frame->code->frame_bytes - frame->code->discarded_bytes);
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
  ops_ = frame_->code->ops.data();
  bases_[static_cast<std::size_t>(Base::frame)] = frame_->registers;
}

bool Warp::choose_ready() {
  for (std::size_t i = splits_.size(); i-- > 0;) {
    if (splits_[i].state != Split::State::ready) continue;
    select(i);
    return true;
  }
  return false;
}

Outcome Warp::run() {
  while (choose_ready() || release_own()) {
    if (current_ < splits_.size()) {
      const Outcome outcome = std::exchange(leaves_barrier_, false) ? run_split<true>() : run_split<false>();
      if (outcome == Outcome::yielded || outcome == Outcome::paused) return outcome;
    }
    worker_->launch->check_end(worker_->counts);  // splits may meet for ever
  }
  return splits_.empty() ? Outcome::finished : Outcome::blocked;
}

// The inner loop: instructions of the current split, until it ends, waits or lets others run; if it is brief,
// the first few.
template <bool kBrief>
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
      if constexpr (kBrief) {
        if (turn == kBriefTurn) {
          splits_[current_].pc = pc;
          count();
          return Outcome::paused;
        }
      }
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
      if (!goes_on || leaves_barrier_) {
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
    case Flow::branch_if:
      return branch_if(op, pc);
    case Flow::branch_if_divergent:
      return branch_if_divergent(op, pc);
    case Flow::jump:
      return jump(op, pc);
    case Flow::ret:
      return leave(mask, pc, false);
    case Flow::exit:
      return exit_if(op, pc);
    default:
      break;
  }
  if (mask != 0) {
    if (op.flow == Flow::converge) return converge(op, pc);
    if (op.flow == Flow::barrier) return barrier(op, pc);
    if (op.flow != Flow::yield && op.flow != Flow::break_convergence) return warp_sync(op, pc);
    op.handler(*this, op);
    if (op.flow == Flow::break_convergence)
      release_converged();
    else
      synchronised_ = true;
  }
  splits_[current_].pc = pc + 1;
  return true;
}

// Whether a branch goes back in a way that looks like waiting for somebody.
bool Warp::returns_to_spin(const Op& op, std::uint32_t pc, std::uint64_t turn) {
  const bool is_branch =
      op.flow == Flow::branch || op.flow == Flow::branch_if || op.flow == Flow::branch_if_divergent;
  if (is_branch ? op.aux > pc : op.flow != Flow::jump) return false;
  if (mask == 0) return false;
  return (synchronised_ && ++spins_ >= kSpinsBeforeYield) || turn >= kTurn;
}

const Op* Warp::next() {
  while (current_ >= splits_.size() || splits_[current_].state != Split::State::ready)
    if (!choose_ready() && !release_own()) return nullptr;
  select(current_);
  return &ops_[splits_[current_].pc];
}

bool Warp::step() {
  const std::uint32_t pc = splits_[current_].pc;
  const Op& op = ops_[pc];
  fault_info_ = op.info;
  active = mask = splits_[current_].mask;
  if (op.flow == Flow::join) {
    if (!arrive(pc)) current_ = splits_.size();
    return false;
  }
  ++worker_->counts.warp_instructions;
  worker_->counts.thread_instructions += static_cast<unsigned>(std::popcount(active));
  if (op.guard != kNoSlot) {
    const Mask guard = predicate(op.guard);
    mask &= op.guard_negated ? ~guard : guard;
  }
  if (op.flow == Flow::next) {
    if (mask != 0) op.handler(*this, op);
    splits_[current_].pc = pc + 1;
    return (&op)[1].flow != Flow::join;
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
  return false;
}

// The current split stops for now, so that those it may wait for can run: it becomes the last to be chosen.
void Warp::yield() {
  spins_ = 0;
  synchronised_ = false;
  if (++yields_ % kYieldsBeforeRelease == 0 && !release_join()) release_convergence();
  const auto at = splits_.begin() + static_cast<std::ptrdiff_t>(current_);
  std::rotate(splits_.begin(), at, at + 1);
}

}  // namespace manyscale::gpu
