// SPDX-License-Identifier: Apache-2.0
// A core: fetches, dispatches, issues, executes and commits the records of a stream source, out of order or
// in order, with its own caches, TLBs and branch predictor. It takes each record once, in program order, and
// computes the cycles at which things happen to it from those of the records before: widths and buffers are
// rings of cycles, and nothing steps through cycles. Only what depends on the memory beyond its own caches,
// or lies further ahead than the quantum, is put off; those who wait for it are in lists.
//
// Leaves out: instructions on the wrong path (they take no entry and touch no cache), the replay of loads
// whose line was lost before they committed, and the bandwidth of result buses.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "cpu/core/branch_predictor.hpp"
#include "cpu/core/commit_slots.hpp"
#include "cpu/core/core_spec.hpp"
#include "cpu/core/core_statistics.hpp"
#include "cpu/core/cpi_stack.hpp"
#include "cpu/core/cycle_account.hpp"
#include "cpu/core/dispatch_stage.hpp"
#include "cpu/core/fetch_stage.hpp"
#include "cpu/core/issue_ports.hpp"
#include "cpu/core/konata.hpp"
#include "cpu/core/region_account.hpp"
#include "cpu/core/store_queue.hpp"
#include "cpu/core/store_writer.hpp"
#include "cpu/core/translation_unit.hpp"
#include "cpu/core/window.hpp"
#include "cpu/stream/stream_protocol.hpp"
#include "engine/timer.hpp"
#include "memory/cache/private_caches.hpp"

namespace manyscale::cpu {

class Core final : public Component, public memory::PrivateCaches::Owner {
 public:
  using Spec = CoreSpec;

  explicit Core(const Spec& spec);
  void start() override;
  void settle() override;
  std::vector<Wait> waits() const override;

  const Spec& spec() const { return spec_; }
  const CpiStack& stack() const { return account_.stack(); }
  std::int64_t instructions() const { return instructions_; }
  Time period() const { return period_; }
  const RegionAccount& regions() const { return regions_; }
  RegionAccount& regions() { return regions_; }
  // By address; empty unless asked for.
  std::vector<HotLines::Line> hot_lines() const { return account_.hot_lines(); }
  const KonataLog& konata() const { return konata_; }
  // Visits to the region of interest that were begun on this core and not ended on it; threads move, so only
  // the sum over all cores shows whether one is open.
  std::int64_t visits_open() const { return visits_open_; }

 private:
  struct Wake {};
  struct Marker {
    std::uint64_t before;  // number of the operation that follows it
    std::uint64_t address;
    std::uint16_t thread;
    bool pauses;
  };
  // An answer of the caches.
  struct Arrival {
    std::uint32_t token;
    Cycle cycle;
    memory::Served served;
  };
  // What the caches could not take.
  struct Blocked {
    std::uint32_t token;
    std::uint32_t part;
    Cycle when;
  };

  // Tokens of accesses: what they are for, and which one.
  static constexpr std::uint32_t token_kind = 7u << 28;
  static constexpr std::uint32_t load_token = 0u << 28;
  static constexpr std::uint32_t store_token = 1u << 28;
  static constexpr std::uint32_t fetch_token = 2u << 28;
  static constexpr std::uint32_t walk_token = 3u << 28;

  // Between events (core.cpp).
  void take_answer(const StreamReply& answer, std::uint32_t lane);
  void take_message(const memory::Message& message, std::uint32_t lane);
  void wake(const Wake&);
  void send_to_memory(const memory::Message& message, Time when) override;
  void access_done(std::uint32_t token, Time ready, memory::Value value, memory::Served served) override;
  void unblocked() override;
  bool begin_event();
  void pump();
  void take_arrivals();
  void retry_blocked();
  Cycle cycle_of(Time time) const;
  Time time_of(Cycle cycle) const { return cycle * period_; }

  // Fetch and dispatch (core_front_end.cpp): false when the next record cannot go on now.
  void take_records();
  bool fetch(const Record& record, const ElasticTiming& timing);
  bool wait_for_redirect();
  bool fetch_line(const Record& record);
  bool translate_fetch(std::uint64_t pc);
  void follow_branch(const Record& record, Prediction recorded);
  bool dispatch(const Record& record, const ElasticTiming& timing);
  Cycle dispatch_cycle(const Record& record, const ElasticTiming& timing);
  void find_operands(Operation& operation);
  void records_arrived();

