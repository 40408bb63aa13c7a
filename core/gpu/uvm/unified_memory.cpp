// SPDX-License-Identifier: Apache-2.0
// Unified memory between runs: allocations, advice, reports.
#include "gpu/uvm/unified_memory.hpp"

#include <algorithm>

#include "engine/registry.hpp"

namespace manyscale::gpu {

namespace {

const Registered<UnifiedMemory> registered{
    "gpu.uvm", "Unified memory of a GPU: its memory management unit and the driver that moves pages."};

// The place of a word among those that a parameter can be.
template <std::size_t count>
std::size_t one_of(std::string_view parameter, std::string_view word,
                   const std::array<std::string_view, count>& words) {
  const auto found = std::ranges::find(words, word);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  std::string text =
      "'" + std::string(parameter) + "' of unified memory cannot be '" + std::string(word) + "', but one of:";
  for (const std::string_view known : words) text += " " + std::string(known);
  throw std::invalid_argument(text);
}

std::string in_words(std::uint64_t address, std::uint64_t bytes) {
  char text[80];
  std::snprintf(text, sizeof text, "%llu bytes at 0x%llx", static_cast<unsigned long long>(bytes),
                static_cast<unsigned long long>(address));
  return text;
}

}  // namespace

UnifiedMemory::UnifiedMemory(const Spec& spec)
    : spec_(spec),
      transfer_time_(spec),
      log_(spec.log_rows),
      prefetcher_(make_prefetcher(spec.prefetcher)),
      eviction_(make_eviction(spec.eviction, spec.reserved_share)),
      shared_(one_of<2>("kind", spec.kind, {"discrete", "shared"}) == 1),
      fixed_(one_of<2>("handling", spec.handling, {"measured", "fixed"}) == 1),
      replays_at_arrival_(one_of<2>("replay", spec.replay, {"batch", "arrival"}) == 1),
      shoots_down_all_(one_of<2>("shootdown", spec.shootdown, {"page", "all"}) == 1),
      sees_accesses_(one_of<2>("recency", spec.recency, {"migration", "access"}) == 1),
      maps_chunks_(one_of<2>("mapping", spec.mapping, {"page", "chunk"}) == 1),
      remote_(static_cast<Remote>(
          one_of<4>("remote", spec.remote, {"off", "always", "oversubscribed", "adaptive"}))),
      period_(period_of(spec.clock)),
      walkers_(spec.walkers, spec.walk_latency * period_),
      l2_tlb_(spec.l2_tlb_entries),
      frames_(spec.capacity / static_cast<std::int64_t>(kPageBytes),
              static_cast<Frames::Unit>(one_of<3>("frames", spec.frames, {"page", "block", "root"}))) {
  if (spec.oversubscribed_prefetcher != "same")
    oversubscribed_prefetcher_ = make_prefetcher(spec.oversubscribed_prefetcher);
  if (spec.host_granularity % static_cast<std::int64_t>(kPageBytes) != 0 ||
      (spec.host_granularity & (spec.host_granularity - 1)) != 0)
    throw std::invalid_argument("'host_granularity' of unified memory must be a power of two");
  declare(statistics_);
  sms_.on_receive<&UnifiedMemory::receive>();
  scheduler_.on_receive<&UnifiedMemory::start_range>();
  link_.on_receive<&UnifiedMemory::page_moved>();
  walks_.on_expire<&UnifiedMemory::decide>();
  replays_.on_expire<&UnifiedMemory::look_up>();
  driver_timer_.on_expire<&UnifiedMemory::driver_step>();
  shootdown_timer_.on_expire<&UnifiedMemory::forgotten_by_tlbs>();
  host_timer_.on_expire<&UnifiedMemory::host_faulted>();
}

void UnifiedMemory::start() {
  // What an SM said before it heard of a shootdown is here after a round trip.
  for (const auto& lane : sms_.lanes()) shootdown_time_ = std::max(shootdown_time_, 2 * lane.latency);
  if (!shared_ && link_.width() == 0)
    throw SimulationError(name() + " has no link to the host, over which pages could move");
}

void UnifiedMemory::resume() {
  if (flush_at_resume_) shoot_down_all();
  flush_at_resume_ = false;
  if (!shared_ && frames_.free() < 0) make_room(0);
}

void UnifiedMemory::settle() {
  note_stalls();
  if (driver_busy_) {
    statistics_.driver_busy += now() - busy_since_;
    busy_since_ = now();
  }
}

std::vector<Wait> UnifiedMemory::waits() const {
  std::vector<Wait> found;
  if (far_faults_.waiting() != 0)
    found.push_back({std::to_string(far_faults_.open_pages()) + " pages have not come to the device", ""});
  if (!host_commands_.empty() || !prefetches_.empty())
    found.push_back({"accesses of the host to managed memory have not ended", ""});
  return found;
}

void UnifiedMemory::allocate(std::uint64_t address, std::uint64_t bytes, std::string label) {
  ranges_->add(address, bytes, std::move(label));
  residency_.grow();
  eviction_->grow(residency_.size());
  l2_tlb_.grow(residency_.size());
  frames_.grow(ranges_->blocks());
  counters_.grow(residency_.size() / kPagesPerChunk);
  first_block_.resize(ranges_->blocks());
  allocation_statistics_.resize(ranges_->blocks());
  touched_blocks_.resize(ranges_->blocks());
  const BlockIndex first = ranges_->page_of(address) / kPagesPerBlock;
  allocation_statistics_[first] = {};
  for (std::uint64_t at = address; at < address + managed_bytes(bytes); at += kBlockBytes) {
    const BlockIndex block = ranges_->page_of(at) / kPagesPerBlock;
    first_block_[block] = first;
    frames_.set_size(block, ranges_->pages_of(block));
    touched_blocks_[block] = false;
    if (spec_.first_touch) continue;
    for (std::uint32_t i = 0; i < ranges_->pages_of(block); ++i)
      residency_.at(block * kPagesPerBlock + i).set(Page::on_host);
  }
}

void UnifiedMemory::free(std::uint64_t address) {
  const ManagedRanges::Allocation* allocation = ranges_->find(address);
  if (allocation == nullptr || allocation->address != address)
    throw std::invalid_argument("no managed allocation begins there");
  const std::uint64_t end = address + allocation->rounded;
  bool in_use = std::ranges::any_of(unheard_, [&](const Lookup& lookup) {
    return ranges_->address_of(lookup.page) - address < allocation->rounded;
  });
  for (std::uint64_t at = address; at < end; at += kPageBytes) {
    const Page& page = residency_.at(ranges_->page_of(at));
    in_use = in_use || page.is(Page::arriving | Page::leaving) || page.pins != 0 ||
             page.first_waiter != kNone || (page.walk_until != 0 && page.walk_until >= now());
  }
  if (in_use)
    throw SimulationError("managed memory of " + in_words(address, allocation->bytes) +
                          " is freed while its pages move or are used; wait for the device first");
  for (std::uint64_t at = address; at < end; at += kPageBytes) {
    const PageIndex page = ranges_->page_of(at);
    if (residency_.at(page).is(Page::on_device)) {
      frames_.give_back(page);
      eviction_->left(page);
      flush_at_resume_ = true;
    }
    l2_tlb_.drop(page);
    residency_.forget(page);
    if (page % kPagesPerChunk == 0) counters_.forget(page / kPagesPerChunk);
  }
  ranges_->remove(address);
}

void UnifiedMemory::reserve(std::uint64_t bytes) {
  frames_.reserve(static_cast<std::int64_t>((bytes + kPageBytes - 1) / kPageBytes));
}

void UnifiedMemory::advise(std::uint64_t address, std::uint64_t bytes, Advice advice) {
  const std::uint64_t first = address / kPageBytes * kPageBytes;
  for (std::uint64_t at = first; at < address + bytes; at += kPageBytes)
    if (!ranges_->contains(at))
      throw std::invalid_argument("advice is about " + in_words(address, bytes) +
                                  ", which are not all managed memory");
  for (std::uint64_t at = first; at < address + bytes; at += kPageBytes) {
    Page& page = residency_.at(ranges_->page_of(at));
    switch (advice) {
      case Advice::read_mostly:
        page.set(Page::read_mostly);
        break;
      case Advice::not_read_mostly:
        page.clear(Page::read_mostly);
        // Of two copies the device's remains.
        if (page.is(Page::on_device)) page.clear(Page::on_host);
        break;
      case Advice::prefer_device:
        page.clear(Page::prefer_host);
        page.set(Page::prefer_device);
        break;
      case Advice::prefer_host:
        page.clear(Page::prefer_device);
        page.set(Page::prefer_host);
        break;
      case Advice::prefer_none:
        page.clear(Page::prefer_device | Page::prefer_host);
        break;
      case Advice::accessed_by_device:
        page.set(Page::accessed_by_device);
        break;
      case Advice::not_accessed_by_device:
        page.clear(Page::accessed_by_device);
        break;
      case Advice::accessed_by_host:
      case Advice::not_accessed_by_host:
        break;
    }
  }
}

std::vector<Place> UnifiedMemory::places(std::uint64_t address, std::uint64_t bytes) const {
  std::vector<Place> found;
  for (std::uint64_t at = address / kPageBytes * kPageBytes; at < address + bytes; at += kPageBytes) {
    const PageIndex page = ranges_->page_of(at);
    if (page == kNoPage)
      throw std::invalid_argument(in_words(address, bytes) + " are not all managed memory");
    found.push_back(shared_ ? Place::both : residency_.place(page));
  }
  return found;
}

std::vector<UnifiedMemory::AllocationReport> UnifiedMemory::allocations() const {
  std::vector<AllocationReport> reports;
  for (const auto& [address, allocation] : ranges_->allocations())
    reports.push_back({allocation, allocation_statistics_[ranges_->page_of(address) / kPagesPerBlock]});
  return reports;
}

void UnifiedMemory::log(PageEvent::Kind kind, Cause cause, PageIndex first, std::uint32_t pages, Time begin,
                        Time end) {
  if (!log_.wanted()) return;
  if (!log_.add({begin, end, ranges_->address_of(first), pages, kind, cause})) ++statistics_.log_lost;
}

}  // namespace manyscale::gpu
