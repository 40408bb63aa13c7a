// SPDX-License-Identifier: Apache-2.0
// State of a GPU's memory management unit: its walkers, L2 TLB, far-fault MSHRs and remote accesses.
#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "gpu/uvm/fault_mshrs.hpp"
#include "gpu/uvm/page_walks.hpp"
#include "gpu/uvm/pool.hpp"

namespace manyscale::gpu {

// A remote access on the link.
struct RemoteAccess {
  Lookup lookup;
  bool returns = false;  // of an atomic operation: its result has yet to cross the link
};

struct GmmuState {
  // What the GMMU knows of one page.
  struct PageUse {
    Time walk_until = 0;        // a page walk for it ends then
    std::uint64_t holders = 0;  // SMs whose TLBs may have it, a bit for each number modulo 64
  };

  GmmuState(std::int64_t walker_count, Time walk_latency, std::int64_t l2_tlb_entries)
      : walkers(walker_count, walk_latency), l2_tlb(l2_tlb_entries) {}

  PageWalkers walkers;
  SharedTlb l2_tlb;
  FaultMshrs mshrs;
  std::deque<Lookup> stalled;         // on a full fault buffer: all MSHRs are taken
  std::vector<PageIndex> unreplayed;  // pages with an MSHR since the last replay_all
  std::vector<PageUse> pages;
  std::uint64_t holders = 0;  // SMs whose TLBs may have any entry
  bool flushes_at_resume = false;
  Time stalled_since = -1;
  std::uint64_t replays_pending = 0;
  Pool<RemoteAccess> remote_accesses;
  Time invalidation_time = 0;  // a round trip to the farthest SM
};

}  // namespace manyscale::gpu
