// SPDX-License-Identifier: Apache-2.0
#include "gpu/uvm/unified_memory.hpp"

#include "engine/registry.hpp"
#include "gpu/uvm/address_text.hpp"
#include "gpu/uvm/parameter_words.hpp"

namespace manyscale::gpu {

namespace {

const Registered<UnifiedMemory> registered{"gpu.uvm",
                                           "Unified memory of a GPU: its GMMU and its UVM driver."};

}  // namespace

UnifiedMemory::UnifiedMemory(const Spec& spec)
    : shared_(one_of<2>("kind", spec.kind, {"discrete", "shared"}) == 1, spec.log_rows),
      gmmu_(spec, *this, shared_, link_),
      driver_(spec, *this, shared_, link_) {
  gmmu_.connect(driver_);
  driver_.connect(gmmu_);
  link_.on_receive<&UnifiedMemory::crossed_link>();
  declare(gmmu_.statistics());
  declare(driver_.statistics());
  declare("log_lost", "1", "rows for which the page log had no room", &shared_.log.lost());
}

void UnifiedMemory::start() {
  if (!shared_.one_memory && link_.width() == 0)
    throw SimulationError(name() + " has no link to the host, over which pages could migrate");
  gmmu_.start();
}

void UnifiedMemory::resume() {
  gmmu_.resume();
  driver_.resume();
}

void UnifiedMemory::settle() {
  gmmu_.settle();
  driver_.settle();
}

std::vector<Wait> UnifiedMemory::waits() const {
  std::vector<Wait> found;
  gmmu_.add_waits(found);
  driver_.add_waits(found);
  return found;
}

void UnifiedMemory::crossed_link(const PageMoved& moved, std::uint32_t) {
  if (Gmmu::is_remote(moved.page))
    gmmu_.remote_access_moved(moved.page);
  else
    driver_.transfer_moved(moved.page);
}

std::vector<PageLocation> UnifiedMemory::locations(std::uint64_t address, std::uint64_t bytes) const {
  std::vector<PageLocation> found;
  for (std::uint64_t at = address / kPageBytes * kPageBytes; at < address + bytes; at += kPageBytes) {
    const PageIndex page = shared_.ranges->page_of(at);
    if (page == kNoPage)
      throw std::invalid_argument(bytes_at(address, bytes) + " are not all managed memory");
    found.push_back(shared_.one_memory ? PageLocation::both : shared_.residency.location(page));
  }
  return found;
}

std::vector<UnifiedMemory::AllocationReport> UnifiedMemory::allocations() const {
  std::vector<AllocationReport> reports;
  for (const auto& [address, allocation] : shared_.ranges->allocations())
    reports.push_back({allocation, driver_.allocation_at(address)});
  return reports;
}

}  // namespace manyscale::gpu
