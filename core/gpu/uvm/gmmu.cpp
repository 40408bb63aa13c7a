// SPDX-License-Identifier: Apache-2.0
// The memory management unit: translations, far faults, remote accesses and shootdowns.
#include <algorithm>
#include <bit>

#include "gpu/uvm/unified_memory.hpp"

namespace manyscale::gpu {

using Answer = TranslationAnswer::Kind;

namespace {

constexpr std::uint32_t kSectorBytes = 32;
// Marks, among the numbers of what crosses the link, remote accesses.
constexpr std::uint64_t kRemote = std::uint64_t{1} << 63;

std::uint64_t holder(std::uint32_t lane) {
  return std::uint64_t{1} << lane % 64;
}

std::uint32_t remote_bytes(const Lookup& lookup) {
  return static_cast<std::uint32_t>(std::popcount(lookup.sectors)) * kSectorBytes;
}

}  // namespace

void UnifiedMemory::receive(const TranslationRequest& request, std::uint32_t lane) {
  const PageIndex page = ranges_->page_of(request.address);
  if (page == kNoPage) return access_fixed_memory(request, lane);
  switch (request.kind) {
    case TranslationRequest::Kind::translate:
      ++statistics_.translations;
      look_up({page, request.tag, lane, request.write, false, 0, now()});
      return;
    case TranslationRequest::Kind::used:
      if (request.write) residency_.at(page).set(Page::dirty);
      note_used(page, request.count);
      return;
    case TranslationRequest::Kind::remote_read:
    case TranslationRequest::Kind::remote_write:
    case TranslationRequest::Kind::remote_atomic:
      look_up_remote(request, lane);
      return;
  }
}

void UnifiedMemory::look_up(const Lookup& lookup) {
  Page& page = residency_.at(lookup.page);
  Time from = now();
  if (spec_.l2_tlb_entries != 0) {
    from += spec_.l2_tlb_latency * period_;
    if (l2_tlb_.look_up(lookup.page)) {
      ++statistics_.l2_tlb_hits;
      page.walk_until = std::max(page.walk_until, from);
      walks_.after(from - now(), lookup);
      return;
    }
  }
  if (page.walk_until > from) {
    ++statistics_.merged_walks;
  } else {
    ++statistics_.walks;
    page.walk_until = walkers_.walk(from);
  }
  walks_.after(page.walk_until - now(), lookup);
}

// What the page table says has been read.
void UnifiedMemory::decide(const Lookup& lookup) {
  Page& page = residency_.at(lookup.page);
  if (lookup.replayed) {
    --page.pins;
    --pinned_;
  }
  if (shared_) return answer(lookup, Answer::mapped);
  if (lookup.sectors != 0 && host_serves(page, lookup.write)) {
    cross_link(lookup, false);
    if (lookup.replayed && page.pins == 0) wake_all();
    return;
  }
  const bool copy = page.is(Page::on_host);
  if (page.is(Page::on_device) && !(copy && lookup.write)) {
    if (lookup.write) page.set(Page::dirty);
    l2_tlb_.fill(lookup.page);
    answer(lookup, copy ? Answer::mapped_read_only : Answer::mapped);
  } else if (page.is(Page::on_device)) {
    ++statistics_.permission_faults;
    wait_for_page(lookup, true);
  } else if (page.is(Page::arriving | Page::leaving)) {
    wait_for_page(lookup, false);
  } else if (lookup.sectors == 0 && stays_remote(lookup.page, lookup.write)) {
    page.set(Page::on_host);  // if it was nowhere, it comes to be there
    answer(lookup, Answer::remote);
  } else {
    wait_for_page(lookup, true);
  }
  if (lookup.replayed && page.pins == 0) wake_all();
}

void UnifiedMemory::answer(const Lookup& lookup, Answer kind) {
  const bool remote_access = lookup.sectors != 0;
  const bool chunk = kind == Answer::mapped && !remote_access && maps_chunk(lookup.page);
  if (kind != Answer::remote) {
    const std::uint64_t bit = remote_access ? 0 : holder(lookup.lane);
    const PageIndex first = chunk ? lookup.page / kPagesPerChunk * kPagesPerChunk : lookup.page;
    for (PageIndex page = first; page < first + (chunk ? kPagesPerChunk : 1); ++page)
      residency_.at(page).holders |= bit;
    holders_ |= bit;
    note_used(lookup.page, 1);
  }
  if (remote_access) {
    kind = Answer::remote_done;
    log(lookup.write ? PageEvent::Kind::remote_write : PageEvent::Kind::remote_read, Cause::fault,
        lookup.page, 1, now(), now());
  }
  if (lookup.replayed) statistics_.fault_time.record(now() - lookup.since);
  sms_.send({ranges_->address_of(lookup.page), lookup.tag, kind, chunk}, 0, lookup.lane);
}

// Whether one translation holds for all of the chunk around a page: each may be read and written on the
// device.
bool UnifiedMemory::maps_chunk(PageIndex page) const {
  if (!maps_chunks_) return false;
  const PageIndex first = page / kPagesPerChunk * kPagesPerChunk;
  for (PageIndex other = first; other < first + kPagesPerChunk; ++other)
    if (!residency_.at(other).is(Page::on_device) || residency_.at(other).is(Page::on_host)) return false;
  return true;
}

void UnifiedMemory::wait_for_page(const Lookup& lookup, bool tell_driver) {
  Page& page = residency_.at(lookup.page);
  if (!lookup.replayed)
    sms_.send({ranges_->address_of(lookup.page), lookup.tag, Answer::faulted}, 0, lookup.lane);
  note_stalls();
  if (page.first_waiter == kNone && far_faults_.open_pages() >= spec_.outstanding_faults) {
    unheard_.push_back(lookup);
    note_stalls();
    return;
  }
  if (!lookup.replayed && (page.first_waiter != kNone || !tell_driver)) ++statistics_.merged_faults;
  if (!fixed_ && page.first_waiter == kNone) waiting_pages_.push_back(lookup.page);
  far_faults_.wait(page, lookup);
  note_stalls();
  if (tell_driver || !fixed_) queue_fault(lookup.page);
}

void UnifiedMemory::note_used(PageIndex page, std::uint32_t accesses) {
  Page& at = residency_.at(page);
  counters_.count(page / kPagesPerChunk, accesses);
  if (!at.is(Page::on_device)) return;
  if (sees_accesses_) eviction_->used(page, accesses);
  if (!at.is(Page::unused_prefetch)) return;
  at.clear(Page::unused_prefetch);
  ++statistics_.prefetched_used;
}

// Whether the device accesses a page of the host's where it is.
bool UnifiedMemory::stays_remote(PageIndex page, bool write) const {
  const Page& at = residency_.at(page);
  if (at.is(Page::prefer_host)) return true;
  if (at.is(Page::accessed_by_device) && at.is(Page::on_host) && !at.is(Page::prefer_device)) return true;
  if (write || remote_ == Remote::off || !at.is(Page::on_host)) return false;
  if (remote_ == Remote::oversubscribed && !oversubscribed_) return false;
  const ChunkIndex chunk = page / kPagesPerChunk;
  std::int64_t threshold = spec_.remote_threshold;
  if (remote_ == Remote::adaptive) {
    threshold = oversubscribed_
                    ? threshold * spec_.remote_penalty * (counters_.round_trips(chunk) + std::int64_t{1})
                    : 1 + threshold * frames_.used() / std::max<std::int64_t>(1, frames_.usable());
  }
  return counters_.accesses(chunk) < threshold;
}

// The SMs that wait for a page are told to ask again; the time for that passes here.
void UnifiedMemory::release(PageIndex page) {
  Page& at = residency_.at(page);
  note_stalls();
  far_faults_.release(at,
                      [&](const Lookup& lookup) { replay(lookup, 2 * sms_.lanes()[lookup.lane].latency); });
  note_stalls();
  for (auto room = spec_.outstanding_faults - far_faults_.open_pages(); room > 0 && !unheard_.empty();
       --room) {
    replay(unheard_.front(), 0);
    unheard_.pop_front();
  }
}

// A translation that waited is made anew after a time; until then its page must not leave.
void UnifiedMemory::replay(Lookup lookup, Time after) {
  lookup.replayed = true;
  ++residency_.at(lookup.page).pins;
  ++pinned_;
  if (after == 0)
    look_up(lookup);
  else
    replays_.after(after, lookup);
}

// Time in which somebody waits counts as stalled.
void UnifiedMemory::note_stalls() {
  if (stalled_since_ >= 0) statistics_.stalled += now() - stalled_since_;
  stalled_since_ = far_faults_.waiting() != 0 || !unheard_.empty() ? now() : -1;
}

// A remote access finds the page where it was, or what has come of it since the SM was told.
void UnifiedMemory::look_up_remote(const TranslationRequest& request, std::uint32_t lane) {
  const PageIndex page = ranges_->page_of(request.address);
  const bool write = request.kind != TranslationRequest::Kind::remote_read;
  const auto sectors = std::max<std::uint8_t>(request.sectors, 1);
  ++(request.kind == TranslationRequest::Kind::remote_write ? statistics_.remote_writes
                                                            : statistics_.remote_reads);
  const Lookup lookup{page, request.tag, lane, write, false, sectors, now()};
  if (!shared_ && host_serves(residency_.at(page), write))
    cross_link(lookup, request.kind == TranslationRequest::Kind::remote_atomic);
  else
    look_up(lookup);
}

// Pinned memory of the host, and memory of other devices, is accessed where it is; no page table knows it.
void UnifiedMemory::access_fixed_memory(const TranslationRequest& request, std::uint32_t lane) {
  using Kind = TranslationRequest::Kind;
  if (request.kind == Kind::translate || request.kind == Kind::used)
    throw SimulationError(name() + " was asked for memory that is not managed");
  const bool write = request.kind != Kind::remote_read;
  ++(request.kind == Kind::remote_write ? statistics_.remote_writes : statistics_.remote_reads);
  const Lookup lookup{kNoPage, request.tag, lane, write, false, request.sectors, now()};
  statistics_.remote_bytes += remote_bytes(lookup);
  send_over_link({lookup, request.kind == Kind::remote_atomic}, write);
}

bool UnifiedMemory::host_serves(const Page& page, bool write) {
  return page.is(Page::on_host) && !page.is(Page::on_device | Page::leaving) &&
         !(write && page.is(Page::arriving));
}

void UnifiedMemory::cross_link(const Lookup& lookup, bool atomic) {
  statistics_.remote_bytes += remote_bytes(lookup);
  note_used(lookup.page, 1);
  log(lookup.write ? PageEvent::Kind::remote_write : PageEvent::Kind::remote_read, Cause::host, lookup.page,
      1, now(), now());
  send_over_link({lookup, atomic}, lookup.write);
}

void UnifiedMemory::send_over_link(const RemoteAccess& access, bool to_host) {
  link_.send({.page = remote_accesses_.add(access) | kRemote,
              .bytes = remote_bytes(access.lookup),
              .to_host = to_host,
              .between = true});
}

void UnifiedMemory::remote_moved(std::uint32_t index) {
  const RemoteAccess access = remote_accesses_.take(index);
  const Lookup& lookup = access.lookup;
  if (access.comes_back) return send_over_link({lookup, false}, false);
  const std::uint64_t address = lookup.page == kNoPage ? 0 : ranges_->address_of(lookup.page);
  sms_.send({address, lookup.tag, Answer::remote_done}, spec_.remote_latency * period_, lookup.lane);
}

void UnifiedMemory::page_moved(const PageMoved& moved, std::uint32_t) {
  if ((moved.page & kRemote) != 0) return remote_moved(static_cast<std::uint32_t>(moved.page));
  if (moved.page == 0) {
    to_device_busy_ = false;
    const Run run = to_device_;
    arrive(run);
  } else {
    to_host_busy_ = false;
    const Run run = write_backs_.front();
    write_backs_.pop_front();
    log(PageEvent::Kind::to_host, run.cause, run.first, run.count, run.begun, now());
    show_transfer("pages to the host", run, 2);
    for (PageIndex page = run.first; page < run.first + run.count; ++page)
      finish_leaving(page, run.cause, true);
    write_back();
  }
  wake_all();
}

// Tells the SMs that may have translations of these pages to forget them, a message for each run.
void UnifiedMemory::shoot_down(const std::vector<PageIndex>& pages) {
  if (shoots_down_all_) return shoot_down_all();
  for (std::size_t first = 0; first < pages.size();) {
    std::uint64_t holders = 0;
    std::size_t last = first;
    do {
      Page& page = residency_.at(pages[last]);
      holders |= page.holders;
      page.holders = 0;
      ++last;
    } while (last < pages.size() && pages[last] == pages[last - 1] + 1 && pages[last] % kPagesPerBlock != 0);
    if (holders != 0) {
      for (std::uint32_t lane = 0; lane < sms_.width(); ++lane) {
        if ((holders & holder(lane)) == 0) continue;
        ++statistics_.shootdowns;
        sms_.send(
            {ranges_->address_of(pages[first]), static_cast<std::uint32_t>(last - first), Answer::shootdown},
            0, lane);
      }
    }
    first = last;
  }
}

void UnifiedMemory::shoot_down_all() {
  for (std::uint32_t lane = 0; lane < sms_.width(); ++lane) {
    if ((holders_ & holder(lane)) == 0) continue;
    ++statistics_.shootdowns;
    sms_.send({0, 0, Answer::shootdown_all}, 0, lane);
  }
  holders_ = 0;
  l2_tlb_.clear();
}

}  // namespace manyscale::gpu
