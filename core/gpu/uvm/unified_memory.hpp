// SPDX-License-Identifier: Apache-2.0
// Unified memory of a GPU: the memory management unit that SMs ask for translations, and the driver that
// moves pages between the memories of host and device. Values have one copy, in the device's model; what is
// here is where pages are and when they are there. Leaves out: where in the device's memory a page lies, what
// its arrival costs caches and DRAM, lines of pages that left caches behind, and other devices.
#pragma once
#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "engine/timer.hpp"
#include "gpu/copy/copy.hpp"
#include "gpu/uvm/access_counters.hpp"
#include "gpu/uvm/commands.hpp"
#include "gpu/uvm/eviction.hpp"
#include "gpu/uvm/far_faults.hpp"
#include "gpu/uvm/frames.hpp"
#include "gpu/uvm/page_log.hpp"
#include "gpu/uvm/page_walks.hpp"
#include "gpu/uvm/prefetcher.hpp"
#include "gpu/uvm/transfer_time.hpp"
#include "gpu/uvm/translation.hpp"
#include "gpu/uvm/uvm_statistics.hpp"

namespace manyscale::gpu {

class UnifiedMemory final : public Component {
 public:
  using Spec = UnifiedMemorySpec;
  using Cause = PageEvent::Cause;

  explicit UnifiedMemory(const Spec& spec);
  void start() override;
  void resume() override;
  void settle() override;
  std::vector<Wait> waits() const override;

  // --- Between runs only (unified_memory.cpp) ---
  // Which addresses are managed; SMs may keep it and read it while they run.
  std::shared_ptr<const ManagedRanges> ranges() const { return ranges_; }
  // Memory becomes managed: managed_bytes(bytes) from an address that is a multiple of 2 MiB.
  void allocate(std::uint64_t address, std::uint64_t bytes, std::string label);
  // Throws std::invalid_argument if no managed allocation begins there, SimulationError if its pages are on
  // the move.
  void free(std::uint64_t address);
  // Other allocations take so many bytes of the device's memory.
  void reserve(std::uint64_t bytes);
  void advise(std::uint64_t address, std::uint64_t bytes, Advice advice);
  // Where the pages of a managed range are.
  std::vector<Place> places(std::uint64_t address, std::uint64_t bytes) const;
  struct AllocationReport {
    ManagedRanges::Allocation allocation;
    AllocationStatistics statistics;
  };
  std::vector<AllocationReport> allocations() const;
  const std::vector<PageEvent>& log() const { return log_.events(); }
  const UnifiedMemoryStatistics& counted() const { return statistics_; }
  const Spec& spec() const { return spec_; }
  // Whether host and device have the same memory, so that nothing crosses a link.
  bool is_shared() const { return shared_; }

 private:
  // Pages with consecutive numbers that cross the link together.
  struct Run {
    PageIndex first = 0;
    std::uint32_t count = 0;
    Cause cause = Cause::fault;
    bool populates = false;  // they were nowhere: no transfer
    Time begun = 0;
  };
  // Pages that are taken from the device together, once all TLBs have forgotten them.
  struct Leaving {
    std::vector<PageIndex> pages;
    std::vector<std::uint32_t> cuts;  // how many pages of each choice; they do not share transfers
    Cause cause = Cause::eviction;
  };
  struct HostCommand {
    RangeStart range;
    std::uint32_t lane = 0;
    std::uint32_t done = 0;  // pages
  };
  struct RemoteAccess {
    Lookup lookup;
    bool comes_back = false;  // of an atomic operation: its result has yet to cross the link
  };

  // --- Memory management unit (gmmu.cpp) ---
  void receive(const TranslationRequest& request, std::uint32_t lane);
  void look_up(const Lookup& lookup);
  void decide(const Lookup& lookup);
  void answer(const Lookup& lookup, TranslationAnswer::Kind kind);
  void wait_for_page(const Lookup& lookup, bool tell_driver);
  void note_used(PageIndex page, std::uint32_t accesses);
  bool stays_remote(PageIndex page, bool write) const;
  void release(PageIndex page);
  void replay(Lookup lookup, Time after);
  void look_up_remote(const TranslationRequest& request, std::uint32_t lane);
  void access_fixed_memory(const TranslationRequest& request, std::uint32_t lane);
  static bool host_serves(const Page& page, bool write);
  bool maps_chunk(PageIndex page) const;
  void cross_link(const Lookup& lookup, bool atomic);
  void send_over_link(const RemoteAccess& access, bool to_host);
  void remote_moved(std::uint32_t index);
  void shoot_down(const std::vector<PageIndex>& pages);
  void shoot_down_all();
  void note_stalls();

  // --- Driver of faults (fault_driver.cpp) ---
  void queue_fault(PageIndex page);
  bool wants_page(PageIndex page);
  void start_driver();
  void driver_step(const bool& batch_is_planned);
  void take_batch();
  void plan_block();
  Time block_cost() const;
  void advance_driver();
  bool wait_for_room(Run& run);
  void end_batch();

