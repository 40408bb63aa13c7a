// SPDX-License-Identifier: Apache-2.0
// A streaming multiprocessor: sub-cores that issue one SASS instruction per cycle each, of warps whose
// operands are ready. The functional model executes an instruction when it issues, so time and values never
// disagree. The SM sleeps when no warp can issue. Its stages have files of their own: execution_pipes,
// scoreboard, dependence_counters, instruction_fetch, constant_cache, mio_queue, tag_stage, data_stage,
// l1_cache, pending_translations; here is what joins them. Leaves out: write-port conflicts, and TLBs for
// memory that is not managed.
#pragma once
#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "engine/clock.hpp"
#include "gpu/link/remote_ranges.hpp"
#include "gpu/sm/coalesce.hpp"
#include "gpu/sm/constant_cache.hpp"
#include "gpu/sm/data_stage.hpp"
#include "gpu/sm/dependence_counters.hpp"
#include "gpu/sm/device_tlb.hpp"
#include "gpu/sm/execution_pipes.hpp"
#include "gpu/sm/instruction_fetch.hpp"
#include "gpu/sm/l1_cache.hpp"
#include "gpu/sm/launch_record.hpp"
#include "gpu/sm/mio_queue.hpp"
#include "gpu/sm/pending_translations.hpp"
#include "gpu/sm/scoreboard.hpp"
#include "gpu/sm/tag_stage.hpp"
#include "gpu/sm/timed_launch.hpp"
#include "gpu/sm/warp_scheduler.hpp"
#include "gpu/uvm/translation.hpp"
#include "memory/address_hash.hpp"
#include "memory/protocol.hpp"
#include "memory/translation/tlb.hpp"

namespace manyscale::gpu {

class Sm final : public Component {
 public:
  using Spec = SmSpec;

  explicit Sm(const Spec& spec);
  std::vector<Wait> waits() const override;
  void settle() override;

  // The launches that CTAs are started of; before the first run.
  void attach(std::shared_ptr<LaunchTable> launches) { launches_ = std::move(launches); }
  // What is managed memory; between runs. Without it no address is.
  void attach(std::shared_ptr<const ManagedRanges> managed);
  // What lies beyond the link; between runs. Without it nothing does.
  void attach(std::shared_ptr<const RemoteRanges> remote);
  // What kernels printed, and warnings, since the last call.
  struct PrintfBuffer {
    Time when;
    std::uint32_t launch;
    std::string printed;
    std::vector<std::string> warnings;
  };
  // Holds these instructions in its caches; between runs.
  void warm_instructions(std::uint64_t address, std::uint64_t bytes) { instructions_.warm(address, bytes); }
  // Forgets translations of device memory.
  void empty_tlbs() { device_tlb_.empty(); }
  std::vector<PrintfBuffer> take_printf_buffers() { return std::exchange(printf_buffers_, {}); }
  // What was counted for a launch that has ended; null if none of it ran here. It can be taken once.
  std::unique_ptr<LaunchRecord> take_record(std::uint32_t launch);
  // What was counted, as of the last settle().
  const SmStatistics& counted() const { return statistics_; }

  static constexpr std::uint32_t kWarpsTogether = 16;  // warps of a sub-core that are looked at in one go

 private:
  static constexpr memory::Value kReduction = memory::Value{1}
                                              << 31;  // marks an atomic operation without a result
  // The value of a write: its warp slot, and which of the warps that the slot has had.
  static constexpr unsigned kSlotBits = 11;
  static constexpr memory::Value kSlotMask = (memory::Value{1} << kSlotBits) - 1;
  static constexpr std::uint32_t kTenantMask = (std::uint32_t{1} << (31 - kSlotBits)) - 1;
  // A CTA that is on the SM.
  struct CtaSlot {
    Cta cta;
    Worker worker;
    std::uint32_t launch = 0;
    std::uint32_t unfinished = 0;  // warps
    LaunchRecord* record = nullptr;
    Time started = 0;
    bool used = false;
  };

