// SPDX-License-Identifier: Apache-2.0
// What the host does with ranges of managed memory: prefetches in either direction, and accesses of its own,
// which bring pages back. Those to the device and those to the host go on one after the other.
#include <algorithm>

#include "gpu/uvm/unified_memory.hpp"

namespace manyscale::gpu {

void UnifiedMemory::start_range(const RangeStart& range, std::uint32_t lane) {
  if (shared_) {
    scheduler_.send({range.command}, 0, lane);
    return;
  }
  const bool to_device = range.kind == RangeStart::Kind::prefetch_to_device;
  (to_device ? prefetches_ : host_commands_).push_back({range, lane, 0});
  if (to_device)
    advance_prefetches();
  else
    advance_host();
}

void UnifiedMemory::end_range(std::deque<HostCommand>& commands) {
  scheduler_.send({commands.front().range.command}, 0, commands.front().lane);
  commands.pop_front();
  if (&commands == &host_commands_) host_fault_paid_ = false;
}

// Pages come as runs within a block of 2 MiB, when no fault wants the link.
void UnifiedMemory::advance_prefetches() {
  while (!prefetches_.empty()) {
    if (to_device_busy_) return;
    HostCommand& command = prefetches_.front();
    if (command.done == command.range.pages) {
      end_range(prefetches_);
      continue;
    }
    const PageIndex first = ranges_->page_of((command.range.first_page + command.done) * kPageBytes);
    if (first == kNoPage || residency_.at(first).is(Page::on_device)) {
      if (first != kNoPage) eviction_->used(first, 0);
      ++command.done;
      continue;
    }
    if (!residency_.can_come(first)) return;  // it is on its way in or out
    Run run{first, 0, Cause::command, !residency_.at(first).is(Page::on_host), 0};
    const std::uint32_t most =
        std::min(command.range.pages - command.done, kPagesPerBlock - first % kPagesPerBlock);
    while (run.count < most && residency_.can_come(first + run.count) &&
           residency_.at(first + run.count).is(Page::on_host) == !run.populates)
      ++run.count;
    const bool enough = make_room_for(run);
    if (fitting(run) < run.count && enough) return;
    run.count = fitting(run);
    if (run.count == 0) {
      if (pinned_ != 0 || leavings_.size() != 0 || to_host_busy_ || driver_busy_) return;
      end_range(prefetches_);  // nothing can leave: as many pages as fit are there
      continue;
    }
    for (std::uint32_t i = 0; i < run.count; ++i) residency_.begin_arriving(first + i);
    command.done += run.count;
    begin_run(run);
  }
}

void UnifiedMemory::advance_host() {
  while (!host_commands_.empty() && !host_in_fault_) {
    HostCommand& command = host_commands_.front();
    const std::uint32_t from = command.done;
    PageIndex page = kNoPage;
    for (; command.done < command.range.pages; ++command.done) {
      page = ranges_->page_of((command.range.first_page + command.done) * kPageBytes);
      if (page != kNoPage && !host_can_go_on(command, page)) break;
    }
    note_host_accesses(command, from);
    if (command.done == command.range.pages) {
      end_range(host_commands_);
      continue;
    }
    if (!residency_.can_leave(page, false)) return;  // it is on its way, or about to be used
    if (command.range.kind != RangeStart::Kind::prefetch_to_host && !host_fault_paid_) {
      ++statistics_.host_faults;
      log(PageEvent::Kind::host_fault, Cause::host, page, 1, now(), now() + spec_.host_fault_latency);
      host_in_fault_ = true;
      host_timer_.after(spec_.host_fault_latency, true);
      return;
    }
    host_fault_paid_ = false;
    bring_back(command, page);
    return;
  }
}

// The host's accesses from a page of its command on have happened now.
void UnifiedMemory::note_host_accesses(const HostCommand& command, std::uint32_t from) {
  if (!log_.wanted() || command.range.kind == RangeStart::Kind::prefetch_to_host) return;
  const auto kind = command.range.kind == RangeStart::Kind::host_write ? PageEvent::Kind::host_write
                                                                       : PageEvent::Kind::host_read;
  const auto page_at = [&](std::uint32_t i) {
    return ranges_->page_of((command.range.first_page + i) * kPageBytes);
  };
  while (from < command.done) {
    std::uint32_t to = from;
    while (to < command.done && page_at(to) != kNoPage) ++to;
    if (to != from) log(kind, Cause::host, page_at(from), to - from, now(), now());
    from = to + 1;
  }
}

void UnifiedMemory::host_faulted(const bool&) {
  host_in_fault_ = false;
  host_fault_paid_ = true;
  advance_host();
}

// Whether the host finds a page as it needs it.
bool UnifiedMemory::host_can_go_on(const HostCommand& command, PageIndex page) {
  Page& at = residency_.at(page);
  if (at.is(Page::leaving)) return false;
  const bool writes = command.range.kind == RangeStart::Kind::host_write;
  if (at.is(Page::on_device)) return at.is(Page::on_host) && !writes;
  // What is on its way to the device is still read from where it came.
  if (at.is(Page::arriving)) return !writes && at.is(Page::on_host);
  at.set(Page::on_host);  // if it was nowhere, it comes to be there
  return true;
}

// The pages around one that the host lacks leave the device together.
void UnifiedMemory::bring_back(const HostCommand& command, PageIndex page) {
  const auto around =
      static_cast<std::uint32_t>(spec_.host_granularity / static_cast<std::int64_t>(kPageBytes));
  PageIndex first = page / around * around;
  PageIndex last = first + around;
  const bool commanded = command.range.kind == RangeStart::Kind::prefetch_to_host;
  if (commanded) {
    first = page;
    last = std::min(page / kPagesPerBlock * kPagesPerBlock + kPagesPerBlock,
                    page + (command.range.pages - command.done));
  }
  const bool writes = command.range.kind == RangeStart::Kind::host_write;
  Leaving leaving;
  leaving.cause = commanded ? Cause::command : Cause::host;
  for (PageIndex other = first; other < last; ++other) {
    if (!residency_.managed(other) || !residency_.can_leave(other, false)) continue;
    Page& at = residency_.at(other);
    const bool asked = other >= page && other - page < command.range.pages - command.done;
    if (at.is(Page::on_host) && !(writes && asked)) continue;  // a copy for reading stays
    residency_.begin_leaving(other);
    eviction_->left(other);
    if (!writes && at.is(Page::read_mostly))
      at.set(Page::keeps_copy);
    else
      frames_.will_leave(other);
    leaving.pages.push_back(other);
  }
  leaving.cuts.push_back(static_cast<std::uint32_t>(leaving.pages.size()));
  begin_leaving(std::move(leaving));
}

}  // namespace manyscale::gpu
