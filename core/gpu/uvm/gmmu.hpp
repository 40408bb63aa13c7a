// SPDX-License-Identifier: Apache-2.0
// GMMU: the memory management unit of a GPU, with an L2 TLB, page walkers, far-fault MSHRs, the fault buffer,
// access counters and remote accesses of the host's memory. It raises page faults; the UVM driver on the
// other side of gmmu_port.hpp serves them. Leaves out: levels of the page table and their caches.
#pragma once
#include <vector>

#include "engine/port.hpp"
#include "gpu/link/page_protocol.hpp"
#include "gpu/uvm/gmmu_port.hpp"
#include "gpu/uvm/gmmu_spec.hpp"
#include "gpu/uvm/gmmu_state.hpp"
#include "gpu/uvm/gmmu_statistics.hpp"
#include "gpu/uvm/part_endpoints.hpp"
#include "gpu/uvm/translation.hpp"

namespace manyscale::gpu {

class Gmmu final : public GmmuPort {
 public:
  using Spec = GmmuSpec;
  using Link = Port<PageProtocol, 0>;

  // A part of `owner`, whose events it uses. `link` carries its remote accesses. Throws
  // std::invalid_argument for a word that a parameter cannot have.
  Gmmu(const Spec& spec, Component& owner, UvmSharedState& shared, Link& link);
  void connect(UvmDriverPort& driver) { driver_ = &driver; }

  void start();
  void resume();
  void settle() { update_stalled_time(); }
  void add_waits(std::vector<Wait>& waits) const;
  const GmmuStatistics& statistics() const { return statistics_; }

  // Whether a number on the link is one of a remote access, and what happens when that has crossed it.
  static bool is_remote(std::uint64_t number) { return (number & kRemote) != 0; }
  void remote_access_moved(std::uint64_t number);

  // --- Port to the driver ---
  void refault(PageIndex page) override { write_fault(page); }
  void replay(PageIndex page) override;
  void replay_all() override;
  std::uint64_t replays_pending() const override { return state_.replays_pending; }
  Time invalidate(const std::vector<PageIndex>& pages) override;
  void mappings_added() override;
  void grow(PageIndex pages) override;
  bool uses(std::uint64_t address, std::uint64_t bytes) const override;
  void forget(PageIndex page, bool mapped) override;

 private:
  static constexpr std::uint64_t kRemote = std::uint64_t{1} << 63;

  // --- Translations (gmmu.cpp) ---
  void receive(const TranslationRequest& request, std::uint32_t lane);
  void look_up(const Lookup& lookup);
  void finish_walk(const Lookup& lookup);
  void respond(const Lookup& lookup, TranslationResponseKind kind);
  bool maps_chunk(PageIndex page) const;
  void count_accesses(PageIndex page, std::uint32_t accesses);

  // --- Page faults (gmmu_faults.cpp) ---
  void wait_for_page(const Lookup& lookup, bool is_fault);
  void write_fault(PageIndex page);
  void replay_lookup(Lookup lookup, Time after);
  void update_stalled_time();
  void shoot_down(const std::vector<PageIndex>& pages);
  void flush_tlbs();

  // --- Remote accesses (gmmu_remote.cpp) ---
  void look_up_remote(const TranslationRequest& request, std::uint32_t lane);
  void access_unmanaged(const TranslationRequest& request, std::uint32_t lane);
  static bool host_serves(const Page& page, bool write);
  void access_host(const Lookup& lookup, bool atomic);
  void send_over_link(const RemoteAccess& access, bool to_host);

  Time now() const { return owner_.now(); }
  Page& entry(PageIndex page) { return shared_.residency.at(page); }
  const Page& entry(PageIndex page) const { return shared_.residency.at(page); }
  std::uint64_t address_of(PageIndex page) const { return shared_.ranges->address_of(page); }

  const Spec spec_;
  Component& owner_;
  UvmSharedState& shared_;
  Link& link_;
  UvmDriverPort* driver_ = nullptr;
  GmmuStatistics statistics_;
  PartPort<TranslationProtocol, 1> sms_;
  PartTimer<Lookup> walks_;
  PartTimer<Lookup> replays_;
  const Time period_;
  const bool maps_chunks_, flushes_always_;
  GmmuState state_;
};

}  // namespace manyscale::gpu