  // --- Moves of pages (page_moves.cpp) ---
  template <class Wanted>
  bool evict_until(const Wanted& wanted);
  bool make_room(std::int64_t frames);
  bool make_room_for(const Run& run);
  bool choose_root(bool spare_preferred);
  std::uint32_t fitting(const Run& run) const;
  void show_frames();
  void show_transfer(std::string_view what, const Run& run, std::uint32_t track);
  void keep_share_free();
  void begin_run(const Run& run);
  void arrive(const Run& run);
  void begin_leaving(Leaving leaving);
  void forgotten_by_tlbs(const std::uint32_t& leaving);
  void write_back();
  void finish_leaving(PageIndex page, Cause cause, bool transferred);
  void page_moved(const PageMoved& moved, std::uint32_t lane);
  void wake_all();
  void log(PageEvent::Kind kind, Cause cause, PageIndex first, std::uint32_t pages, Time begin, Time end);

  // --- What the host tells (host_ranges.cpp) ---
  void start_range(const RangeStart& range, std::uint32_t lane);
  void advance_prefetches();
  void advance_host();
  bool host_can_go_on(const HostCommand& command, PageIndex page);
  void bring_back(const HostCommand& command, PageIndex page);
  void note_host_accesses(const HostCommand& command, std::uint32_t from);
  void host_faulted(const bool&);
  void end_range(std::deque<HostCommand>& commands);

  AllocationStatistics& allocation_of(PageIndex page) {
    return allocation_statistics_[first_block_[page / kPagesPerBlock]];
  }

  const Spec spec_;
  UnifiedMemoryStatistics statistics_;
  Port<TranslationProtocol, 1> sms_{*this, "sms", "the SMs whose translations it makes", Links::many};
  Port<RangeProtocol, 1> scheduler_{*this, "scheduler", "what tells it of the host's doings with ranges",
                                    Links::optional};
  Port<PageProtocol, 0> link_{*this, "link", "the link to the host", Links::optional};
  Timer<Lookup> walks_{*this};
  Timer<Lookup> replays_{*this};
  Timer<bool> driver_timer_{*this};
  Timer<std::uint32_t> shootdown_timer_{*this};
  Timer<bool> host_timer_{*this};

  std::shared_ptr<ManagedRanges> ranges_ = std::make_shared<ManagedRanges>();
  Residency residency_{ranges_};
  AccessCounters counters_;
  TransferTime transfer_time_;
  PageLog log_;
  std::unique_ptr<Prefetcher> prefetcher_;
  std::unique_ptr<Prefetcher> oversubscribed_prefetcher_;  // null: the same
  std::unique_ptr<EvictionPolicy> eviction_;
  const bool shared_, fixed_, replays_at_arrival_, shoots_down_all_, sees_accesses_, maps_chunks_;
  enum class Remote : std::uint8_t { off, always, oversubscribed, adaptive };
  Remote remote_ = Remote::off;
  std::vector<BlockIndex> first_block_;                      // by block: the first of its allocation
  std::vector<AllocationStatistics> allocation_statistics_;  // by first block
  std::vector<bool> touched_blocks_;                         // that ever had pages on the device

  // --- Memory management unit ---
  const Time period_;
  PageWalkers walkers_;
  SharedTlb l2_tlb_;
  FarFaults far_faults_;
  std::deque<Lookup> unheard_;  // that find no MSHR
  std::uint64_t holders_ = 0;   // SMs that may have any translation
  bool flush_at_resume_ = false;
  Time stalled_since_ = -1;
  std::uint64_t pinned_ = 0;  // replays under way
  Pool<RemoteAccess> remote_accesses_;

  // --- Driver ---
  struct FaultEntry {
    PageIndex page = 0;
    Time written = 0;  // when the driver can read it
  };
  std::deque<FaultEntry> fault_buffer_;
  Time fault_written_ = 0;                // the last of them
  std::vector<PageIndex> waiting_pages_;  // that somebody waits for; not of fixed handling
  bool driver_busy_ = false;
  bool cold_ = true;
  Time batch_begun_ = 0;
  Time busy_since_ = 0;
  std::int64_t batch_entries_ = 0;       // faults that were taken
  std::int64_t batch_repeats_ = 0;       // of these, further ones of the same pages
  std::size_t left_over_ = 0;            // faults that the driver saw and did not take
  std::vector<PageIndex> batch_faults_;  // in the order of their numbers
  std::size_t next_fault_ = 0;           // the first of a block that is not yet planned
  std::vector<PageIndex> batch_pages_;   // to come along
  std::vector<PageIndex> batch_served_;  // whose waiters are to be told
  std::vector<Run> batch_runs_;          // of the blocks that are served now
  std::size_t next_run_ = 0;
  bool batch_planned_ = false;
  BlockIndex served_block_ = kNone;

  // --- Frames and moves ---
  Frames frames_;
  bool oversubscribed_ = false;
  Time shootdown_time_ = 0;
  bool to_device_busy_ = false;
  Run to_device_;
  bool to_host_busy_ = false;
  std::deque<Run> write_backs_;  // the first is on the link if that is busy
  Pool<Leaving> leavings_;       // that TLBs are still told of
  std::vector<PageIndex> victims_;

  // --- What the host tells ---
  std::deque<HostCommand> prefetches_;  // to the device
  std::deque<HostCommand> host_commands_;
  bool host_in_fault_ = false;
  bool host_fault_paid_ = false;
};

}  // namespace manyscale::gpu
