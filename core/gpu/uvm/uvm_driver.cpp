// SPDX-License-Identifier: Apache-2.0
// The UVM driver's allocations, advice and remote mappings.
#include "gpu/uvm/uvm_driver.hpp"

#include <algorithm>

#include "gpu/uvm/address_text.hpp"
#include "gpu/uvm/parameter_words.hpp"

namespace manyscale::gpu {

UvmDriver::UvmDriver(const Spec& spec, Component& owner, UvmSharedState& shared, Link& link)
    : spec_(spec),
      owner_(owner),
      shared_(shared),
      residency_(shared.residency),
      ranges_(*shared.ranges),
      link_(link),
      scheduler_(owner, "scheduler", "the source of commands of the host", Links::optional),
      batch_timer_(owner),
      invalidation_timer_(owner),
      host_timer_(owner),
      transfer_time_(spec),
      prefetcher_(make_plugin<Prefetcher>(spec.prefetcher)),
      eviction_(make_plugin<EvictionPolicy>(spec.eviction, spec.reserved_share)),
      fixed_(one_of<2>("handling", spec.handling, {"measured", "fixed"}) == 1),
      replays_at_arrival_(one_of<2>("replay", spec.replay, {"batch", "arrival"}) == 1),
      remote_(static_cast<Remote>(
          one_of<4>("remote", spec.remote, {"off", "always", "oversubscribed", "adaptive"}))),
      state_(spec.capacity,
             static_cast<Frames::Unit>(one_of<3>("frames", spec.frames, {"page", "block", "root"}))) {
  if (spec.oversubscribed_prefetcher != "same")
    oversubscribed_prefetcher_ = make_plugin<Prefetcher>(spec.oversubscribed_prefetcher);
  if (spec.host_granularity % static_cast<std::int64_t>(kPageBytes) != 0 ||
      (spec.host_granularity & (spec.host_granularity - 1)) != 0)
    throw std::invalid_argument("'host_granularity' of unified memory must be a power of two");
  shared.fault_buffer.set_merges(fixed_);
  shared.notifies_all_accesses = one_of<2>("recency", spec.recency, {"migration", "access"}) == 1;
  scheduler_.on_receive<&UvmDriver::start_command>(*this);
  batch_timer_.on_expire<&UvmDriver::batch_step>(*this);
  invalidation_timer_.on_expire<&UvmDriver::tlbs_invalidated>(*this);
  host_timer_.on_expire<&UvmDriver::host_fault_served>(*this);
}

void UvmDriver::resume() {
  if (!shared_.one_memory && state_.frames.free() < 0) free_frames(0);
}

void UvmDriver::settle() {
  if (!state_.busy) return;
  statistics_.driver_busy += now() - state_.busy_since;
  state_.busy_since = now();
}

void UvmDriver::add_waits(std::vector<Wait>& waits) const {
  if (!state_.host_commands.empty() || !state_.prefetches.empty())
    waits.push_back({"commands or accesses of the host to managed memory have not ended", ""});
}

void UvmDriver::allocate(std::uint64_t address, std::uint64_t bytes, std::string label) {
  shared_.ranges->add(address, bytes, std::move(label));
  residency_.grow();
  eviction_->grow(residency_.size());
  gmmu_->grow(residency_.size());
  state_.frames.grow(ranges_.blocks());
  shared_.access_counters.grow(residency_.size() / kPagesPerChunk);
  state_.first_block.resize(ranges_.blocks());
  state_.allocations.resize(ranges_.blocks());
  state_.touched_blocks.resize(ranges_.blocks());
  const BlockIndex first = ranges_.page_of(address) / kPagesPerBlock;
  state_.allocations[first] = {};
  for (std::uint64_t at = address; at < address + managed_bytes(bytes); at += kBlockBytes) {
    const BlockIndex block = ranges_.page_of(at) / kPagesPerBlock;
    state_.first_block[block] = first;
    state_.frames.set_size(block, ranges_.pages_of(block));
    state_.touched_blocks[block] = false;
    if (spec_.first_touch) continue;
    for (std::uint32_t i = 0; i < ranges_.pages_of(block); ++i)
      entry(block * kPagesPerBlock + i).set(Page::on_host);
  }
}

void UvmDriver::free(std::uint64_t address) {
  const ManagedRanges::Allocation* allocation = ranges_.find(address);
  if (allocation == nullptr || allocation->address != address)
    throw std::invalid_argument("no managed allocation begins there");
  const std::uint64_t end = address + allocation->rounded;
  bool in_use = gmmu_->uses(address, allocation->rounded);
  for (std::uint64_t at = address; at < end; at += kPageBytes)
    in_use = in_use || entry(ranges_.page_of(at)).is(Page::arriving | Page::leaving);
  if (in_use)
    throw SimulationError("managed memory of " + bytes_at(address, allocation->bytes) +
                          " is freed while its pages move or are used; wait for the device first");
  for (std::uint64_t at = address; at < end; at += kPageBytes) {
    const PageIndex page = ranges_.page_of(at);
    const bool on_device = entry(page).is(Page::on_device);
    if (on_device) {
      state_.frames.give_back(page);
      eviction_->left(page);
    }
    gmmu_->forget(page, on_device);
    residency_.forget(page);
    if (page % kPagesPerChunk == 0) shared_.access_counters.forget(page / kPagesPerChunk);
  }
  shared_.ranges->remove(address);
}

void UvmDriver::reserve(std::uint64_t bytes) {
  state_.frames.reserve(static_cast<std::int64_t>((bytes + kPageBytes - 1) / kPageBytes));
}

void UvmDriver::advise(std::uint64_t address, std::uint64_t bytes, Advice advice) {
  const std::uint64_t first = address / kPageBytes * kPageBytes;
  for (std::uint64_t at = first; at < address + bytes; at += kPageBytes)
    if (!ranges_.contains(at))
      throw std::invalid_argument("advice is about " + bytes_at(address, bytes) +
                                  ", which are not all managed memory");
  for (std::uint64_t at = first; at < address + bytes; at += kPageBytes) {
    Page& page = entry(ranges_.page_of(at));
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

const AllocationStatistics& UvmDriver::allocation_at(std::uint64_t address) const {
  return state_.allocations[ranges_.page_of(address) / kPagesPerBlock];
}

void UvmDriver::accessed(PageIndex page, std::uint32_t accesses) {
  if (shared_.notifies_all_accesses) eviction_->used(page, accesses);
  Page& at = entry(page);
  if (!at.is(Page::unused_prefetch)) return;
  at.clear(Page::unused_prefetch);
  ++statistics_.prefetched_used;
}

bool UvmDriver::maps_remotely(PageIndex page, bool write) {
  Page& at = entry(page);
  const auto decide = [&] {
    if (at.is(Page::prefer_host)) return true;
    if (at.is(Page::accessed_by_device) && at.is(Page::on_host) && !at.is(Page::prefer_device)) return true;
    if (write || remote_ == Remote::off || !at.is(Page::on_host)) return false;
    if (remote_ == Remote::oversubscribed && !state_.oversubscribed) return false;
    const ChunkIndex chunk = page / kPagesPerChunk;
    const AccessCounters& counters = shared_.access_counters;
    std::int64_t threshold = spec_.remote_threshold;
    if (remote_ == Remote::adaptive) {
      const Frames& frames = state_.frames;
      threshold = state_.oversubscribed
                      ? threshold * spec_.remote_penalty * (counters.round_trips(chunk) + std::int64_t{1})
                      : 1 + threshold * frames.used() / std::max<std::int64_t>(1, frames.usable());
    }
    return counters.accesses(chunk) < threshold;
  };
  if (!decide()) return false;
  at.set(Page::on_host);  // a page without data is created there
  return true;
}

}  // namespace manyscale::gpu