  // A warp that is on the SM. What each issue needs comes first: it is seldom in a cache.
  struct alignas(64) WarpSlot {
    Warp* warp = nullptr;                 // null: nobody is here
    const SassInstruction* at = nullptr;  // the next to issue
    const SassInstruction* end = nullptr;
    OperationProfile* profile = nullptr;  // of the operation that `at` belongs to
    LaunchRecord* record = nullptr;
    const SassFunction* function = nullptr;
    Cycle after = 0;        // not before, since the last issue
    Cycle fetch_until = 0;  // the line of instructions is there
    CtaSlot* cta = nullptr;
    const SassInstruction* fetched_end = nullptr;  // the first behind the line of instructions it has
    std::uint32_t operation = 0;                   // of the function: the one that `at` belongs to
    Stall reason = Stall::wait;
    bool falls_through = false;   // after the operation comes the one behind it
    bool predicated_off = false;  // its instructions have no effect: no lane passes their predicate
    bool blocked = false;         // at a barrier
    bool reduces = false;         // its last store or reduction was a reduction
    std::uint32_t conflict = 0;   // cycles that conflicts add to what `reason` is about
    Scoreboard* board = nullptr;  // of code that was lowered from PTX
    DependenceCounters counters;  // of SASS
    const Op* branch = nullptr;   // that issued last; null if something else did
    std::uint64_t code_address = 0;
    std::uint64_t fetched = ~std::uint64_t{0};  // line of instructions it has
    std::uint32_t loads = 0;                    // outstanding
    std::uint32_t writes = 0;                   // not yet confirmed
    std::uint32_t unsent_writes = 0;            // that wait for a translation or are remote
    std::uint32_t tenant = 0;                   // counts the warps that this slot has had
    Cycle stores_leave = 0;                     // when its last store leaves the SM
    std::uint32_t store_conflict = 0;           // cycles that conflicts add to its last store
    bool faulted_at_end = false;                // what it waits for at its end had to wait for a page
  };

  // What decides among warps whose operands are ready. Apart from the slots, which are seldom in a cache.
  struct Candidate {
    std::uint64_t priority = 0;  // that the warp scheduler gave the warp
    std::uint8_t pipe = 0;       // that its next instruction needs
    bool dual_pipe = false;      // or the multiplier
    bool queued = false;         // through the MIO queue
    MemoryResource resource = MemoryResource::none;
    bool yields = false;  // after its last instruction other warps go first
    bool pipe_was_busy = false;
    bool queue_was_full = false;
  };

  static constexpr std::uint32_t kNoCopy = ~std::uint32_t{0};
  // A load or atomic operation that waits for lines.
  struct Load {
    std::uint32_t warp = 0;
    std::uint32_t lines = 0;
    const std::uint8_t* destination = nullptr;
    std::uint8_t registers = 0;
    std::uint8_t counter = IssueControl::kNone;  // of the warp, that counts it
    std::uint32_t copy = kNoCopy;                // the warp's number for it, if it is a copy to shared memory
    bool faulted = false;                        // it waited for a page to come
    std::uint32_t conflict = 0;                  // cycles that conflicts add
    Cycle begin = 0;                             // when it reached the L1
    Cycle ready = 0;                             // of the lines that have come
  };

  // Of a line: sectors that a load wants and the L1 lacks, and those of them that nobody has asked for.
  struct MissingSectors {
    std::uint8_t wanted = 0;
    std::uint8_t asked = 0;
  };

  // An instruction of global or local memory, or of textures, while its lines are accessed.
  struct GlobalAccess {
    WarpSlot& slot;
    const SassInstruction& instruction;
    std::uint32_t warp = 0;
    PendingAccess::Operation operation = PendingAccess::Operation::read;
    Cycle translation = 0;                    // latency of the TLB, of managed memory
    std::uint32_t load = PendingLines::kEnd;  // that waits for its lines; kEnd: none does
    std::uint32_t missing_lines = 0;
  };

  struct SubCore {
    std::array<Cycle, kPipes> free{};
    MioQueue queue;
    std::uint32_t last = 0;   // warp slot that issued last
    std::uint32_t warps = 0;  // on it
    Cycle idle_until = 0;     // none of its warps can issue before, as things are
  };

  Cycle tick(Cycle now);
  void start_cta(const CtaStart& start, std::uint32_t lane);
  std::uint32_t first_sub_core();
  std::uint32_t free_slot_from(std::uint32_t sub_core) const;
  void receive(const memory::Message& message, std::uint32_t lane);

