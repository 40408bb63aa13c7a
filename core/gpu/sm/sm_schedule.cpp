// SPDX-License-Identifier: Apache-2.0
// What an SM does with real machine code, whose compiler has put a schedule into it: cycles that a warp
// stalls after an instruction, counters of instructions with variable latency that later ones wait for, hints
// to let other warps go first, and operands that are used again.
#include <algorithm>
#include <bit>

#include "gpu/sm/sm.hpp"

namespace manyscale::gpu {

// Waits until the counters that the next instruction names are zero.
void Sm::wait_for_counters(const WarpSlot& slot, Waiting& waiting) {
  for (unsigned left = slot.at->control.waits; left != 0; left &= left - 1) {
    const DependenceCounter& counter = slot.counters[static_cast<unsigned>(std::countr_zero(left))];
    waiting.consider(counter.unknown != 0 ? kPending : counter.zero, counter.why, &counter.conflict);
  }
  if (slot.at->control.limited != IssueControl::kNone) wait_for_limit(slot, waiting);
}

// Waits until the counter that the next instruction names counts no more than it allows.
void Sm::wait_for_limit(const WarpSlot& slot, Waiting& waiting) {
  const IssueControl& control = slot.at->control;
  std::vector<Cycle> ends;
  for (const Counted& counted : slot.counted)
    if (counted.counter == control.limited) ends.push_back(counted.done);
  if (ends.size() <= control.remaining) return;
  const auto last = ends.end() - 1 - control.remaining;  // that has to be done
  std::nth_element(ends.begin(), last, ends.end());
  const DependenceCounter& counter = slot.counters[control.limited];
  waiting.consider(*last, counter.why, &counter.conflict);
}

// Lets a counter count an instruction that is done at some time, or at one that nobody knows yet (kPending).
void Sm::count_in(WarpSlot& slot, std::uint8_t which, Cycle done, Stall why, std::uint32_t number,
                  std::uint32_t conflict) {
  DependenceCounter& counter = slot.counters[which];
  if (slot.function->limited_counters >> which & 1) {
    std::erase_if(slot.counted, [&](const Counted& counted) { return counted.done <= slot.after; });
    slot.counted.push_back({which, number, done});
  }
  if (done == kPending) {
    ++counter.unknown;
    counter.why = why;
  } else if (done > counter.zero) {
    counter.zero = done;
    counter.conflict = conflict;
    if (counter.unknown == 0) counter.why = why;
  }
}

// An instruction that was counted without a time is done.
void Sm::count_down(WarpSlot& slot, std::uint8_t which, Cycle done, bool faulted, std::uint32_t number,
                    std::uint32_t conflict) {
  if (which >= IssueControl::kCounters) return;
  DependenceCounter& counter = slot.counters[which];
  --counter.unknown;
  if (done > counter.zero) counter.conflict = conflict;
  counter.zero = std::max(counter.zero, done);
  if (faulted) counter.why = Stall::page_fault;
  for (Counted& counted : slot.counted)
    if (counted.done == kPending && counted.number == number && counted.counter == which) counted.done = done;
}

// Lets a counter count all copies to shared memory that were begun, until they are done (LDGDEPBAR).
void Sm::close_copies(WarpSlot& slot, std::uint8_t counter, Cycle earliest) {
  if (slot.copies_left == 0)
    return count(slot, counter, std::max(slot.copied, earliest), Stall::long_scoreboard);
  slot.copies.push_back({slot.next_copy, slot.copies_left, counter, std::max(slot.copied, earliest)});
  count(slot, counter, kPending, Stall::long_scoreboard, kCopies | slot.next_copy);
}

// A copy to shared memory is done, and with it perhaps the groups that it belongs to.
void Sm::copy_arrived(WarpSlot& slot, std::uint32_t copy, Cycle when, bool faulted) {
  --slot.copies_left;
  slot.copied = std::max(slot.copied, when);
  std::erase_if(slot.copies, [&](CopyGroup& group) {
    if (copy >= group.before) return false;
    group.done = std::max(group.done, when);
    if (--group.left != 0) return false;
    count_down(slot, group.counter, group.done, faulted, kCopies | group.before);
    return true;
  });
}

}  // namespace manyscale::gpu
