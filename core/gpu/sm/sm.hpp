// SPDX-License-Identifier: Apache-2.0
// A streaming multiprocessor: sub-cores that issue one machine instruction per cycle each, of warps whose
// operands are ready; pipes that take their time; address generation units, shared memory and the L1. The
// functional model executes an instruction when it issues, so time and values never disagree. It sleeps when
// no warp can issue. Lines of managed memory pass a TLB first and wait for their page. Code that was lowered
// from PTX waits for registers; real machine code says itself when it may issue (sm_schedule.cpp). Leaves
// out: write-port conflicts, and TLBs for memory that is not managed.
#pragma once
#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "engine/clock.hpp"
#include "gpu/copy/remote_ranges.hpp"
#include "gpu/sm/coalesce.hpp"
#include "gpu/sm/l1_cache.hpp"
#include "gpu/sm/launch_record.hpp"
#include "gpu/sm/pending_translations.hpp"
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
  std::vector<PrintfBuffer> take_printf_buffers() { return std::exchange(printf_buffers_, {}); }
  // What was counted for a launch that has ended; null if none of it ran here. It can be taken once.
  std::unique_ptr<LaunchRecord> take_record(std::uint32_t launch);
  // What was counted, as of the last settle().
  const SmStatistics& counted() const { return statistics_; }

  static constexpr std::uint32_t kPlacesTogether = 16;  // warps of a sub-core that are looked at in one go

 private:
  static constexpr Cycle kPending = never;
  static constexpr std::uint64_t kConstantLine = 64;
  static constexpr memory::Value kReduction = memory::Value{1}
                                              << 31;  // marks an atomic operation without a result
  // `local` and `atomic` are memory too.
  enum class Stall : std::uint8_t {
    wait,
    long_scoreboard,
    local,
    atomic,
    short_scoreboard,
    barrier,
    no_instruction,
    page_fault
  };

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

  // Counts instructions of a warp that have not written their results, or not read their operands.
  struct DependenceCounter {
    Cycle zero = 0;             // when those are done of which it is known
    std::uint32_t unknown = 0;  // others
    Stall why = Stall::wait;
    std::uint32_t conflict = 0;  // cycles that conflicts add to `zero`
  };

  // An instruction that a counter of a warp counts, where some other waits for a part of what it counts.
  struct Counted {
    std::uint8_t counter = 0;
    std::uint32_t number = 0;  // of the load; or of the copies, and kCopies
    Cycle done = 0;
  };
  // Copies to shared memory that a counter counts together.
  struct CopyGroup {
    std::uint32_t before = 0;  // the number of the first copy that does not belong to it
    std::uint32_t left = 0;    // copies under way
    std::uint8_t counter = 0;
    Cycle done = 0;
  };
  static constexpr std::uint32_t kCopies = std::uint32_t{1} << 31;

  // When the registers of a warp have their values.
  struct Scoreboard {
    std::array<Cycle, 256> ready{};
    std::array<Stall, 256> writer{};
    std::array<Pipe, 256> pipe{};  // that made the register's value
    std::array<Cycle, 8> predicates{};
    std::array<std::uint32_t, 256> conflict{};  // cycles that conflicts add to `ready`, of memory
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
    bool blocked = false;         // at a barrier
    bool reduces = false;         // its last store or reduction was a reduction
    std::uint32_t conflict = 0;   // cycles that conflicts add to what `reason` is about
    Scoreboard* board = nullptr;  // of code that was lowered from PTX
    std::array<DependenceCounter, IssueControl::kCounters> counters{};  // of scheduled code
    const Op* branch = nullptr;  // that issued last; null if something else did
    std::uint64_t code_address = 0;
    std::uint64_t fetched = ~std::uint64_t{0};  // line of instructions it has
    std::uint32_t loads = 0;                    // under way
    std::uint32_t writes = 0;                   // not yet confirmed
    std::uint32_t store_conflict = 0;           // cycles that conflicts add to its last store
    bool faulted_at_end = false;                // what it waits for at its end had to wait for a page
    std::vector<Counted> counted;               // by counters that are waited for in part
    std::vector<CopyGroup> copies;              // that are not done
    std::uint32_t next_copy = 0;                // its number
    std::uint32_t copies_left = 0;              // under way
    Cycle copied = 0;                           // when the others are done
  };

  // What an instruction needs besides the memory queue: room for a line that comes, or for a store.
  enum class Room : std::uint8_t { none, line, store };

  // What decides among warps whose operands are ready. Apart from the slots, which are seldom in a cache.
  struct Candidate {
    std::uint64_t priority = 0;  // that the warp scheduler gave the warp
    std::uint8_t pipe = 0;       // that its next instruction needs
    bool dual_pipe = false;      // or the multiplier
    Room room = Room::none;
    bool yields = false;  // after its last instruction other warps go first
    bool pipe_was_busy = false;
    bool queue_was_full = false;
  };

  // Until when a warp cannot issue, and why.
  struct Waiting {
    Cycle until;
    Stall why = Stall::wait;
    const std::uint32_t* conflict = nullptr;  // cycles that conflicts add
    void consider(Cycle ready, Stall reason, const std::uint32_t* added = nullptr) {
      if (ready <= until) return;
      until = ready;
      why = reason;
      conflict = added;
    }
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

  struct SubCore {
    std::array<Cycle, kPipes> free{};
    std::vector<Cycle> queue;  // when the last memory instructions leave it, oldest at next_in_queue
    std::size_t next_in_queue = 0;
    Cycle address_free = 0;
    std::uint32_t last = 0;  // warp slot that issued last
    Cycle idle_until = 0;    // none of its warps can issue before, as things are
    L1Cache instructions;
  };

  Cycle tick(Cycle now);
  void start_cta(const CtaStart& start, std::uint32_t lane);
  void receive(const memory::Message& message, std::uint32_t lane);

  // --- Issue (sm_issue.cpp) ---
  Cycle issue_from(std::size_t sub_core, Cycle now);
  std::size_t pipe_for(const SubCore& sub, const SassInstruction& instruction) const;
  bool can_use_memory(const SubCore& sub, Room room, Cycle now, Cycle& when) const;
  void issue(SubCore& sub, std::uint32_t index, Cycle now);
  void next_operation(std::uint32_t index, Cycle now);
  void enter_operation(WarpSlot& slot, const Op& op) const;
  void find_earliest(std::uint32_t index);
  void wait_for_registers(const WarpSlot& slot, Waiting& waiting) const;
  static void hold(WarpSlot& slot, Cycle until);
  void account(std::uint32_t index, Cycle now);
  void fetch(SubCore& sub, WarpSlot& slot, Cycle now);
  void wake_blocked(CtaSlot& cta, Cycle now);
  void finish_if_done(std::uint32_t index, Cycle now);
  void finish(std::uint32_t index, Cycle now);
  LaunchRecord& record_of(std::uint32_t launch);
  void make_room(Cycle now);
  SubCore& sub_core_of(std::uint32_t warp) {
    return sub_cores_[warp % static_cast<std::uint32_t>(sub_cores_.size())];
  }
  Cycle& earliest(std::uint32_t warp) { return earliest_[place_of_[warp]]; }
  Candidate& candidate(std::uint32_t warp) { return candidates_[place_of_[warp]]; }

  // --- Machine code with a schedule (sm_schedule.cpp) ---
  static void wait_for_counters(const WarpSlot& slot, Waiting& waiting);
  static void wait_for_limit(const WarpSlot& slot, Waiting& waiting);
  static void count(WarpSlot& slot, std::uint8_t counter, Cycle done, Stall why, std::uint32_t number = 0,
                    std::uint32_t conflict = 0) {
    if (counter < IssueControl::kCounters)  // most name none
      count_in(slot, counter, done, why, number, conflict);
  }
  static void count_in(WarpSlot& slot, std::uint8_t counter, Cycle done, Stall why, std::uint32_t number,
                       std::uint32_t conflict);
  static void count_down(WarpSlot& slot, std::uint8_t counter, Cycle done, bool faulted, std::uint32_t number,
                         std::uint32_t conflict = 0);
  static void close_copies(WarpSlot& slot, std::uint8_t counter, Cycle earliest);
  static void copy_arrived(WarpSlot& slot, std::uint32_t copy, Cycle when, bool faulted);
  // For how long an instruction keeps its pipe: longer if the register file needs more cycles for its
  // operands.
  Cycle pipe_interval(const SubCore& sub, std::uint32_t index, const SassInstruction& instruction) const {
    const IssueControl& control = instruction.control;
    const bool cached = sub.last == index;  // no other warp's operands have taken their place
    const Cycle reads = cached ? control.read_cycles_cached : control.read_cycles;
    return std::max<Cycle>(timing_[static_cast<std::size_t>(instruction.kind)].interval, reads);
  }

  // --- Memory (sm_memory.cpp) ---
  Cycle enter_memory(SubCore& sub, Cycle now);
  void access(SubCore& sub, std::uint32_t index, const SassInstruction& instruction, bool executed,
              Cycle now);
  void access_spilled(std::uint32_t index, const SassInstruction& instruction, Cycle begin);
  void access_constants(std::uint32_t index, const SassInstruction& instruction, const Access& access,
                        Cycle begin);
  Cycle constant_latency(std::uint64_t address);
  void access_shared(std::uint32_t index, const SassInstruction& instruction, const Access& access,
                     Cycle begin);
  void access_global(std::uint32_t index, const SassInstruction& instruction, const Access& access,
                     Cycle begin);
  void set_ready(WarpSlot& slot, const SassInstruction& instruction, Cycle when, Stall writer,
                 Pipe pipe = Pipe::lsu, std::uint32_t load = 0, Cycle conflict = 0);
  void count_sectors(const Access& access, Kind kind, bool local, SmStatistics& statistics) const;
  void use_data_stage(Cycle begin, Cycle passes, Cycle needed, SmStatistics& statistics);
  void request(LaunchRecord& record, std::uint64_t line, std::uint8_t sectors, memory::Op op,
               memory::Value value, Cycle when, std::uint8_t rounds = 0);
  MissingSectors look_up(const LineAccess& touched, SmStatistics& statistics);
  void wait_for(LaunchRecord& record, std::uint64_t line, MissingSectors missing, std::uint32_t load,
                Cycle when);
  void load_arrived(std::uint32_t load, Cycle when);
  void write_done(std::uint32_t warp, Cycle cycle);
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
  void access_remote(const PendingAccess& pending, Cycle when);
  void remote_done(std::uint32_t entry, Cycle cycle);
  void mark_faulted(const PendingAccess& pending);
  LaunchRecord& record_of(const PendingAccess& pending);
  SmStatistics& statistics_of(const PendingAccess& pending) { return record_of(pending).statistics; }

  const Spec spec_;
  std::unique_ptr<WarpScheduler> warp_scheduler_;
  std::array<InstructionTiming, static_cast<std::size_t>(Kind::count)> timing_{};
  std::array<Pipe, static_cast<std::size_t>(Kind::count)> pipe_of_{};
  std::array<Room, static_cast<std::size_t>(Kind::count)> room_{};
  std::array<std::array<Cycle, kPipes>, kPipes>
      crossing_{};  // by the pipe that makes a value and the one that uses it
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
  std::vector<Cycle> earliest_;          // by place_of_
  std::vector<Candidate> candidates_;    // by place_of_
  std::vector<std::uint16_t> place_of_;  // by warp slot
  std::uint32_t places_ = 0;  // of a sub-core: for its warps, and up to the next kPlacesTogether nobody
  // What the warp scheduler decides, kept here since every issue looks at it.
  bool greedy_ = false;
  bool round_robin_ = false;
  WarpScheduler::Rank rank_ = nullptr;
  std::uint64_t next_age_ = 0;
  std::uint32_t last_launch_ = ~std::uint32_t{0};  // whose lines are in the L1
  std::uint32_t resident_warps_ = 0;
  Cycle resident_since_ = 0;

  L1Cache l1_;
  L1Cache instructions_;  // of the SM; constants too
  L1Cache constants_;
  PendingLines pending_;
  std::vector<Load> loads_;
  std::vector<std::uint32_t> free_loads_;
  std::int64_t writes_under_way_ = 0;  // lines
  Cycle data_free_ = 0;                // of the stage that L1 and shared memory share
  Cycle data_free_without_ = 0;        // the same if no access had conflicts
  Cycle conflict_ = 0;                 // cycles that conflicts add to the access that is executed
  Cycle request_free_ = 0;             // of the way to the network
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
