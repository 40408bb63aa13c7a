// SPDX-License-Identifier: Apache-2.0
// Frames of the device's memory, and the ways of pages into them and out of them.
#include <algorithm>

#include "gpu/uvm/unified_memory.hpp"

namespace manyscale::gpu {

// Takes pages from the device until so many frames are free or will be, which is asked anew after each
// choice; false if no more page can leave.
template <class Wanted>
bool UnifiedMemory::evict_until(const Wanted& wanted) {
  Leaving leaving;
  bool enough = true;
  while (frames_.free() + frames_.leaving() < wanted()) {
    oversubscribed_ = true;
    victims_.clear();
    bool later = false;
    for (const bool spare_preferred : {true, false}) {
      if (!victims_.empty() || later) break;
      if (frames_.by_root())
        later = choose_root(spare_preferred);
      else
        eviction_->choose(residency_, spare_preferred, random(), victims_);
    }
    if (victims_.empty()) {
      enough = later;
      break;
    }
    leaving.cuts.push_back(static_cast<std::uint32_t>(victims_.size()));
    for (const PageIndex page : victims_) {
      residency_.begin_leaving(page);
      eviction_->left(page);
      frames_.will_leave(page);
      leaving.pages.push_back(page);
    }
  }
  if (!leaving.pages.empty()) begin_leaving(std::move(leaving));
  return enough;
}

bool UnifiedMemory::make_room(std::int64_t frames) {
  return evict_until([&] { return frames; });
}

bool UnifiedMemory::make_room_for(const Run& run) {
  return evict_until([&] { return frames_.wanted(run.first, run.count); });
}

// The oldest root chunk leaves with all that is in it, also what has come in the same group of faults; but
// not what came for the block that is being served, before its SMs are told. Returns true if it has to wait
// for pages that SMs are just about to use.
bool UnifiedMemory::choose_root(bool spare_preferred) {
  RootChunks& roots = frames_.roots();
  for (RootChunks::Root root = roots.oldest(); root != kNone; root = roots.newer(root)) {
    if (roots.busy(root)) continue;
    bool spared = false, pinned = false;
    victims_.clear();
    roots.for_chunks(root, [&](ChunkIndex chunk) {
      for (PageIndex page = chunk * kPagesPerChunk; page < (chunk + 1) * kPagesPerChunk; ++page) {
        const Page& at = residency_.at(page);
        if (!at.is(Page::on_device)) continue;
        spared = spared || (spare_preferred && at.is(Page::prefer_device)) ||
                 (page / kPagesPerBlock == served_block_ && at.first_waiter != kNone);
        pinned = pinned || at.pins != 0;
        victims_.push_back(page);
      }
    });
    if (spared || victims_.empty()) continue;
    if (pinned) {
      victims_.clear();
      return true;
    }
    roots.begin_eviction(root);
    return false;
  }
  victims_.clear();
  return false;
}

// How many pages of a run, from its first on, find frames now.
std::uint32_t UnifiedMemory::fitting(const Run& run) const {
  return frames_.fitting(run.first, run.count);
}

void UnifiedMemory::show_transfer(std::string_view what, const Run& run, std::uint32_t track) {
  Timeline* const shown = timeline();
  if (shown != nullptr) shown->span(shown->name(what), run.begun, now(), track);
}

void UnifiedMemory::show_frames() {
  statistics_.resident_pages.set(static_cast<double>(frames_.used()));
  show_level("resident pages", static_cast<double>(frames_.used()));
}

void UnifiedMemory::keep_share_free() {
  if (spec_.free_share == 0) return;
  make_room(static_cast<std::int64_t>(static_cast<double>(frames_.usable()) * spec_.free_share));
}

// Gives frames to pages that are to come and sends them over the link, which is free.
void UnifiedMemory::begin_run(const Run& run) {
  frames_.take(run.first, run.count);
  show_frames();
  Run begun = run;
  begun.begun = now();
  if (run.populates) {
    arrive(begun);
    keep_share_free();
    return;
  }
  const std::uint32_t bytes = run.count * static_cast<std::uint32_t>(kPageBytes);
  to_device_busy_ = true;
  to_device_ = begun;
  statistics_.bytes_to_device += bytes;
  ++statistics_.transfers_to_device;
  statistics_.transfer_sizes.record(bytes);
  link_.send({.page = 0, .bytes = bytes, .to_host = false, .duration = transfer_time_(bytes, false)});
  keep_share_free();
}

void UnifiedMemory::arrive(const Run& run) {
  log(run.populates ? PageEvent::Kind::populate : PageEvent::Kind::to_device, run.cause, run.first, run.count,
      run.begun, now());
  if (!run.populates) show_transfer("pages to the device", run, 1);
  frames_.arrive(run.first, run.count);
  AllocationStatistics& allocation = allocation_of(run.first);
  allocation.pages_to_device += run.count;
  allocation.resident_pages += run.count;
  (run.cause == Cause::fault      ? statistics_.pages_faulted_in
   : run.cause == Cause::prefetch ? statistics_.pages_prefetched
                                  : statistics_.pages_commanded_in) += run.count;
  if (run.populates) statistics_.pages_populated += run.count;
  for (PageIndex page = run.first; page < run.first + run.count; ++page) {
    Page& at = residency_.at(page);
    residency_.arrive(page, at.is(Page::read_mostly) && at.is(Page::on_host) && !far_faults_.has_writer(at));
    eviction_->arrived(page);
    if (run.cause == Cause::prefetch) at.set(Page::unused_prefetch);
    if (at.is(Page::left_before)) {
      ++statistics_.thrashed_pages;
      ++allocation.thrashed_pages;
    }
    if (at.first_waiter == kNone) continue;
    if (replays_at_arrival_ || run.cause == Cause::command)
      release(page);
    else
      batch_served_.push_back(page);
  }
  if (shoots_down_all_) shoot_down_all();
}

// Takes pages, which no translation finds any more, from the TLBs; then they can go.
void UnifiedMemory::begin_leaving(Leaving leaving) {
  for (std::size_t i = 0; i < leaving.pages.size(); ++i) {
    const PageIndex page = leaving.pages[i];
    const ChunkIndex chunk = page / kPagesPerChunk;
    Page& at = residency_.at(page);
    if (at.is(Page::unused_prefetch)) ++statistics_.prefetched_unused;
    at.clear(Page::unused_prefetch);
    l2_tlb_.drop(page);
    if (leaving.cause != Cause::eviction) continue;
    at.set(Page::left_before);
    // A chunk of which nothing is left has made a round trip.
    const bool last = i + 1 == leaving.pages.size() || leaving.pages[i + 1] / kPagesPerChunk != chunk;
    if (last && residency_.valid_in(chunk) == 0) counters_.count_round_trip(chunk);
  }
  shoot_down(leaving.pages);
  shootdown_timer_.after(shootdown_time_, leavings_.add(std::move(leaving)));
}

// No TLB has the pages any more: what the device wrote is known.
void UnifiedMemory::forgotten_by_tlbs(const std::uint32_t& index) {
  const Leaving leaving = leavings_.take(index);
  std::size_t cut = 0;
  for (const std::uint32_t count : leaving.cuts) {
    bool in_run = false;
    for (std::size_t i = cut; i < cut + count; ++i) {
      const PageIndex page = leaving.pages[i];
      const Page& at = residency_.at(page);
      const bool goes = !at.is(Page::on_host) && (at.is(Page::dirty) || !spec_.drop_clean);
      if (!goes) {
        finish_leaving(page, leaving.cause, false);
        in_run = false;
      } else if (in_run && page == leaving.pages[i - 1] + 1 && page % kPagesPerBlock != 0) {
        ++write_backs_.back().count;
      } else {
        write_backs_.push_back({page, 1, leaving.cause, false, 0});
        in_run = true;
      }
    }
    cut += count;
  }
  write_back();
  wake_all();
}

void UnifiedMemory::write_back() {
  if (to_host_busy_ || write_backs_.empty()) return;
  Run& run = write_backs_.front();
  run.begun = now();
  const std::uint32_t bytes = run.count * static_cast<std::uint32_t>(kPageBytes);
  to_host_busy_ = true;
  statistics_.bytes_to_host += bytes;
  ++statistics_.transfers_to_host;
  statistics_.transfer_sizes.record(bytes);
  link_.send({.page = 1, .bytes = bytes, .to_host = true, .duration = transfer_time_(bytes, true)});
}

void UnifiedMemory::finish_leaving(PageIndex page, Cause cause, bool transferred) {
  Page& at = residency_.at(page);
  const bool keeps = at.is(Page::keeps_copy);
  if (!transferred) {
    ++statistics_.pages_dropped;
    log(PageEvent::Kind::drop, cause, page, 1, now(), now());
  }
  residency_.leave(page, transferred || at.is(Page::on_host | Page::backed));
  AllocationStatistics& allocation = allocation_of(page);
  ++allocation.pages_to_host;
  ++(cause == Cause::eviction  ? statistics_.pages_evicted
     : cause == Cause::command ? statistics_.pages_commanded_out
                               : statistics_.pages_to_host);
  if (keeps) {
    eviction_->arrived(page);
    release(page);
    return;
  }
  --allocation.resident_pages;
  frames_.leave(page);
  show_frames();
  if (at.first_waiter != kNone) queue_fault(page);
}

// Something changed that others may have waited for.
void UnifiedMemory::wake_all() {
  advance_driver();
  advance_host();
  advance_prefetches();
}

}  // namespace manyscale::gpu
