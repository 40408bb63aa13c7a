// SPDX-License-Identifier: Apache-2.0
// The port between the GMMU (hardware) and the UVM driver (software). It has no latency: one component owns
// both sides, and a call happens at the present time. It carries
//   GMMU to driver (UvmDriverPort):  interrupts for page faults, notifications of accesses, the end of
//                                    replayed translations, and the question whether a page stays on the
//                                    host;
//   driver to GMMU (GmmuPort):       replays, TLB invalidations, and growth and removal of page-table
//   entries; both (UvmSharedState):           memory that both reach: the page table, the fault buffer, the
//   access
//                                    counters and the page log.
// Translations of SMs, remote accesses and copies of pages do not pass here: they have ports of their own.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/time.hpp"
#include "gpu/uvm/access_counters.hpp"
#include "gpu/uvm/fault_buffer.hpp"
#include "gpu/uvm/managed_ranges.hpp"
#include "gpu/uvm/page_log.hpp"
#include "gpu/uvm/residency.hpp"

namespace manyscale::gpu {

// What the GMMU calls. Implemented by the driver.
class UvmDriverPort {
 public:
  virtual ~UvmDriverPort() = default;
  // Interrupt: a fault of a page is in the fault buffer; `first`: the only one of this page.
  virtual void fault_written(PageIndex page, bool first) = 0;
  // Whether an access to a page that is not on the device is made remotely, in the host's memory.
  virtual bool maps_remotely(PageIndex page, bool write) = 0;
  // SMs accessed a page on the device. Called if all accesses are notified, or the page is an unused
  // prefetch.
  virtual void accessed(PageIndex page, std::uint32_t accesses) = 0;
  // No replayed translation pins a page any longer.
  virtual void unpinned() = 0;
};

// What the driver calls. Implemented by the GMMU.
class GmmuPort {
 public:
  virtual ~GmmuPort() = default;
  // Writes the fault of a page with waiting translations to the fault buffer again.
  virtual void refault(PageIndex page) = 0;
  // The translations that wait for a page, or for any page since the last replay_all, are made again.
  virtual void replay(PageIndex page) = 0;
  virtual void replay_all() = 0;
  // Replayed translations that are not finished; each pins its page.
  virtual std::uint64_t replays_pending() const = 0;
  // Removes pages from all TLBs. Returns how long that takes; accesses through the entries can happen until
  // then.
  virtual Time invalidate(const std::vector<PageIndex>& pages) = 0;
  // Pages were added to the page table.
  virtual void mappings_added() = 0;
  // The page table has so many entries from now on.
  virtual void grow(PageIndex pages) = 0;
  // Whether translations of a range of addresses wait or are outstanding.
  virtual bool uses(std::uint64_t address, std::uint64_t bytes) const = 0;
  // The entry of a page is removed, between runs; `mapped`: TLBs may have it.
  virtual void forget(PageIndex page, bool mapped) = 0;
};

// Memory that both sides reach.
struct UvmSharedState {
  explicit UvmSharedState(bool has_one_memory, std::int64_t log_rows)
      : one_memory(has_one_memory), log(log_rows) {}

  // Whether host and device have one memory: then all pages are mapped, and nothing migrates.
  const bool one_memory;
  const std::shared_ptr<ManagedRanges> ranges = std::make_shared<ManagedRanges>();
  Residency residency{ranges};
  FaultBuffer fault_buffer;
  AccessCounters access_counters;
  bool notifies_all_accesses = false;  // the driver's choice: its eviction policy observes accesses
  PageLog log;

  void add_to_log(PageEventKind kind, PageEvent::Cause cause, PageIndex first, std::uint32_t pages,
                  Time begin, Time end) {
    if (log.wanted()) log.add({begin, end, ranges->address_of(first), pages, kind, cause});
  }
};

}  // namespace manyscale::gpu
