// SPDX-License-Identifier: Apache-2.0
// Credits what a core does to the regions of the threads that run on it: time, instructions and the cycles of
// the CPI stack. What happens between two markers belongs to the innermost region open then.
//
// The core gives its progress (Progress) at each marker that commits and each change of thread;
// differences are taken here. So for each thread the exclusive sums over its regions add up to its time, and
// over the threads of a core to the core's, but for the cycles in which it was idle (Cause::idle), which
// belong to no thread. While a thread is off its core its time is counted as `away`.
#pragma once
#include <cstdint>
#include <vector>

#include "cpu/core/cpi_stack.hpp"
#include "cpu/stream/marker.hpp"
#include "engine/time.hpp"

namespace manyscale::cpu {

// What a core has done since the beginning of the simulation.
struct Progress {
  Time time = 0;
  std::int64_t instructions = 0;
  CpiStack stack{};
};

class RegionAccount {
 public:
  // The region of a thread that is in none.
  static constexpr std::uint32_t outside = ~std::uint32_t{0};

  struct Sum {
    Time time = 0;  // on the core, awake or asleep
    Time away = 0;  // another thread had the core
    std::int64_t instructions = 0;
    CpiStack stack{};
  };
  // What one thread did in one region. Inclusive sums count regions within it; of a region within itself
  // (recursion) only the outermost visit counts. Visits that are still open count from their beginning.
  struct Row {
    std::uint16_t thread = 0;
    std::uint32_t region = outside;
    std::uint64_t visits = 0;
    Sum exclusive;
    Sum inclusive;
    Time shortest = never;  // time of a visit that has ended, on the core and away; never: none has
    Time longest = 0;
  };
  struct LogEntry {
    Time time = 0;
    std::uint64_t subject = 0;  // region, or number of a task
    std::uint16_t thread = 0;
    MarkerAction action = MarkerAction::enter;

    // Whether a region begins or ends here.
    bool is_boundary() const { return action == MarkerAction::enter || action == MarkerAction::leave; }
  };

  // At most `log_limit` actions are kept (0: no log).
  explicit RegionAccount(std::size_t log_limit = 0) : log_limit_(log_limit) {}

  // From now on the core works for this thread (also the first one); what it did so far belongs to the one
  // before. Not called when a thread sleeps and the same one goes on.
  void run_thread(std::uint16_t thread, const Progress& now);
  // A marker record of the running thread (run_thread is implied) commits.
  void commit(std::uint16_t thread, std::uint64_t marker, const Progress& now);
  // Credits what was done since the last call, so that `rows` is up to date; can be called more than once.
  void settle(const Progress& now);

  // By thread, then region; `outside` comes last of each thread.
  std::vector<Row> rows() const;
  const std::vector<LogEntry>& log() const { return log_; }
  std::uint64_t log_dropped() const { return log_dropped_; }

 private:
  // A Row in the making.
  struct Account {
    std::uint64_t visits = 0;
    std::uint64_t depth = 0;  // visits that are open
    Sum exclusive{};
    Sum inclusive{};
    Time shortest = never;
    Time longest = 0;
  };
  struct Visit {
    std::uint32_t region = outside;
    Sum begin;  // the thread's totals then
  };
  struct Thread {
    std::vector<Account> accounts;  // by region
    Account outside;
    std::vector<Visit> open;  // innermost last
    Sum total;
    Time left = never;  // when it last lost the core
    bool seen = false;
  };

  Thread& thread(std::uint16_t number);
  Account& account(Thread& thread, std::uint32_t region);
  Account& innermost(Thread& thread);
  void enter(Thread& thread, std::uint32_t region);
  void leave(Thread& thread, std::uint32_t region);

  static constexpr std::size_t none = ~std::size_t{0};
  std::vector<Thread> threads_;  // by number
  std::size_t running_ = none;
  Progress last_;  // what is credited already
  std::vector<LogEntry> log_;
  std::size_t log_limit_;
  std::uint64_t log_dropped_ = 0;
};

}  // namespace manyscale::cpu