  // Issue and memory (core_execute.cpp).
  void schedule(Operation& operation);
  void defer(Operation& operation, Cycle cycle);
  void due(Operation& operation);
  void issue_load(Operation& operation, Cycle ready);
  void execute_load(Operation& operation, Cycle when);
  void issue_store(Operation& operation, Cycle ready);
  bool translate(Operation& operation, Cycle when);
  void go_on_translated(Operation& operation);
  void access_cache(Operation& operation);
  void access_part(Operation& operation, std::uint32_t part, Cycle when);
  void complete_store(Operation& operation);
  void begin_oldest(Operation& operation);
  void finish(Operation& operation, Cycle cycle);
  void wake_waiters();
  bool walk(std::uint32_t walk, Cycle when);
  void walk_done(Cycle cycle);

  // Commit and committed stores (core_commit.cpp): true if something happened.
  bool commit_all();
  void commit(Operation& operation);
  void take_markers();
  Progress progress() const;
  bool write_stores();
  bool write_store(std::uint64_t number, Cycle when);
  void store_written(std::uint64_t store, Cycle cycle);

  static Cause cause_of(memory::Served served) {
    return static_cast<Cause>(static_cast<std::size_t>(Cause::l1) + static_cast<std::size_t>(served));
  }
  bool waits_until_oldest(InstructionClass kind) const {
    return kind == InstructionClass::atomic || kind == InstructionClass::fence ||
           kind == InstructionClass::system;
  }

  const Spec spec_;
  const Time period_;
  const double cycles_per_time_;
  const bool total_store_order_;
  const Cycle data_hit_;
  const std::uint64_t line_mask_;
  CoreStatistics statistics_;
  CpiCounters cpi_counters_;
  InstructionCounters instruction_counters_;
  std::unique_ptr<memory::PrivateCaches> caches_;
  TranslationUnit translation_;
  BranchPredictor predictor_;
  CorePort work_{*this, "work", "the source of this core's instruction stream"};
  memory::RequesterPort memory_{*this, "memory",
                                "what serves the misses: a cache slice, memory, or an interconnect"};
  Timer<Wake> timer_{*this};
  Time wake_at_ = never;

  Time quantum_end_ = 0;
  Cycle last_cycle_ = 0;  // of the quantum
  // This event: no instruction can issue earlier, and no access is made further ahead.
  Cycle earliest_ = 0;
  Cycle horizon_ = 0;

  // The instruction stream. Records are numbered with markers, operations without.
  RecordRing* ring_ = nullptr;
  std::uint64_t available_ = 0, taken_ = 0, freed_ = 0;
  std::uint64_t halted_ = 0;  // number of the record that halts the stream
  bool starved_ = true, asleep_ = false, ended_ = false, begun_ = false;

  // Front end.
  FetchStage fetch_;
  std::int64_t fetch_buffer_;
  DispatchStage dispatch_;
  Cycle front_wake_ = unknown;

  // Window.
  Window window_;
  std::uint64_t next_ = 0, committed_ = 0;  // numbers of the next operations to dispatch and to commit
  IssuePorts ports_;
  StoreQueue stores_;
  CycleWheel wheel_;
  std::vector<std::uint32_t> resolved_;        // operations with waiters to wake
  std::vector<std::uint32_t> translations_;    // operations that wait for some page walk
  std::vector<std::uint32_t> unknown_stores_;  // loads that wait for addresses of stores
  std::vector<Blocked> blocked_, retried_;
  std::vector<Arrival> arrivals_;
  bool retry_ = false;
  Cycle oldest_wake_ = unknown;  // when the oldest operation can begin
  bool fenced_ = false;          // some memory operation waits behind the operation fence_
  std::uint64_t fence_ = 0;

  // Commit.
  CommitSlots commit_;
  CycleAccount account_;
  std::int64_t instructions_ = 0;
  std::array<std::int64_t, instruction_classes> committed_by_class_{};
  std::deque<Marker> markers_;
  std::int64_t visits_open_ = 0;
  RegionAccount regions_;
  std::uint32_t thread_ = ~0u;
  KonataLog konata_;

  // Committed stores.
  StoreWriter writer_;
  Cycle store_wake_ = unknown;
};

}  // namespace manyscale::cpu
