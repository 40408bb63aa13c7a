// SPDX-License-Identifier: Apache-2.0
// The page table of managed memory: where each page is and what is happening to it.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/uvm/managed_ranges.hpp"

namespace manyscale::gpu {

// The page-table entry of a page of 4 KiB, with the driver's state of the page. The page has a frame of the
// device's memory while it is on the device, arriving or leaving. The GMMU writes `dirty`, `queued`,
// `awaited`, `write_awaited` and `pins`; all else is written by the driver.
struct Page {
  enum Flag : std::uint16_t {
    on_device = 1 << 0,
    on_host = 1 << 1,   // with on_device: read duplication, a read-only copy on either side
    arriving = 1 << 2,  // migrating to the device, or chosen to
    leaving = 1 << 3,   // unmapped from the device, still migrating to the host
    dirty = 1 << 4,     // the device wrote it since it migrated
    backed = 1 << 5,    // the host still has a copy from before the migration
    queued = 1 << 6,    // its fault is in the fault buffer
    unused_prefetch = 1 << 7,
    evicted_before = 1 << 8,  // migrating to the device again is thrashing
    keeps_copy = 1 << 9,      // while leaving: the device keeps a read-only copy
    read_mostly = 1 << 10,
    prefer_device = 1 << 11,
    prefer_host = 1 << 12,
    accessed_by_device = 1 << 13,
    awaited = 1 << 14,        // translations wait for it
    write_awaited = 1 << 15,  // of these, one for a write
  };
  static constexpr std::uint16_t advice = read_mostly | prefer_device | prefer_host | accessed_by_device;

  std::uint16_t flags = 0;
  std::uint16_t pins = 0;  // outstanding replays: it must not be evicted

  bool is(std::uint16_t flag) const { return (flags & flag) != 0; }
  void set(std::uint16_t flag) { flags = static_cast<std::uint16_t>(flags | flag); }
  void clear(std::uint16_t flag) { flags = static_cast<std::uint16_t>(flags & ~flag); }
};

// Where a page is.
enum class PageLocation : std::uint8_t { nowhere, host, device, both, moving };

class Residency {
 public:
  explicit Residency(std::shared_ptr<ManagedRanges> ranges) : ranges_(std::move(ranges)) {}

  // Grows to the pages of all allocations.
  void grow();
  const ManagedRanges& ranges() const { return *ranges_; }
  PageIndex size() const { return static_cast<PageIndex>(pages_.size()); }
  Page& at(PageIndex page) { return pages_[page]; }
  const Page& at(PageIndex page) const { return pages_[page]; }
  PageLocation location(PageIndex page) const;

  bool managed(PageIndex page) const {
    return page % kPagesPerBlock < ranges_->pages_of(page / kPagesPerBlock);
  }
  // Whether it is neither on the device nor migrating.
  bool can_come(PageIndex page) const {
    return managed(page) && !pages_[page].is(Page::on_device | Page::arriving | Page::leaving);
  }
  // Whether it can be evicted: it is not pinned, and no translation waits for it, except for a write to a
  // read-only copy. Pages with the advice to stay on the device only if they are not spared.
  bool can_leave(PageIndex page, bool spare_preferred) const {
    const Page& at = pages_[page];
    return at.is(Page::on_device) && at.pins == 0 && (!at.is(Page::awaited) || at.is(Page::queued)) &&
           !(spare_preferred && at.is(Page::prefer_device));
  }
  // Pages of a chunk that are on the device or arriving.
  std::uint32_t valid_in(ChunkIndex chunk) const { return valid_[chunk]; }
  std::uint32_t chunks_of(BlockIndex block) const { return ranges_->pages_of(block) / kPagesPerChunk; }
  // The page at the next address; kNoPage at the end of an allocation.
  PageIndex following(PageIndex page) const;

  // --- Transitions of a page; the caller accounts for frames ---
  void begin_arriving(PageIndex page);
  void give_up_arriving(PageIndex page);
  void arrive(PageIndex page, bool keep_host_copy);
  void begin_leaving(PageIndex page);
  void leave(PageIndex page, bool host_has_it);
  void forget(PageIndex page);

 private:
  std::shared_ptr<ManagedRanges> ranges_;
  std::vector<Page> pages_;
  std::vector<std::uint8_t> valid_;  // by chunk
};

}  // namespace manyscale::gpu
