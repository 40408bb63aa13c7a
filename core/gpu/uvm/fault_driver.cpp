// SPDX-License-Identifier: Apache-2.0
// The driver that serves far faults: takes them in groups, decides what comes along, pays for its own work,
// and sends one run of pages after the other.
#include <algorithm>
#include <span>

#include "gpu/uvm/unified_memory.hpp"

namespace manyscale::gpu {

namespace {

constexpr bool kTakesBatch = false, kBeginsTransfers = true;
// Of the faults of a batch, the share that must be of the same pages for all that came since to be dropped.
constexpr std::int64_t kManyDuplicates = 2;

}  // namespace

// A translation that found no page leaves an entry in the buffer that the driver reads.
void UnifiedMemory::queue_fault(PageIndex page) {
  Page& at = residency_.at(page);
  if (!at.is(Page::queued)) {
    at.set(Page::queued);
    ++statistics_.faults;
    ++allocation_of(page).faults;
    log(PageEvent::Kind::fault, Cause::fault, page, 1, now(), now());
  } else if (fixed_) {
    return;
  }
  fault_written_ = std::max(now(), fault_written_ + (fixed_ ? 0 : spec_.fault_interval));
  fault_buffer_.push_back({page, fault_written_});
  start_driver();
}

// Whether the fault of a page is still to be served; if not, it is no longer queued.
bool UnifiedMemory::wants_page(PageIndex page) {
  Page& at = residency_.at(page);
  if (fixed_ && !at.is(Page::queued)) return false;
  const bool awaited = at.first_waiter != kNone || (!fixed_ && at.pins != 0);
  if (awaited && !at.is(Page::arriving | Page::leaving)) return true;
  at.clear(Page::queued);
  return false;
}

void UnifiedMemory::start_driver() {
  if (driver_busy_) return;
  // Pages have come meanwhile, or are coming, for other reasons.
  while (fixed_ && !fault_buffer_.empty() && !wants_page(fault_buffer_.front().page))
    fault_buffer_.pop_front();
  if (fault_buffer_.empty()) return;
  driver_busy_ = true;
  batch_planned_ = false;
  batch_begun_ = busy_since_ = now();
  Time latency = fixed_ ? spec_.fault_latency : spec_.fetch_latency;
  if (!fixed_ && cold_) latency += spec_.cold_latency;
  cold_ = false;
  driver_timer_.after(std::max(now(), fault_buffer_.front().written) - now() + latency, kTakesBatch);
}

void UnifiedMemory::driver_step(const bool& step) {
  if (step == kTakesBatch) {
    take_batch();
    if (batch_entries_ == 0) return end_batch();
    const Time rest = std::max<Time>(0, spec_.batch_latency - spec_.fetch_latency);
    const Time cost = fixed_ ? 0 : rest + (batch_entries_ - 1) * spec_.fault_cost;
    plan_block();
    driver_timer_.after(cost + block_cost(), kBeginsTransfers);
    return;
  }
  for (const Run& run : batch_runs_) touched_blocks_[run.first / kPagesPerBlock] = true;
  batch_planned_ = true;
  advance_driver();
  advance_prefetches();
}

void UnifiedMemory::take_batch() {
  batch_faults_.clear();
  batch_served_.clear();
  batch_entries_ = 0;
  const std::int64_t most = fixed_ ? 1 : spec_.batch_size;
  while (!fault_buffer_.empty() && fault_buffer_.front().written <= now() && batch_entries_ < most) {
    const PageIndex page = fault_buffer_.front().page;
    fault_buffer_.pop_front();
    if (fixed_ && !wants_page(page)) continue;
    ++batch_entries_;
    batch_faults_.push_back(page);
  }
  std::ranges::sort(batch_faults_);
  const auto repeated = std::ranges::unique(batch_faults_);
  batch_repeats_ = std::ssize(repeated);
  batch_faults_.erase(repeated.begin(), repeated.end());
  left_over_ = 0;
  while (!fixed_ && left_over_ < fault_buffer_.size() && fault_buffer_[left_over_].written <= now())
    ++left_over_;
  std::erase_if(batch_faults_, [&](PageIndex page) {
    Page& at = residency_.at(page);
    const bool wanted = wants_page(page);
    at.clear(Page::queued);
    if (!wanted) return true;
    if (!at.is(Page::on_device)) {
      residency_.begin_arriving(page);
      return false;
    }
    if (far_faults_.has_writer(at)) at.clear(Page::on_host);  // a write ends the host's copy
    batch_served_.push_back(page);
    return true;
  });
  next_fault_ = 0;
}

// What comes for the next block with faults: pages that faulted first, then those that come along. Blocks are
// served one after the other, so what comes along depends on what had to leave for those before.
void UnifiedMemory::plan_block() {
  Prefetcher& prefetcher =
      oversubscribed_ && oversubscribed_prefetcher_ ? *oversubscribed_prefetcher_ : *prefetcher_;
  const std::size_t begin = next_fault_;
  while (next_fault_ < batch_faults_.size() &&
         batch_faults_[next_fault_] / kPagesPerBlock == batch_faults_[begin] / kPagesPerBlock)
    ++next_fault_;
  const std::span faults = std::span(batch_faults_).subspan(begin, next_fault_ - begin);
  served_block_ = faults.empty() ? kNone : faults.front() / kPagesPerBlock;
  batch_pages_.clear();
  prefetcher.choose(residency_, faults, random(), batch_pages_);
  std::erase_if(batch_pages_, [&](PageIndex page) {
    if (!residency_.can_come(page) || residency_.at(page).is(Page::prefer_host)) return true;
    residency_.begin_arriving(page);
    return false;
  });
  std::ranges::sort(batch_pages_);

  batch_runs_.clear();
  next_run_ = 0;
  auto fault = faults.begin();
  auto other = batch_pages_.begin();
  const auto add = [&](PageIndex page, Cause cause) {
    // Pages that are nowhere cross the link where neighbours do.
    const bool populates = !residency_.at(page).is(Page::on_host);
    if (!batch_runs_.empty()) {
      Run& last = batch_runs_.back();
      if (last.cause == cause && last.first + last.count == page && page % kPagesPerBlock != 0) {
        ++last.count;
        last.populates = last.populates && populates;
        return;
      }
    }
    batch_runs_.push_back({page, 1, cause, populates, 0});
  };
  while (fault != faults.end() || other != batch_pages_.end()) {
    const BlockIndex block = std::min(fault == faults.end() ? kNone : *fault / kPagesPerBlock,
                                      other == batch_pages_.end() ? kNone : *other / kPagesPerBlock);
    for (; fault != faults.end() && *fault / kPagesPerBlock == block; ++fault) add(*fault, Cause::fault);
    for (; other != batch_pages_.end() && *other / kPagesPerBlock == block; ++other)
      add(*other, Cause::prefetch);
  }
}

// The driver's work for what was planned, besides what a batch takes.
Time UnifiedMemory::block_cost() const {
  if (fixed_) return 0;
  Time cost = 0;
  for (std::size_t first = 0; first < batch_runs_.size();) {
    const BlockIndex block = batch_runs_[first].first / kPagesPerBlock;
    PageIndex lowest = kNone, highest = 0;
    std::uint32_t pages = 0;
    Time fault_runs = 0;
    std::size_t last = first;
    for (; last < batch_runs_.size() && batch_runs_[last].first / kPagesPerBlock == block; ++last) {
      const Run& run = batch_runs_[last];
      lowest = std::min(lowest, run.first);
      highest = std::max(highest, run.first + run.count);
      pages += run.count;
      fault_runs += run.cause == Cause::fault;
    }
    cost += pages * static_cast<Time>(kPageBytes / 1024) * spec_.kilobyte_latency;
    if (highest - lowest != pages) cost += spec_.scattered_latency;
    if (fault_runs > 1) cost += (fault_runs - 1) * spec_.run_cost;
    if (!touched_blocks_[block])
      cost += ranges_->pages_of(block) == kPagesPerBlock ? spec_.block_latency : spec_.partial_block_latency;
    first = last;
  }
  return cost;
}

void UnifiedMemory::advance_driver() {
  if (!driver_busy_ || !batch_planned_) return;
  while (next_run_ < batch_runs_.size()) {
    if (to_device_busy_) return;
    Run& run = batch_runs_[next_run_];
    if (wait_for_room(run)) return;
    if (run.count == 0) {
      ++next_run_;
      continue;
    }
    Run part = run;
    part.count = fitting(run);
    run.first += part.count;
    run.count -= part.count;
    if (run.count == 0) ++next_run_;
    begin_run(part);
  }
  if (to_device_busy_ && to_device_.cause != Cause::command) return;
  if (next_fault_ == batch_faults_.size()) return end_batch();
  batch_planned_ = false;
  plan_block();
  driver_timer_.after(block_cost(), kBeginsTransfers);
}

// Sees to frames for a run; true if it has to wait for them. Pages that only come along give up where no
// other page can leave, which leaves a run of none.
bool UnifiedMemory::wait_for_room(Run& run) {
  const bool enough = make_room_for(run);
  const std::uint32_t fit = fitting(run);
  if (fit == run.count) return false;
  if (enough) return true;
  if (fit != 0) return false;
  if (run.cause == Cause::prefetch) {
    statistics_.prefetches_given_up += run.count;
    for (PageIndex page = run.first; page < run.first + run.count; ++page) {
      residency_.give_up_arriving(page);
      if (residency_.at(page).first_waiter != kNone) queue_fault(page);
    }
    run.count = 0;
    return false;
  }
  // Pages that have come are pinned until those that wait for them have been told.
  std::vector<PageIndex> served;
  served.swap(batch_served_);
  for (const PageIndex page : served) release(page);
  if (pinned_ == 0 && leavings_.size() == 0 && !to_host_busy_ && !to_device_busy_)
    throw SimulationError("the device's memory of " + std::to_string(spec_.capacity) +
                          " bytes has no room for a page of managed memory: other allocations take " +
                          std::to_string(frames_.reserved() * static_cast<std::int64_t>(kPageBytes)) +
                          " bytes");
  return true;
}

// Tells the SMs that wait for what has come. The driver drops faults that it saw and did not take, and if
// many were the same also those that came since; then all translations that still wait are made anew, and
// leave faults again.
void UnifiedMemory::end_batch() {
  statistics_.fault_groups += batch_entries_ != 0;
  if (!batch_faults_.empty() || !batch_served_.empty()) {
    const PageIndex first = batch_faults_.empty() ? batch_served_.front() : batch_faults_.front();
    log(PageEvent::Kind::batch, Cause::fault, first, static_cast<std::uint32_t>(batch_faults_.size()),
        batch_begun_, now());
    if (Timeline* shown = timeline(); shown != nullptr)
      shown->span(shown->name("group of faults"), batch_begun_, now());
  }
  statistics_.driver_busy += now() - busy_since_;
  served_block_ = kNone;
  if (!fixed_ && batch_entries_ != 0) {
    if (batch_repeats_ * kManyDuplicates > batch_entries_)
      while (!fault_buffer_.empty() && fault_buffer_.front().written <= now()) fault_buffer_.pop_front();
    else
      fault_buffer_.erase(fault_buffer_.begin(), fault_buffer_.begin() + left_over_);
    std::vector<PageIndex> waiting;
    waiting.swap(waiting_pages_);
    for (const PageIndex page : waiting) release(page);
    batch_begun_ = busy_since_ = now();
    batch_planned_ = false;
    driver_timer_.after(spec_.fetch_latency, kTakesBatch);
    return;
  }
  std::vector<PageIndex> served;
  served.swap(batch_served_);
  for (const PageIndex page : served) release(page);
  driver_busy_ = false;
  start_driver();
}

}  // namespace manyscale::gpu
