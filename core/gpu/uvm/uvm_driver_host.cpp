// SPDX-License-Identifier: Apache-2.0
// The UVM driver's commands of the host: prefetches in either direction, and accesses of the host, which
// migrate pages back. Commands of one direction are executed in order.
#include <algorithm>

#include "gpu/uvm/uvm_driver.hpp"

namespace manyscale::gpu {

void UvmDriver::start_command(const RangeStart& range, std::uint32_t lane) {
  if (shared_.one_memory) {
    scheduler_.send({range.command}, 0, lane);
    return;
  }
  const bool to_device = range.kind == RangeCommandKind::prefetch_to_device;
  (to_device ? state_.prefetches : state_.host_commands).push_back({range, lane, 0});
  if (to_device)
    advance_prefetches();
  else
    advance_host();
}

void UvmDriver::end_command(std::deque<HostCommand>& commands) {
  scheduler_.send({commands.front().range.command}, 0, commands.front().lane);
  commands.pop_front();
  if (&commands == &state_.host_commands) state_.host_fault_paid = false;
}

// Migrates runs within a block of 2 MiB while no fault batch uses the link.
void UvmDriver::advance_prefetches() {
  while (!state_.prefetches.empty()) {
    if (state_.to_device_busy) return;
    HostCommand& command = state_.prefetches.front();
    if (command.done == command.range.pages) {
      end_command(state_.prefetches);
      continue;
    }
    const PageIndex first = ranges_.page_of((command.range.first_page + command.done) * kPageBytes);
    if (first == kNoPage || entry(first).is(Page::on_device)) {
      if (first != kNoPage) eviction_->used(first, 0);
      ++command.done;
      continue;
    }
    if (!residency_.can_come(first)) return;  // it is migrating
    PageRun run{first, 0, Cause::command, !entry(first).is(Page::on_host), 0};
    const std::uint32_t most =
        std::min(command.range.pages - command.done, kPagesPerBlock - first % kPagesPerBlock);
    while (run.count < most && residency_.can_come(first + run.count) &&
           entry(first + run.count).is(Page::on_host) == !run.populates)
      ++run.count;
    const bool enough = free_frames_for(run);
    if (fitting(run) < run.count && enough) return;
    run.count = fitting(run);
    if (run.count == 0) {
      if (gmmu_->replays_pending() != 0 || state_.unmapped.size() != 0 || state_.to_host_busy || state_.busy)
        return;
      end_command(state_.prefetches);  // no page can be evicted: as many as fit are there
      continue;
    }
    for (std::uint32_t i = 0; i < run.count; ++i) residency_.begin_arriving(first + i);
    command.done += run.count;
    begin_migration(run);
  }
}

void UvmDriver::advance_host() {
  while (!state_.host_commands.empty() && !state_.host_in_fault) {
    HostCommand& command = state_.host_commands.front();
    const std::uint32_t from = command.done;
    PageIndex page = kNoPage;
    for (; command.done < command.range.pages; ++command.done) {
      page = ranges_.page_of((command.range.first_page + command.done) * kPageBytes);
      if (page != kNoPage && !host_can_access(command, page)) break;
    }
    log_host_accesses(command, from);
    if (command.done == command.range.pages) {
      end_command(state_.host_commands);
      continue;
    }
    if (!residency_.can_leave(page, false)) return;  // it is migrating or pinned
    if (command.range.kind != RangeCommandKind::prefetch_to_host && !state_.host_fault_paid) {
      ++statistics_.host_faults;
      shared_.add_to_log(PageEventKind::host_fault, Cause::host, page, 1, now(),
                         now() + spec_.host_fault_latency);
      state_.host_in_fault = true;
      host_timer_.after(spec_.host_fault_latency, true);
      return;
    }
    state_.host_fault_paid = false;
    migrate_to_host(command, page);
    return;
  }
}

// Logs the accesses of a command from one of its pages on, which happen now.
void UvmDriver::log_host_accesses(const HostCommand& command, std::uint32_t from) {
  if (!shared_.log.wanted() || command.range.kind == RangeCommandKind::prefetch_to_host) return;
  const auto kind = command.range.kind == RangeCommandKind::host_write ? PageEventKind::host_write
                                                                       : PageEventKind::host_read;
  const auto page_at = [&](std::uint32_t i) {
    return ranges_.page_of((command.range.first_page + i) * kPageBytes);
  };
  while (from < command.done) {
    std::uint32_t to = from;
    while (to < command.done && page_at(to) != kNoPage) ++to;
    if (to != from) shared_.add_to_log(kind, Cause::host, page_at(from), to - from, now(), now());
    from = to + 1;
  }
}

void UvmDriver::host_fault_served(const bool&) {
  state_.host_in_fault = false;
  state_.host_fault_paid = true;
  advance_host();
}

// Whether the host can access a page without a fault.
bool UvmDriver::host_can_access(const HostCommand& command, PageIndex page) {
  Page& at = entry(page);
  if (at.is(Page::leaving)) return false;
  const bool writes = command.range.kind == RangeCommandKind::host_write;
  if (at.is(Page::on_device)) return at.is(Page::on_host) && !writes;
  // A page that is migrating to the device can still be read on the host.
  if (at.is(Page::arriving)) return !writes && at.is(Page::on_host);
  at.set(Page::on_host);  // a page without data is created there
  return true;
}

// The pages around one that the host faulted on migrate together.
void UvmDriver::migrate_to_host(const HostCommand& command, PageIndex page) {
  const auto around =
      static_cast<std::uint32_t>(spec_.host_granularity / static_cast<std::int64_t>(kPageBytes));
  PageIndex first = page / around * around;
  PageIndex last = first + around;
  const bool commanded = command.range.kind == RangeCommandKind::prefetch_to_host;
  if (commanded) {
    first = page;
    last = std::min(page / kPagesPerBlock * kPagesPerBlock + kPagesPerBlock,
                    page + (command.range.pages - command.done));
  }
  const bool writes = command.range.kind == RangeCommandKind::host_write;
  UnmappedPages unmapped;
  unmapped.cause = commanded ? Cause::command : Cause::host;
  for (PageIndex other = first; other < last; ++other) {
    if (!residency_.managed(other) || !residency_.can_leave(other, false)) continue;
    Page& at = entry(other);
    const bool requested = other >= page && other - page < command.range.pages - command.done;
    if (at.is(Page::on_host) && !(writes && requested)) continue;  // a read-only copy stays
    residency_.begin_leaving(other);
    eviction_->left(other);
    if (!writes && at.is(Page::read_mostly))
      at.set(Page::keeps_copy);
    else
      state_.frames.will_leave(other);
    unmapped.pages.push_back(other);
  }
  unmapped.choices.push_back(static_cast<std::uint32_t>(unmapped.pages.size()));
  unmap(std::move(unmapped));
}

}  // namespace manyscale::gpu
