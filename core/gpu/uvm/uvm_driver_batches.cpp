// SPDX-License-Identifier: Apache-2.0
// The UVM driver's fault batches: it fetches faults, plans the pages to migrate block by block, pays for its
// own work, and begins one transfer after the other.
#include <algorithm>
#include <span>

#include "gpu/uvm/uvm_driver.hpp"

namespace manyscale::gpu {

namespace {

constexpr bool kFetchesFaults = false, kBeginsTransfers = true;
// The reciprocal share of repeated faults in a batch above which all visible faults are dropped.
constexpr std::int64_t kManyRepeats = 2;

}  // namespace

void UvmDriver::fault_written(PageIndex page, bool first) {
  if (first) ++allocation_of(page).faults;
  begin_batch();
}

// Whether the fault of a page is still to be served; if not, it is no longer queued.
bool UvmDriver::is_pending(PageIndex page) {
  Page& at = entry(page);
  if (fixed_ && !at.is(Page::queued)) return false;
  const bool awaited = at.is(Page::awaited) || (!fixed_ && at.pins != 0);
  if (awaited && !at.is(Page::arriving | Page::leaving)) return true;
  at.clear(Page::queued);
  return false;
}

void UvmDriver::begin_batch() {
  if (state_.busy) return;
  FaultBuffer& buffer = shared_.fault_buffer;
  // Pages have migrated meanwhile, or are migrating, for other reasons.
  while (fixed_ && !buffer.empty() && !is_pending(buffer.first_page())) buffer.pop();
  if (buffer.empty()) return;
  state_.busy = true;
  state_.batch.planned = false;
  state_.batch.begun = state_.busy_since = now();
  Time latency = fixed_ ? spec_.fault_latency : spec_.fetch_latency;
  if (!fixed_ && state_.cold) latency += spec_.cold_latency;
  state_.cold = false;
  batch_timer_.after(std::max(now(), buffer.first_written()) - now() + latency, kFetchesFaults);
}

void UvmDriver::batch_step(const bool& step) {
  FaultBatch& batch = state_.batch;
  if (step == kFetchesFaults) {
    fetch_faults();
    if (batch.entries == 0) return end_batch();
    const Time rest = std::max<Time>(0, spec_.batch_latency - spec_.fetch_latency);
    const Time cost = fixed_ ? 0 : rest + (batch.entries - 1) * spec_.fault_cost;
    plan_block();
    batch_timer_.after(cost + block_cost(), kBeginsTransfers);
    return;
  }
  for (const PageRun& run : batch.runs) state_.touched_blocks[run.first / kPagesPerBlock] = true;
  batch.planned = true;
  advance_batch();
  advance_prefetches();
}

void UvmDriver::fetch_faults() {
  FaultBatch& batch = state_.batch;
  FaultBuffer& buffer = shared_.fault_buffer;
  batch.faults.clear();
  batch.served.clear();
  batch.entries = 0;
  const std::int64_t most = fixed_ ? 1 : spec_.batch_size;
  while (!buffer.empty() && buffer.first_written() <= now() && batch.entries < most) {
    const PageIndex page = buffer.first_page();
    buffer.pop();
    if (fixed_ && !is_pending(page)) continue;
    ++batch.entries;
    batch.faults.push_back(page);
  }
  std::ranges::sort(batch.faults);
  const auto repeated = std::ranges::unique(batch.faults);
  batch.repeats = std::ssize(repeated);
  batch.faults.erase(repeated.begin(), repeated.end());
  batch.left_over = fixed_ ? 0 : buffer.visible(now());
  std::erase_if(batch.faults, [&](PageIndex page) {
    Page& at = entry(page);
    const bool pending = is_pending(page);
    at.clear(Page::queued);
    if (!pending) return true;
    if (!at.is(Page::on_device)) {
      residency_.begin_arriving(page);
      return false;
    }
    if (at.is(Page::write_awaited)) at.clear(Page::on_host);  // a write ends read duplication
    batch.served.push_back(page);
    return true;
  });
  batch.next_fault = 0;
}

// Chooses the pages to migrate for the next block with faults. Blocks are served one after the other, so that
// the prefetcher sees what was evicted for earlier ones.
void UvmDriver::plan_block() {
  FaultBatch& batch = state_.batch;
  Prefetcher& prefetcher =
      state_.oversubscribed && oversubscribed_prefetcher_ ? *oversubscribed_prefetcher_ : *prefetcher_;
  const std::size_t begin = batch.next_fault;
  while (batch.next_fault < batch.faults.size() &&
         batch.faults[batch.next_fault] / kPagesPerBlock == batch.faults[begin] / kPagesPerBlock)
    ++batch.next_fault;
  const std::span faults = std::span(batch.faults).subspan(begin, batch.next_fault - begin);
  batch.block = faults.empty() ? kNone : faults.front() / kPagesPerBlock;
  batch.prefetched.clear();
  prefetcher.choose(residency_, faults, owner_.random(), batch.prefetched);
  std::erase_if(batch.prefetched, [&](PageIndex page) {
    if (!residency_.can_come(page) || entry(page).is(Page::prefer_host)) return true;
    residency_.begin_arriving(page);
    return false;
  });
  std::ranges::sort(batch.prefetched);
  build_runs(faults);
}

// Joins the pages of a block to runs: those that faulted first, then the prefetched ones.
void UvmDriver::build_runs(std::span<const PageIndex> faults) {
  FaultBatch& batch = state_.batch;
  batch.runs.clear();
  batch.next_run = 0;
  auto fault = faults.begin();
  auto other = batch.prefetched.begin();
  const auto end = batch.prefetched.end();
  const auto add = [&](PageIndex page, Cause cause) {
    // Pages without data are transferred if their neighbours are.
    const bool populates = !entry(page).is(Page::on_host);
    if (!batch.runs.empty()) {
      PageRun& last = batch.runs.back();
      if (last.cause == cause && last.first + last.count == page && page % kPagesPerBlock != 0) {
        ++last.count;
        last.populates = last.populates && populates;
        return;
      }
    }
    batch.runs.push_back({page, 1, cause, populates, 0});
  };
  while (fault != faults.end() || other != end) {
    const BlockIndex block = std::min(fault == faults.end() ? kNone : *fault / kPagesPerBlock,
                                      other == end ? kNone : *other / kPagesPerBlock);
    for (; fault != faults.end() && *fault / kPagesPerBlock == block; ++fault) add(*fault, Cause::fault);
    for (; other != end && *other / kPagesPerBlock == block; ++other) add(*other, Cause::prefetch);
  }
}

// The driver's work for the planned runs, besides that of the batch.
Time UvmDriver::block_cost() const {
  if (fixed_) return 0;
  const std::vector<PageRun>& runs = state_.batch.runs;
  Time cost = 0;
  for (std::size_t first = 0; first < runs.size();) {
    const BlockIndex block = runs[first].first / kPagesPerBlock;
    PageIndex lowest = kNone, highest = 0;
    std::uint32_t pages = 0;
    Time fault_runs = 0;
    std::size_t last = first;
    for (; last < runs.size() && runs[last].first / kPagesPerBlock == block; ++last) {
      const PageRun& run = runs[last];
      lowest = std::min(lowest, run.first);
      highest = std::max(highest, run.first + run.count);
      pages += run.count;
      fault_runs += run.cause == Cause::fault;
    }
    cost += pages * static_cast<Time>(kPageBytes / 1024) * spec_.kilobyte_latency;
    if (highest - lowest != pages) cost += spec_.scattered_latency;
    if (fault_runs > 1) cost += (fault_runs - 1) * spec_.run_cost;
    if (!state_.touched_blocks[block])
      cost += ranges_.pages_of(block) == kPagesPerBlock ? spec_.block_latency : spec_.partial_block_latency;
    first = last;
  }
  return cost;
}

void UvmDriver::advance_batch() {
  FaultBatch& batch = state_.batch;
  if (!state_.busy || !batch.planned) return;
  while (batch.next_run < batch.runs.size()) {
    if (state_.to_device_busy) return;
    PageRun& run = batch.runs[batch.next_run];
    if (wait_for_frames(run)) return;
    if (run.count == 0) {
      ++batch.next_run;
      continue;
    }
    PageRun part = run;
    part.count = fitting(run);
    run.first += part.count;
    run.count -= part.count;
    if (run.count == 0) ++batch.next_run;
    begin_migration(part);
  }
  if (state_.to_device_busy && state_.to_device.cause != Cause::command) return;
  if (batch.next_fault == batch.faults.size()) return end_batch();
  batch.planned = false;
  plan_block();
  batch_timer_.after(block_cost(), kBeginsTransfers);
}

// Frees frames for a run; true if it has to wait for them. Prefetched pages are given up where no other page
// can be evicted, which leaves an empty run.
bool UvmDriver::wait_for_frames(PageRun& run) {
  const bool enough = free_frames_for(run);
  const std::uint32_t fit = fitting(run);
  if (fit == run.count) return false;
  if (enough) return true;
  if (fit != 0) return false;
  if (run.cause == Cause::prefetch) {
    statistics_.prefetches_dropped += run.count;
    for (PageIndex page = run.first; page < run.first + run.count; ++page) {
      residency_.give_up_arriving(page);
      if (entry(page).is(Page::awaited)) gmmu_->refault(page);
    }
    run.count = 0;
    return false;
  }
  // Migrated pages are not evicted before their translations are replayed.
  std::vector<PageIndex> served;
  served.swap(state_.batch.served);
  for (const PageIndex page : served) gmmu_->replay(page);
  if (gmmu_->replays_pending() == 0 && state_.unmapped.size() == 0 && !state_.to_host_busy &&
      !state_.to_device_busy)
    throw SimulationError("the device's memory of " + std::to_string(spec_.capacity) +
                          " bytes has no room for a page of managed memory: other allocations take " +
                          std::to_string(state_.frames.reserved() * static_cast<std::int64_t>(kPageBytes)) +
                          " bytes");
  return true;
}

// Replays the translations of migrated pages. With measured handling the driver drops visible faults that did
// not fit into the batch, and if many were repeated also those that arrived since; then all waiting
// translations are replayed and fault again.
void UvmDriver::end_batch() {
  FaultBatch& batch = state_.batch;
  FaultBuffer& buffer = shared_.fault_buffer;
  statistics_.fault_batches += batch.entries != 0;
  if (!batch.faults.empty() || !batch.served.empty()) {
    const PageIndex first = batch.faults.empty() ? batch.served.front() : batch.faults.front();
    shared_.add_to_log(PageEventKind::batch, Cause::fault, first,
                       static_cast<std::uint32_t>(batch.faults.size()), batch.begun, now());
    if (Timeline* shown = owner_.timeline(); shown != nullptr)
      shown->span(shown->name("fault batch"), batch.begun, now());
  }
  statistics_.driver_busy += now() - state_.busy_since;
  batch.block = kNone;
  if (!fixed_ && batch.entries != 0) {
    buffer.drop(batch.repeats * kManyRepeats > batch.entries ? buffer.visible(now()) : batch.left_over);
    gmmu_->replay_all();
    batch.begun = state_.busy_since = now();
    batch.planned = false;
    batch_timer_.after(spec_.fetch_latency, kFetchesFaults);
    return;
  }
  std::vector<PageIndex> served;
  served.swap(batch.served);
  for (const PageIndex page : served) gmmu_->replay(page);
  state_.busy = false;
  begin_batch();
}

}  // namespace manyscale::gpu
