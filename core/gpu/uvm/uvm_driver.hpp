// SPDX-License-Identifier: Apache-2.0
// UVM driver: the software that serves page faults in batches, prefetches, migrates and evicts pages, follows
// advice, and executes prefetch commands and accesses of the host. The hardware on the other side of
// gmmu_port.hpp is the GMMU. Leaves out: where in the device's memory a page lies, what its migration costs
// caches and DRAM, and other devices.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/port.hpp"
#include "gpu/link/page_protocol.hpp"
#include "gpu/uvm/advice.hpp"
#include "gpu/uvm/commands.hpp"
#include "gpu/uvm/eviction.hpp"
#include "gpu/uvm/gmmu_port.hpp"
#include "gpu/uvm/part_endpoints.hpp"
#include "gpu/uvm/prefetcher.hpp"
#include "gpu/uvm/transfer_time.hpp"
#include "gpu/uvm/uvm_driver_spec.hpp"
#include "gpu/uvm/uvm_driver_state.hpp"
#include "gpu/uvm/uvm_driver_statistics.hpp"

namespace manyscale::gpu {

class UvmDriver final : public UvmDriverPort {
 public:
  using Spec = UvmDriverSpec;
  using Link = Port<PageProtocol, 0>;
  using Cause = PageEvent::Cause;

  // A part of `owner`, whose events it uses. `link` carries its transfers. Throws std::invalid_argument for
  // a word that a parameter cannot have.
  UvmDriver(const Spec& spec, Component& owner, UvmSharedState& shared, Link& link);
  void connect(GmmuPort& gmmu) { gmmu_ = &gmmu; }

  void resume();
  void settle();
  void add_waits(std::vector<Wait>& waits) const;
  const UvmDriverStatistics& statistics() const { return statistics_; }

  // A transfer of this number is complete.
  void transfer_moved(std::uint64_t number);

  // --- Between runs only (uvm_driver.cpp) ---
  void allocate(std::uint64_t address, std::uint64_t bytes, std::string label);
  void free(std::uint64_t address);
  void reserve(std::uint64_t bytes);
  void advise(std::uint64_t address, std::uint64_t bytes, Advice advice);
  const AllocationStatistics& allocation_at(std::uint64_t address) const;

  // --- Port to the GMMU ---
  void fault_written(PageIndex page, bool first) override;
  bool maps_remotely(PageIndex page, bool write) override;
  void accessed(PageIndex page, std::uint32_t accesses) override;
  void unpinned() override { advance_all(); }

 private:
  // --- Fault batches (uvm_driver_batches.cpp) ---
  bool is_pending(PageIndex page);
  void begin_batch();
  void batch_step(const bool& batch_is_planned);
  void fetch_faults();
  void plan_block();
  void build_runs(std::span<const PageIndex> faults);
  Time block_cost() const;
  void advance_batch();
  bool wait_for_frames(PageRun& run);
  void end_batch();

  // --- Migrations (uvm_driver_migration.cpp) ---
  template <class Wanted>
  bool evict_until(const Wanted& wanted);
  bool free_frames(std::int64_t frames);
  bool free_frames_for(const PageRun& run);
  bool choose_root_chunk(bool spare_preferred);
  std::uint32_t fitting(const PageRun& run) const;
  void show_frames();
  void show_transfer(std::string_view what, const PageRun& run, std::uint32_t track);
  void evict_ahead();
  void begin_migration(const PageRun& run);
  void finish_migration(const PageRun& run);
  void unmap(UnmappedPages unmapped);
  void tlbs_invalidated(const std::uint32_t& index);
  void write_back();
  void release_page(PageIndex page, Cause cause, bool transferred);
  void advance_all();

  // --- Commands of the host (uvm_driver_host.cpp) ---
  void start_command(const RangeStart& range, std::uint32_t lane);
  void advance_prefetches();
  void advance_host();
  bool host_can_access(const HostCommand& command, PageIndex page);
  void migrate_to_host(const HostCommand& command, PageIndex page);
  void log_host_accesses(const HostCommand& command, std::uint32_t from);
  void host_fault_served(const bool&);
  void end_command(std::deque<HostCommand>& commands);

  Time now() const { return owner_.now(); }
  Page& entry(PageIndex page) { return residency_.at(page); }
  const Page& entry(PageIndex page) const { return residency_.at(page); }
  AllocationStatistics& allocation_of(PageIndex page) {
    return state_.allocations[state_.first_block[page / kPagesPerBlock]];
  }

  const Spec spec_;
  Component& owner_;
  UvmSharedState& shared_;
  Residency& residency_;
  const ManagedRanges& ranges_;
  Link& link_;
  GmmuPort* gmmu_ = nullptr;
  UvmDriverStatistics statistics_;
  PartPort<RangeProtocol, 1> scheduler_;
  PartTimer<bool> batch_timer_;
  PartTimer<std::uint32_t> invalidation_timer_;
  PartTimer<bool> host_timer_;
  TransferTime transfer_time_;
  std::unique_ptr<Prefetcher> prefetcher_;
  std::unique_ptr<Prefetcher> oversubscribed_prefetcher_;  // null: the same
  std::unique_ptr<EvictionPolicy> eviction_;
  const bool fixed_, replays_at_arrival_;
  enum class Remote : std::uint8_t { off, always, oversubscribed, adaptive };
  const Remote remote_;
  UvmDriverState state_;
};

}  // namespace manyscale::gpu
