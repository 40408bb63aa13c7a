// SPDX-License-Identifier: Apache-2.0
// The GMMU's page faults: far-fault MSHRs, the fault buffer, replays and TLB shootdowns.
#include "gpu/uvm/gmmu.hpp"
#include "gpu/uvm/sm_mask.hpp"

namespace manyscale::gpu {

using Answer = TranslationResponseKind;

// A translation waits until its page has migrated; `is_fault`: the page is not migrating yet.
void Gmmu::wait_for_page(const Lookup& lookup, bool is_fault) {
  Page& page = entry(lookup.page);
  FaultMshrs& mshrs = state_.mshrs;
  if (!lookup.replayed) sms_.send({address_of(lookup.page), lookup.tag, Answer::faulted}, 0, lookup.lane);
  update_stalled_time();
  const bool has_mshr = mshrs.has(lookup.page);
  if (!has_mshr && mshrs.open_pages() >= spec_.outstanding_faults) {
    state_.stalled.push_back(lookup);
    update_stalled_time();
    return;
  }
  const bool merges = shared_.fault_buffer.merges();
  if (!lookup.replayed && (has_mshr || !is_fault)) ++statistics_.merged_faults;
  if (!merges && !has_mshr) state_.unreplayed.push_back(lookup.page);
  mshrs.wait(lookup);
  page.set(Page::awaited);
  if (lookup.write) page.set(Page::write_awaited);
  update_stalled_time();
  if (is_fault || !merges) write_fault(lookup.page);
}

void Gmmu::write_fault(PageIndex page) {
  Page& at = entry(page);
  const bool first = !at.is(Page::queued);
  const bool merges = shared_.fault_buffer.merges();
  if (!first && merges) return;
  if (first) {
    at.set(Page::queued);
    ++statistics_.faults;
    shared_.add_to_log(PageEventKind::fault, PageEvent::Cause::fault, page, 1, now(), now());
  }
  shared_.fault_buffer.write(page, now(), merges ? 0 : spec_.fault_interval);
  driver_->fault_written(page, first);
}

// The SMs that wait for a page make their requests again; the round trip passes here.
void Gmmu::replay(PageIndex page) {
  update_stalled_time();
  entry(page).clear(Page::awaited | Page::write_awaited);
  state_.mshrs.release(
      page, [&](const Lookup& lookup) { replay_lookup(lookup, 2 * sms_.lanes()[lookup.lane].latency); });
  update_stalled_time();
  for (auto free = spec_.outstanding_faults - state_.mshrs.open_pages(); free > 0 && !state_.stalled.empty();
       --free) {
    replay_lookup(state_.stalled.front(), 0);
    state_.stalled.pop_front();
  }
}

// All waiting translations are made again, so that none has a fault left to write.
void Gmmu::replay_all() {
  shared_.fault_buffer.withdraw(now());
  std::vector<PageIndex> waiting;
  waiting.swap(state_.unreplayed);
  for (const PageIndex page : waiting) replay(page);
}

// A translation is made again after a time; until then its page must not be evicted.
void Gmmu::replay_lookup(Lookup lookup, Time after) {
  lookup.replayed = true;
  ++entry(lookup.page).pins;
  ++state_.replays_pending;
  if (after == 0)
    look_up(lookup);
  else
    replays_.after(after, lookup);
}

void Gmmu::update_stalled_time() {
  if (state_.stalled_since >= 0) statistics_.stalled += now() - state_.stalled_since;
  state_.stalled_since = state_.mshrs.waiting() != 0 || !state_.stalled.empty() ? now() : -1;
}

Time Gmmu::invalidate(const std::vector<PageIndex>& pages) {
  for (const PageIndex page : pages) state_.l2_tlb.drop(page);
  if (flushes_always_)
    flush_tlbs();
  else
    shoot_down(pages);
  return state_.invalidation_time;
}

void Gmmu::mappings_added() {
  if (flushes_always_) flush_tlbs();
}

// Invalidates pages in the TLBs of the SMs that may have them, a message for each run of pages.
void Gmmu::shoot_down(const std::vector<PageIndex>& pages) {
  for (std::size_t first = 0; first < pages.size();) {
    std::uint64_t holders = 0;
    std::size_t last = first;
    do {
      GmmuState::PageUse& page = state_.pages[pages[last]];
      holders |= page.holders;
      page.holders = 0;
      ++last;
    } while (last < pages.size() && pages[last] == pages[last - 1] + 1 && pages[last] % kPagesPerBlock != 0);
    const auto count = static_cast<std::uint32_t>(last - first);
    for (std::uint32_t lane = 0; holders != 0 && lane < sms_.width(); ++lane) {
      if ((holders & sm_bit(lane)) == 0) continue;
      ++statistics_.shootdowns;
      sms_.send({address_of(pages[first]), count, Answer::shootdown}, 0, lane);
    }
    first = last;
  }
}

void Gmmu::flush_tlbs() {
  for (std::uint32_t lane = 0; lane < sms_.width(); ++lane) {
    if ((state_.holders & sm_bit(lane)) == 0) continue;
    ++statistics_.shootdowns;
    sms_.send({0, 0, Answer::shootdown_all}, 0, lane);
  }
  state_.holders = 0;
  state_.l2_tlb.clear();
}

}  // namespace manyscale::gpu