  // --- Issue (sm_issue.cpp) ---
  Cycle issue_from(std::size_t sub_core, Cycle now);
  std::size_t pipe_for(const SubCore& sub, const SassInstruction& instruction) const;
  bool can_use_memory(const SubCore& sub, MemoryResource resource, Cycle now, Cycle& when) const;
  void issue(SubCore& sub, std::uint32_t index, Cycle now);
  void next_operation(std::uint32_t index, Cycle now);
  bool pass_predicated(WarpSlot& slot, const Op& next);
  void enter_operation(WarpSlot& slot, const Op& op) const;
  void find_earliest(std::uint32_t index);
  static void hold(WarpSlot& slot, Cycle until);
  void account(std::uint32_t index, Cycle now);
  [[gnu::noinline]] static void observe_issue(const WarpSlot& slot, const Candidate& candidate, Cycle waited,
                                              Cycle now);
  void fetch(std::uint32_t index, Cycle now);
  Cycle arrive_at_barrier(WarpSlot& slot, Cycle now);
  static void wait_at_barrier(WarpSlot& slot, Cycle released);
  void wake_blocked(CtaSlot& cta, Cycle released, Cycle now);
  void finish_if_done(std::uint32_t index, Cycle now);
  void finish(std::uint32_t index, Cycle now);
  LaunchRecord& record_of(std::uint32_t launch);
  LaunchRecord& record_of_origin(memory::Origin origin);
  void make_room(Cycle now);
  SubCore& sub_core_of(std::uint32_t warp) {
    return sub_cores_[warp % static_cast<std::uint32_t>(sub_cores_.size())];
  }
  Cycle& earliest(std::uint32_t warp) { return earliest_[index_of_[warp]]; }
  Candidate& candidate(std::uint32_t warp) { return candidates_[index_of_[warp]]; }

  static void count(WarpSlot& slot, std::uint8_t counter, const DependenceCounters::Entry& entry) {
    if (counter < IssueControl::kCounters)  // most name none
      slot.counters.count(counter, entry, slot.function->limited_counters, slot.after);
  }

  // --- Memory (sm_memory.cpp) ---
  Cycle enter_memory(SubCore& sub, InstructionKind kind, Cycle now);
  Cycle enter_queue(SubCore& sub, const SassInstruction& instruction, Cycle interval, Cycle now,
                    SmStatistics& statistics);
  void access(SubCore& sub, std::uint32_t index, const SassInstruction& instruction, bool executed,
              Cycle now);
  void access_spilled(std::uint32_t index, const SassInstruction& instruction, Cycle begin);
  void access_constants(std::uint32_t index, const SassInstruction& instruction, const Access& access,
                        Cycle begin);
  void access_shared(std::uint32_t index, const SassInstruction& instruction, const Access& access,
                     Cycle begin);
  void access_global(std::uint32_t index, const SassInstruction& instruction, const Access& access,
                     Cycle begin);
  void access_texture(std::uint32_t index, const SassInstruction& instruction,
                      const TextureFootprint& texture, Cycle begin);
  void access_lines(GlobalAccess& global, Stall why, Cycle begin, Cycle hit);
  void access_line(GlobalAccess& global, const LineAccess& touched, Cycle when);
  void find_lines(const Access& access, bool local);
  void find_atomic_rounds(const Access& access, SmStatistics& statistics);
  void wait_for_load(const GlobalAccess& global, Stall why, Cycle begin);
  bool pass_translation(GlobalAccess& global, const LineAccess& touched, Cycle& when);
  std::uint32_t wait_for_line(GlobalAccess& global);
  void set_ready(WarpSlot& slot, const SassInstruction& instruction, Cycle when, Stall writer,
                 Pipe pipe = Pipe::lsu, std::uint32_t load = 0, Cycle conflict = 0);
  void count_sectors(const Access& access, InstructionKind kind, bool local, SmStatistics& statistics) const;
  void write(LaunchRecord& record, const LineAccess& touched, memory::Op op, std::uint32_t warp, Cycle when);
  Cycle request(LaunchRecord& record, std::uint64_t line, std::uint8_t sectors, memory::Op op,
                memory::Value value, Cycle when, std::uint8_t tag = 0);
  MissingSectors look_up(const LineAccess& touched, SmStatistics& statistics);
  void wait_for(LaunchRecord& record, std::uint64_t line, MissingSectors missing, std::uint32_t load,
                Cycle when);
  void load_arrived(std::uint32_t load, Cycle when);
  void write_confirmed(const memory::Message& message, Cycle cycle);
  void write_done(LaunchRecord& record, WarpSlot* slot, std::uint32_t index, Cycle cycle);
  std::uint32_t new_load(std::uint32_t warp, const SassInstruction& instruction);

