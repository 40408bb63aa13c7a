// SPDX-License-Identifier: Apache-2.0
// State of the UVM driver: the fault batch it serves, the frames of the device's memory, outstanding
// migrations and commands of the host.
#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "gpu/uvm/commands.hpp"
#include "gpu/uvm/frames.hpp"
#include "gpu/uvm/page_log.hpp"
#include "gpu/uvm/pool.hpp"
#include "gpu/uvm/uvm_driver_statistics.hpp"

namespace manyscale::gpu {

// Consecutive pages that migrate in one transfer.
struct PageRun {
  PageIndex first = 0;
  std::uint32_t count = 0;
  PageEvent::Cause cause = PageEvent::Cause::fault;
  bool populates = false;  // the pages have no data: no transfer
  Time begun = 0;
};

// Pages that were unmapped together and leave the device once all TLBs have dropped them.
struct UnmappedPages {
  std::vector<PageIndex> pages;
  std::vector<std::uint32_t> choices;  // pages of each choice of the eviction policy; they share no transfer
  PageEvent::Cause cause = PageEvent::Cause::eviction;
};

struct FaultBatch {
  bool planned = false;  // its next transfers can begin
  Time begun = 0;
  std::int64_t entries = 0;       // of the fault buffer
  std::int64_t repeats = 0;       // of these, further faults of the same pages
  std::size_t left_over = 0;      // visible entries that did not fit
  std::vector<PageIndex> faults;  // ascending
  std::size_t next_fault = 0;     // the first of a block that is not yet planned
  std::vector<PageIndex> prefetched;
  std::vector<PageIndex> served;  // migrated pages whose translations are not yet replayed
  std::vector<PageRun> runs;      // of the block that is served now
  std::size_t next_run = 0;
  BlockIndex block = kNone;  // that is served now
};

struct HostCommand {
  RangeStart range;
  std::uint32_t lane = 0;
  std::uint32_t done = 0;  // pages
};

struct UvmDriverState {
  UvmDriverState(std::int64_t capacity, Frames::Unit unit)
      : frames(capacity / static_cast<std::int64_t>(kPageBytes), unit) {}

  // --- Allocations ---
  std::vector<BlockIndex> first_block;            // by block: the first of its allocation
  std::vector<AllocationStatistics> allocations;  // by first block
  std::vector<bool> touched_blocks;               // that ever had pages on the device

  // --- Fault batches ---
  bool busy = false;
  bool cold = true;
  Time busy_since = 0;
  FaultBatch batch;

  // --- Frames and migrations ---
  Frames frames;
  bool oversubscribed = false;
  bool to_device_busy = false;
  PageRun to_device;
  bool to_host_busy = false;
  std::deque<PageRun> write_backs;  // the first is on the link if that is busy
  Pool<UnmappedPages> unmapped;     // that TLBs may still have
  std::vector<PageIndex> victims;

  // --- Commands of the host ---
  std::deque<HostCommand> prefetches;  // to the device
  std::deque<HostCommand> host_commands;
  bool host_in_fault = false;
  bool host_fault_paid = false;
};

}  // namespace manyscale::gpu
