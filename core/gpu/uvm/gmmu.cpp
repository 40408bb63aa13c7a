// SPDX-License-Identifier: Apache-2.0
// The GMMU's translations: L2 TLB, page walks and responses to SMs.
#include "gpu/uvm/gmmu.hpp"

#include <algorithm>

#include "gpu/uvm/parameter_words.hpp"
#include "gpu/uvm/sm_mask.hpp"

namespace manyscale::gpu {

using Answer = TranslationResponseKind;

Gmmu::Gmmu(const Spec& spec, Component& owner, UvmSharedState& shared, Link& link)
    : spec_(spec),
      owner_(owner),
      shared_(shared),
      link_(link),
      sms_(owner, "sms", "the SMs whose addresses it translates", Links::many),
      walks_(owner),
      replays_(owner),
      period_(period_of(spec.clock)),
      maps_chunks_(one_of<2>("mapping", spec.mapping, {"page", "chunk"}) == 1),
      flushes_always_(one_of<2>("shootdown", spec.shootdown, {"page", "all"}) == 1),
      state_(spec.walkers, spec.walk_latency * period_, spec.l2_tlb_entries) {
  sms_.on_receive<&Gmmu::receive>(*this);
  walks_.on_expire<&Gmmu::finish_walk>(*this);
  replays_.on_expire<&Gmmu::look_up>(*this);
}

void Gmmu::start() {
  // An access that an SM made before it received an invalidation is here after a round trip.
  for (const auto& lane : sms_.lanes())
    state_.invalidation_time = std::max(state_.invalidation_time, 2 * lane.latency);
}

void Gmmu::resume() {
  if (state_.flushes_at_resume) flush_tlbs();
  state_.flushes_at_resume = false;
}

void Gmmu::add_waits(std::vector<Wait>& waits) const {
  if (state_.mshrs.waiting() != 0)
    waits.push_back(
        {std::to_string(state_.mshrs.open_pages()) + " pages have not migrated to the device", ""});
}

void Gmmu::grow(PageIndex pages) {
  state_.pages.resize(pages);
  state_.mshrs.grow(pages);
  state_.l2_tlb.grow(pages);
}

bool Gmmu::uses(std::uint64_t address, std::uint64_t bytes) const {
  for (const Lookup& lookup : state_.stalled)
    if (address_of(lookup.page) - address < bytes) return true;
  for (std::uint64_t at = address; at < address + bytes; at += kPageBytes) {
    const PageIndex page = shared_.ranges->page_of(at);
    const Time walk_until = state_.pages[page].walk_until;
    if (entry(page).pins != 0 || state_.mshrs.has(page) || (walk_until != 0 && walk_until >= now()))
      return true;
  }
  return false;
}

void Gmmu::forget(PageIndex page, bool mapped) {
  if (mapped) state_.flushes_at_resume = true;
  state_.l2_tlb.drop(page);
  state_.pages[page] = {};
}

void Gmmu::receive(const TranslationRequest& request, std::uint32_t lane) {
  const PageIndex page = shared_.ranges->page_of(request.address);
  if (page == kNoPage) return access_unmanaged(request, lane);
  switch (request.kind) {
    case TranslationRequestKind::translate:
      ++statistics_.translations;
      look_up({page, request.tag, lane, request.write, false, 0, now()});
      return;
    case TranslationRequestKind::used:
      if (request.write) entry(page).set(Page::dirty);
      count_accesses(page, request.count);
      return;
    case TranslationRequestKind::remote_read:
    case TranslationRequestKind::remote_write:
    case TranslationRequestKind::remote_atomic:
      look_up_remote(request, lane);
      return;
  }
}

void Gmmu::look_up(const Lookup& lookup) {
  Time& walk_until = state_.pages[lookup.page].walk_until;
  Time from = now();
  if (spec_.l2_tlb_entries != 0) {
    from += spec_.l2_tlb_latency * period_;
    if (state_.l2_tlb.look_up(lookup.page)) {
      ++statistics_.l2_tlb_hits;
      walk_until = std::max(walk_until, from);
      walks_.after(from - now(), lookup);
      return;
    }
  }
  if (walk_until > from) {
    ++statistics_.merged_walks;
  } else {
    ++statistics_.walks;
    walk_until = state_.walkers.walk(from);
  }
  walks_.after(walk_until - now(), lookup);
}

// The page-table entry has been read.
void Gmmu::finish_walk(const Lookup& lookup) {
  Page& page = entry(lookup.page);
  if (lookup.replayed) {
    --page.pins;
    --state_.replays_pending;
  }
  if (shared_.one_memory) return respond(lookup, Answer::mapped);
  const bool read_only = page.is(Page::on_host);
  if (lookup.sectors != 0 && host_serves(page, lookup.write)) {
    access_host(lookup, false);
  } else if (page.is(Page::on_device) && !(read_only && lookup.write)) {
    if (lookup.write) page.set(Page::dirty);
    state_.l2_tlb.fill(lookup.page);
    respond(lookup, read_only ? Answer::mapped_read_only : Answer::mapped);
  } else if (page.is(Page::on_device)) {
    ++statistics_.permission_faults;
    wait_for_page(lookup, true);
  } else if (page.is(Page::arriving | Page::leaving)) {
    wait_for_page(lookup, false);
  } else if (lookup.sectors == 0 && driver_->maps_remotely(lookup.page, lookup.write)) {
    respond(lookup, Answer::remote);
  } else {
    wait_for_page(lookup, true);
  }
  if (lookup.replayed && page.pins == 0) driver_->unpinned();
}

void Gmmu::respond(const Lookup& lookup, Answer kind) {
  const bool remote_access = lookup.sectors != 0;
  const bool chunk = kind == Answer::mapped && !remote_access && maps_chunk(lookup.page);
  if (kind != Answer::remote) {
    const std::uint64_t bit = remote_access ? 0 : sm_bit(lookup.lane);
    const PageIndex first = chunk ? lookup.page / kPagesPerChunk * kPagesPerChunk : lookup.page;
    for (PageIndex page = first; page < first + (chunk ? kPagesPerChunk : 1); ++page)
      state_.pages[page].holders |= bit;
    state_.holders |= bit;
    count_accesses(lookup.page, 1);
  }
  if (remote_access) {
    kind = Answer::remote_done;
    shared_.add_to_log(lookup.write ? PageEventKind::remote_write : PageEventKind::remote_read,
                       PageEvent::Cause::fault, lookup.page, 1, now(), now());
  }
  if (lookup.replayed) statistics_.fault_time.record(now() - lookup.since);
  sms_.send({address_of(lookup.page), lookup.tag, kind, chunk}, 0, lookup.lane);
}

// Whether one TLB entry can hold all of the chunk around a page: all of it is on the device and writable.
bool Gmmu::maps_chunk(PageIndex page) const {
  if (!maps_chunks_) return false;
  const PageIndex first = page / kPagesPerChunk * kPagesPerChunk;
  for (PageIndex other = first; other < first + kPagesPerChunk; ++other)
    if (!entry(other).is(Page::on_device) || entry(other).is(Page::on_host)) return false;
  return true;
}

void Gmmu::count_accesses(PageIndex page, std::uint32_t accesses) {
  shared_.access_counters.count(page / kPagesPerChunk, accesses);
  const Page& at = entry(page);
  if (at.is(Page::on_device) && (shared_.notifies_all_accesses || at.is(Page::unused_prefetch)))
    driver_->accessed(page, accesses);
}

}  // namespace manyscale::gpu