  // --- Managed memory (sm_translation.cpp) ---
  static bool faults_block(const SmTlbSpec& spec);
  bool find_translation(std::uint64_t line, bool writes, Cycle now);
  bool tlb_stalled() const;
  bool tlb_full() const;
  void request_translation(const PendingAccess& pending, Cycle when);
  void fill_chunk(std::uint64_t address, Cycle cycle);
  void queue_for_translation(const PendingAccess& pending, Cycle when);
  void translated(const TranslationResponse& answer, std::uint32_t lane);
  void page_translated(const TranslationResponse& answer, Cycle cycle);
  void release_stalled();
  void resume_access(const PendingAccess& pending, Cycle when);
  void resume_write(const PendingAccess& pending, memory::Op op, Cycle when);
  void access_remote(const PendingAccess& pending, Cycle when);
  void remote_done(std::uint32_t entry, Cycle cycle);
  void mark_faulted(const PendingAccess& pending);
  LaunchRecord& record_of(const PendingAccess& pending);
  SmStatistics& statistics_of(const PendingAccess& pending) { return record_of(pending).statistics; }

  const Spec spec_;
  std::unique_ptr<WarpScheduler> warp_scheduler_;
  const PipeTable pipes_;
  std::shared_ptr<LaunchTable> launches_;
  SmStatistics statistics_;
  SmStatistics taken_;  // of launches whose records were taken
  std::vector<std::unique_ptr<LaunchRecord>> records_;
  Clock clock_;
  SmPort scheduler_{*this, "scheduler", "what starts CTAs and hears of their end"};
  memory::RequesterPort memory_{*this, "memory", "the network to the L2"};
  Port<TranslationProtocol, 0> translation_{*this, "translation", "unified memory, for translations",
                                            Links::optional};
  memory::SliceHash slices_;

  std::vector<SubCore> sub_cores_;
  std::vector<std::unique_ptr<WarpSlot>> warps_;
  std::vector<Scoreboard> scoreboards_;  // by warp slot
  std::vector<std::unique_ptr<CtaSlot>> ctas_;
  // When the operands of each warp are ready; kPending: nobody knows, or nobody is there. Apart from the
  // slots, since every cycle looks at all of them, and those of a sub-core beside each other.
  std::vector<Cycle> earliest_;          // by index_of_
  std::vector<Candidate> candidates_;    // by index_of_
  std::vector<std::uint16_t> index_of_;  // by warp slot
  std::uint32_t slots_per_sub_core_ =
      0;  // of a sub-core: for its warps, and up to the next kWarpsTogether nobody
  // What the warp scheduler decides, kept here since every issue looks at it.
  bool greedy_ = false;
  bool round_robin_ = false;
  WarpScheduler::Rank rank_ = nullptr;
  std::uint64_t next_age_ = 0;
  std::uint32_t next_sub_core_ = 0;                // of equally busy ones, for the first warp of the next CTA
  std::uint32_t last_launch_ = ~std::uint32_t{0};  // whose lines are in the L1
  std::uint32_t resident_warps_ = 0;
  Cycle resident_since_ = 0;

  L1Cache l1_;
  InstructionCaches instructions_;
  ConstantCache constants_;
  PendingLines pending_;
  std::vector<Load> loads_;
  std::vector<std::uint32_t> free_loads_;
  std::int64_t outstanding_writes_ = 0;  // lines
  PendingLines constant_lines_;          // on their way to the constant caches
  Cycle barrier_free_ = 0;               // of the barrier unit
  Cycle lsu_free_ = 0;                   // for a further instruction
  Cycle texture_free_ = 0;
  TagStage tags_;
  DataStage data_stage_;
  Cycle request_free_ = 0;  // of the way to the network
  DeviceTlb device_tlb_;
  Lines lines_;
  Access access_;  // of the instruction that is executed

  std::shared_ptr<const RemoteRanges> remote_ranges_;  // null: nothing lies beyond the link
  std::shared_ptr<const ManagedRanges> managed_;       // null: nothing is
  std::optional<memory::Tlb> tlb_;
  bool blocking_faults_ = false;
  PendingTranslations translations_pending_;
  std::deque<PendingAccess> stalled_accesses_;  // in front of the TLB, oldest first
  std::vector<PendingAccess> remote_;           // remote accesses, by the tag of the request
  std::vector<std::uint32_t> free_remote_;
  std::int64_t untranslated_loads_ = 0;  // lines of loads that wait for translations or remote accesses
  std::int64_t outstanding_faults_ = 0;  // pages that this SM faulted on
  std::int64_t untranslated_lines_ = 0;  // that wait for translations
  std::int64_t accepted_ = 0;            // accesses that the TLB accepted since the first of these

  std::vector<PrintfBuffer> printf_buffers_;
};

}  // namespace manyscale::gpu
