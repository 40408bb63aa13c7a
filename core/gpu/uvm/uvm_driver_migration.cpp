// SPDX-License-Identifier: Apache-2.0
// The UVM driver's migrations and evictions: frames of the device's memory, transfers and TLB invalidations.
#include <algorithm>

#include "gpu/uvm/uvm_driver.hpp"

namespace manyscale::gpu {

namespace {

// Numbers of transfers on the link, one in each direction at a time.
constexpr std::uint64_t kTransferToDevice = 0, kTransferToHost = 1;

}  // namespace

// Evicts pages until so many frames are free or will be; the number is computed again after each choice of
// the policy. False if no further page can be evicted.
template <class Wanted>
bool UvmDriver::evict_until(const Wanted& wanted) {
  UnmappedPages unmapped;
  bool enough = true;
  while (state_.frames.free() + state_.frames.leaving() < wanted()) {
    state_.oversubscribed = true;
    state_.victims.clear();
    bool later = false;
    for (const bool spare_preferred : {true, false}) {
      if (!state_.victims.empty() || later) break;
      if (state_.frames.by_root())
        later = choose_root_chunk(spare_preferred);
      else
        eviction_->choose(residency_, spare_preferred, owner_.random(), state_.victims);
    }
    if (state_.victims.empty()) {
      enough = later;
      break;
    }
    unmapped.choices.push_back(static_cast<std::uint32_t>(state_.victims.size()));
    for (const PageIndex page : state_.victims) {
      residency_.begin_leaving(page);
      eviction_->left(page);
      state_.frames.will_leave(page);
      unmapped.pages.push_back(page);
    }
  }
  if (!unmapped.pages.empty()) unmap(std::move(unmapped));
  return enough;
}

bool UvmDriver::free_frames(std::int64_t frames) {
  return evict_until([&] { return frames; });
}

bool UvmDriver::free_frames_for(const PageRun& run) {
  return evict_until([&] { return state_.frames.wanted(run.first, run.count); });
}

// Chooses all pages of the oldest root chunk, also those that migrated in the same fault batch; but not pages
// of the block that is being served whose translations are not yet replayed. Returns true if it has to wait
// for pinned pages.
bool UvmDriver::choose_root_chunk(bool spare_preferred) {
  RootChunks& roots = state_.frames.roots();
  for (RootChunks::Root root = roots.oldest(); root != kNone; root = roots.newer(root)) {
    if (roots.busy(root)) continue;
    bool spared = false, pinned = false;
    state_.victims.clear();
    roots.for_chunks(root, [&](ChunkIndex chunk) {
      for (PageIndex page = chunk * kPagesPerChunk; page < (chunk + 1) * kPagesPerChunk; ++page) {
        const Page& at = entry(page);
        if (!at.is(Page::on_device)) continue;
        spared = spared || (spare_preferred && at.is(Page::prefer_device)) ||
                 (page / kPagesPerBlock == state_.batch.block && at.is(Page::awaited));
        pinned = pinned || at.pins != 0;
        state_.victims.push_back(page);
      }
    });
    if (spared || state_.victims.empty()) continue;
    if (pinned) {
      state_.victims.clear();
      return true;
    }
    roots.begin_eviction(root);
    return false;
  }
  state_.victims.clear();
  return false;
}

// How many pages of a run, from its first on, find frames now.
std::uint32_t UvmDriver::fitting(const PageRun& run) const {
  return state_.frames.fitting(run.first, run.count);
}

void UvmDriver::show_transfer(std::string_view what, const PageRun& run, std::uint32_t track) {
  Timeline* const shown = owner_.timeline();
  if (shown != nullptr) shown->span(shown->name(what), run.begun, now(), track);
}

void UvmDriver::show_frames() {
  statistics_.resident_pages.set(static_cast<double>(state_.frames.used()));
  owner_.show_level("resident pages", static_cast<double>(state_.frames.used()));
}

void UvmDriver::evict_ahead() {
  if (spec_.free_share == 0) return;
  free_frames(static_cast<std::int64_t>(static_cast<double>(state_.frames.usable()) * spec_.free_share));
}

// Gives frames to the pages of a run and begins their transfer; the link is free.
void UvmDriver::begin_migration(const PageRun& run) {
  state_.frames.take(run.first, run.count);
  show_frames();
  PageRun begun = run;
  begun.begun = now();
  if (run.populates) {
    finish_migration(begun);
    evict_ahead();
    return;
  }
  const std::uint32_t bytes = run.count * static_cast<std::uint32_t>(kPageBytes);
  state_.to_device_busy = true;
  state_.to_device = begun;
  statistics_.bytes_to_device += bytes;
  ++statistics_.transfers_to_device;
  statistics_.transfer_sizes.record(bytes);
  link_.send({.page = kTransferToDevice,
              .bytes = bytes,
              .to_host = false,
              .duration = transfer_time_(bytes, false)});
  evict_ahead();
}

void UvmDriver::finish_migration(const PageRun& run) {
  shared_.add_to_log(run.populates ? PageEventKind::populate : PageEventKind::to_device, run.cause, run.first,
                     run.count, run.begun, now());
  if (!run.populates) show_transfer("pages to the device", run, 1);
  state_.frames.arrive(run.first, run.count);
  AllocationStatistics& allocation = allocation_of(run.first);
  allocation.pages_to_device += run.count;
  allocation.resident_pages += run.count;
  (run.cause == Cause::fault      ? statistics_.pages_faulted_in
   : run.cause == Cause::prefetch ? statistics_.pages_prefetched
                                  : statistics_.pages_commanded_in) += run.count;
  if (run.populates) statistics_.pages_populated += run.count;
  for (PageIndex page = run.first; page < run.first + run.count; ++page) {
    Page& at = entry(page);
    residency_.arrive(page, at.is(Page::read_mostly) && at.is(Page::on_host) && !at.is(Page::write_awaited));
    eviction_->arrived(page);
    if (run.cause == Cause::prefetch) at.set(Page::unused_prefetch);
    if (at.is(Page::evicted_before)) {
      ++statistics_.thrashed_pages;
      ++allocation.thrashed_pages;
    }
    if (!at.is(Page::awaited)) continue;
    if (replays_at_arrival_ || run.cause == Cause::command)
      gmmu_->replay(page);
    else
      state_.batch.served.push_back(page);
  }
  gmmu_->mappings_added();
}

// Pages that are no longer in the page table leave the device once the TLBs have dropped them.
void UvmDriver::unmap(UnmappedPages unmapped) {
  for (std::size_t i = 0; i < unmapped.pages.size(); ++i) {
    const PageIndex page = unmapped.pages[i];
    const ChunkIndex chunk = page / kPagesPerChunk;
    Page& at = entry(page);
    if (at.is(Page::unused_prefetch)) ++statistics_.prefetched_unused;
    at.clear(Page::unused_prefetch);
    if (unmapped.cause != Cause::eviction) continue;
    at.set(Page::evicted_before);
    // A chunk of which nothing is left has made a round trip.
    const bool last = i + 1 == unmapped.pages.size() || unmapped.pages[i + 1] / kPagesPerChunk != chunk;
    if (last && residency_.valid_in(chunk) == 0) shared_.access_counters.count_round_trip(chunk);
  }
  const Time invalidated = gmmu_->invalidate(unmapped.pages);
  invalidation_timer_.after(invalidated, state_.unmapped.add(std::move(unmapped)));
}

// No TLB has the pages any longer, so their dirty bits are final.
void UvmDriver::tlbs_invalidated(const std::uint32_t& index) {
  const UnmappedPages unmapped = state_.unmapped.take(index);
  std::size_t begin = 0;
  for (const std::uint32_t count : unmapped.choices) {
    bool in_run = false;
    for (std::size_t i = begin; i < begin + count; ++i) {
      const PageIndex page = unmapped.pages[i];
      const Page& at = entry(page);
      const bool needs_transfer = !at.is(Page::on_host) && (at.is(Page::dirty) || !spec_.drop_clean);
      if (!needs_transfer) {
        release_page(page, unmapped.cause, false);
        in_run = false;
      } else if (in_run && page == unmapped.pages[i - 1] + 1 && page % kPagesPerBlock != 0) {
        ++state_.write_backs.back().count;
      } else {
        state_.write_backs.push_back({page, 1, unmapped.cause, false, 0});
        in_run = true;
      }
    }
    begin += count;
  }
  write_back();
  advance_all();
}

void UvmDriver::write_back() {
  if (state_.to_host_busy || state_.write_backs.empty()) return;
  PageRun& run = state_.write_backs.front();
  run.begun = now();
  const std::uint32_t bytes = run.count * static_cast<std::uint32_t>(kPageBytes);
  state_.to_host_busy = true;
  statistics_.bytes_to_host += bytes;
  ++statistics_.transfers_to_host;
  statistics_.transfer_sizes.record(bytes);
  link_.send(
      {.page = kTransferToHost, .bytes = bytes, .to_host = true, .duration = transfer_time_(bytes, true)});
}

void UvmDriver::release_page(PageIndex page, Cause cause, bool transferred) {
  Page& at = entry(page);
  const bool keeps = at.is(Page::keeps_copy);
  if (!transferred) {
    ++statistics_.pages_dropped;
    shared_.add_to_log(PageEventKind::drop, cause, page, 1, now(), now());
  }
  residency_.leave(page, transferred || at.is(Page::on_host | Page::backed));
  AllocationStatistics& allocation = allocation_of(page);
  ++allocation.pages_to_host;
  ++(cause == Cause::eviction  ? statistics_.pages_evicted
     : cause == Cause::command ? statistics_.pages_commanded_out
                               : statistics_.pages_to_host);
  if (keeps) {
    eviction_->arrived(page);
    gmmu_->replay(page);
    return;
  }
  --allocation.resident_pages;
  state_.frames.leave(page);
  show_frames();
  if (at.is(Page::awaited)) gmmu_->refault(page);
}

void UvmDriver::transfer_moved(std::uint64_t number) {
  if (number == kTransferToDevice) {
    state_.to_device_busy = false;
    const PageRun run = state_.to_device;
    finish_migration(run);
  } else {
    state_.to_host_busy = false;
    const PageRun run = state_.write_backs.front();
    state_.write_backs.pop_front();
    shared_.add_to_log(PageEventKind::to_host, run.cause, run.first, run.count, run.begun, now());
    show_transfer("pages to the host", run, 2);
    for (PageIndex page = run.first; page < run.first + run.count; ++page)
      release_page(page, run.cause, true);
    write_back();
  }
  advance_all();
}

// Frames, the link or pins changed: continues whatever waited for them.
void UvmDriver::advance_all() {
  advance_batch();
  advance_host();
  advance_prefetches();
}

}  // namespace manyscale::gpu
