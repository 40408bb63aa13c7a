// SPDX-License-Identifier: Apache-2.0
// Unified memory of a GPU: the component that holds the GMMU (gmmu.hpp, hardware) and the UVM driver
// (uvm_driver.hpp, software) and the port between them (gmmu_port.hpp). Values have one copy, in the
// functional device; this models where pages are and when they are there. Leaves out: lines of evicted pages
// that stay in caches.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "gpu/uvm/gmmu.hpp"
#include "gpu/uvm/uvm_driver.hpp"
#include "gpu/uvm/uvm_spec.hpp"

namespace manyscale::gpu {

class UnifiedMemory final : public Component {
 public:
  using Spec = UnifiedMemorySpec;

  explicit UnifiedMemory(const Spec& spec);
  void start() override;
  void resume() override;
  void settle() override;
  std::vector<Wait> waits() const override;

  // --- Between runs only ---
  // Which addresses are managed; SMs may keep it and read it while they run.
  std::shared_ptr<const ManagedRanges> ranges() const { return shared_.ranges; }
  // Memory becomes managed: managed_bytes(bytes) from an address that is a multiple of 2 MiB.
  void allocate(std::uint64_t address, std::uint64_t bytes, std::string label) {
    driver_.allocate(address, bytes, std::move(label));
  }
  // Throws std::invalid_argument if no managed allocation begins there, SimulationError if its pages migrate
  // or are used.
  void free(std::uint64_t address) { driver_.free(address); }
  // Other allocations take so many bytes of the device's memory.
  void reserve(std::uint64_t bytes) { driver_.reserve(bytes); }
  void advise(std::uint64_t address, std::uint64_t bytes, Advice advice) {
    driver_.advise(address, bytes, advice);
  }
  // Where the pages of a managed range are.
  std::vector<PageLocation> locations(std::uint64_t address, std::uint64_t bytes) const;
  struct AllocationReport {
    ManagedRanges::Allocation allocation;
    AllocationStatistics statistics;
  };
  std::vector<AllocationReport> allocations() const;
  const std::vector<PageEvent>& log() const { return shared_.log.events(); }
  std::int64_t lost_log_rows() const { return shared_.log.lost().value(); }
  const GmmuStatistics& gmmu_statistics() const { return gmmu_.statistics(); }
  const UvmDriverStatistics& driver_statistics() const { return driver_.statistics(); }
  // Whether host and device have one memory, so that nothing migrates.
  bool is_shared() const { return shared_.one_memory; }

 private:
  void crossed_link(const PageMoved& moved, std::uint32_t lane);

  UvmSharedState shared_;
  Port<PageProtocol, 0> link_{*this, "link", "the link to the host", Links::optional};
  Gmmu gmmu_;
  UvmDriver driver_;
};

}  // namespace manyscale::gpu
