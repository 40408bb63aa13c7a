// SPDX-License-Identifier: Apache-2.0
#include "gpu/sm/dependence_counters.hpp"

#include <bit>

namespace manyscale::gpu {

void DependenceCounters::wait(const IssueControl& control, Waiting& waiting) const {
  for (unsigned left = control.waits; left != 0; left &= left - 1) {
    const Counter& counter = counters_[static_cast<unsigned>(std::countr_zero(left))];
    waiting.consider(counter.unknown != 0 ? kPending : counter.zero, counter.why, &counter.conflict);
  }
  if (control.limited != IssueControl::kNone) wait_for_limit(control, waiting);
}

void DependenceCounters::wait_for_limit(const IssueControl& control, Waiting& waiting) const {
  std::vector<Cycle> ends;
  for (const Counted& counted : counted_)
    if (counted.counter == control.limited) ends.push_back(counted.done);
  if (ends.size() <= control.remaining) return;
  const auto last = ends.end() - 1 - control.remaining;  // that has to be done
  std::nth_element(ends.begin(), last, ends.end());
  const Counter& counter = counters_[control.limited];
  waiting.consider(*last, counter.why, &counter.conflict);
}

void DependenceCounters::count(std::uint8_t which, const Entry& entry, std::uint8_t limited, Cycle now) {
  Counter& counter = counters_[which];
  if (limited >> which & 1) {
    std::erase_if(counted_, [&](const Counted& counted) { return counted.done <= now; });
    counted_.push_back({which, entry.number, entry.done});
  }
  if (entry.done == kPending) {
    ++counter.unknown;
    counter.why = entry.why;
  } else if (entry.done > counter.zero) {
    counter.zero = entry.done;
    counter.conflict = entry.conflict;
    if (counter.unknown == 0) counter.why = entry.why;
  }
}

void DependenceCounters::count_down(std::uint8_t which, Cycle done, bool faulted, std::uint32_t number,
                                    std::uint32_t conflict) {
  if (which >= IssueControl::kCounters) return;
  Counter& counter = counters_[which];
  --counter.unknown;
  if (done > counter.zero) counter.conflict = conflict;
  counter.zero = std::max(counter.zero, done);
  if (faulted) counter.why = Stall::page_fault;
  for (Counted& counted : counted_)
    if (counted.done == kPending && counted.number == number && counted.counter == which) counted.done = done;
}

void DependenceCounters::close_copies(std::uint8_t counter, Cycle earliest, std::uint8_t limited, Cycle now) {
  const Cycle done = std::max(copied_, earliest);
  const bool counts = counter < IssueControl::kCounters;
  if (copies_left_ == 0) {
    if (counts) count(counter, {done, Stall::long_scoreboard}, limited, now);
    return;
  }
  groups_.push_back({next_copy_, copies_left_, counter, done});
  if (counts) count(counter, {kPending, Stall::long_scoreboard, kCopies | next_copy_}, limited, now);
}

void DependenceCounters::copy_arrived(std::uint32_t copy, Cycle when, bool faulted) {
  --copies_left_;
  copied_ = std::max(copied_, when);
  std::erase_if(groups_, [&](CopyGroup& group) {
    if (copy >= group.before) return false;
    group.done = std::max(group.done, when);
    if (--group.left != 0) return false;
    count_down(group.counter, group.done, faulted, kCopies | group.before);
    return true;
  });
}

}  // namespace manyscale::gpu
