// SPDX-License-Identifier: Apache-2.0
// Regions: what a core did is credited to the innermost one, and all of it exactly once.
#include <algorithm>
#include <map>
#include <vector>

#include "cpu/core/region_account.hpp"
#include "cpu/stream/region_table.hpp"
#include "cpu/stream/task_table.hpp"
#include "engine/random.hpp"
#include "test_checks.hpp"

using namespace manyscale;
using namespace manyscale::cpu;
using namespace manyscale::test;

namespace {

std::uint64_t enter(std::uint64_t region) {
  return marker_address(region, MarkerAction::enter);
}
std::uint64_t leave(std::uint64_t region) {
  return marker_address(region, MarkerAction::leave);
}

// The core at some time: ten instructions per nanosecond and all cycles for one cause.
Progress at(Time nanoseconds) {
  Progress progress{nanoseconds * nanosecond, 10 * nanoseconds, {}};
  progress.stack[Cause::dram] = nanoseconds;
  return progress;
}

const RegionAccount::Row* find(const std::vector<RegionAccount::Row>& rows, std::uint16_t thread,
                               std::uint32_t region) {
  const auto found = std::ranges::find_if(
      rows, [&](const RegionAccount::Row& row) { return row.thread == thread && row.region == region; });
  return found == rows.end() ? nullptr : &*found;
}

TEST(nested_regions_share_time) {
  RegionAccount account(100);
  account.run_thread(3, at(5));
  account.commit(3, enter(7), at(10));
  account.commit(3, enter(1), at(30));
  account.commit(3, leave(1), at(70));
  account.commit(3, enter(1), at(75));
  account.commit(3, leave(1), at(80));
  account.commit(3, leave(7), at(100));
  account.settle(at(130));
  const auto rows = account.rows();
  check(rows.size() == 3, "two regions and what is outside");
  const auto *outer = find(rows, 3, 7), *inner = find(rows, 3, 1),
             *outside = find(rows, 3, RegionAccount::outside);
  check(outer->visits == 1 && inner->visits == 2, "visits");
  check(outer->exclusive.time == 45 * nanosecond && outer->inclusive.time == 90 * nanosecond, "outer's time");
  check(inner->exclusive.time == 45 * nanosecond && inner->inclusive.time == 45 * nanosecond, "inner's time");
  check(inner->shortest == 5 * nanosecond && inner->longest == 40 * nanosecond, "shortest and longest visit");
  check(outside->exclusive.time == 35 * nanosecond && outside->inclusive.time == 125 * nanosecond,
        "outside: 5 before and 30 after; nothing from before the thread came");
  check(inner->exclusive.instructions == 450 && inner->exclusive.stack[Cause::dram] == 45,
        "instructions and cycles go with the time");
  check(account.log().size() == 6 && account.log()[2].action == MarkerAction::leave &&
            account.log()[2].time == 70 * nanosecond && account.log()[2].subject == 1,
        "the log");
}

TEST(recursion_counts_once) {
  RegionAccount account;
  account.commit(0, enter(0), at(0));
  account.commit(0, enter(0), at(10));
  account.commit(0, leave(0), at(20));
  account.commit(0, leave(0), at(50));
  account.settle(at(50));
  const auto rows = account.rows();
  const auto* row = find(rows, 0, 0);
  check(row->visits == 2, "both visits");
  check(row->inclusive.time == 50 * nanosecond && row->exclusive.time == 50 * nanosecond,
        "inclusive time once");
  check(row->shortest == 10 * nanosecond && row->longest == 50 * nanosecond, "each visit for itself");
}

TEST(open_regions_count_so_far) {
  RegionAccount account;
  account.commit(0, enter(4), at(10));
  account.settle(at(25));
  const auto rows = account.rows();
  const auto* row = find(rows, 0, 4);
  check(row->inclusive.time == 15 * nanosecond && row->shortest == never, "an open region");
  account.settle(at(40));
  const auto later = account.rows();
  check(find(later, 0, 4)->inclusive.time == 30 * nanosecond, "settled again");
}

TEST(threads_take_turns) {
  RegionAccount account;
  account.commit(0, enter(1), at(10));
  account.run_thread(1, at(30));
  account.commit(1, enter(2), at(40));
  account.run_thread(0, at(60));
  account.commit(0, leave(1), at(70));
  account.settle(at(70));
  const auto rows = account.rows();
  const auto *first = find(rows, 0, 1), *second = find(rows, 1, 2);
  check(first->exclusive.time == 30 * nanosecond && first->exclusive.away == 30 * nanosecond,
        "time on the core and away");
  check(first->longest == 60 * nanosecond, "a visit lasts while its thread is away");
  check(second->exclusive.time == 20 * nanosecond && second->exclusive.away == 0, "the other's time");
}

TEST(wrong_leaves_are_ignored) {
  RegionAccount account(2);
  account.commit(0, leave(3), at(5));
  account.commit(0, enter(1), at(10));
  account.commit(0, leave(2), at(20));
  account.commit(0, enter(std::uint64_t{1} << 40), at(25));
  account.commit(0, leave(1), at(30));
  account.settle(at(30));
  const auto rows = account.rows();
  check(find(rows, 0, 1)->exclusive.time == 20 * nanosecond, "the region that was left");
  check(account.log().size() == 2 && account.log_dropped() == 3, "a full log drops and counts");
}

// A core of 1 GHz that has nothing to do for 40 ns, works for 10, and has nothing to do again.
TEST(idle_time_is_nobodys) {
  const auto progress = [](Time nanoseconds, std::int64_t idle) {
    Progress made{nanoseconds * nanosecond, nanoseconds, {}};
    made.stack[Cause::idle] = idle;
    made.stack[Cause::base] = nanoseconds - idle;
    return made;
  };
  RegionAccount account;
  account.run_thread(0, progress(0, 0));
  account.commit(0, enter(1), progress(43, 40));
  account.commit(0, leave(1), progress(50, 40));
  account.settle(progress(80, 70));
  const auto rows = account.rows();
  check(find(rows, 0, 1)->exclusive.time == 7 * nanosecond, "the region's time");
  const auto* outside = find(rows, 0, RegionAccount::outside);
  check(outside->exclusive.time == 3 * nanosecond && outside->inclusive.time == 10 * nanosecond &&
            outside->inclusive.stack.sum() == 10,
        "the thread's time and cycles");
}

// Random markers of many threads: for each thread exclusive times add up to its time, and those of all
// threads to the core's.
TEST(random_markers_add_up) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed, 0);
    RegionAccount account;
    std::map<std::uint16_t, std::vector<std::uint64_t>> open;
    Time now = 0;
    std::uint16_t running = 0;
    account.run_thread(0, at(0));
    for (int step = 0; step < 2000; ++step) {
      now += static_cast<Time>(random.below(20));
      const std::uint64_t choice = random.below(10);
      if (choice == 0) {
        running = static_cast<std::uint16_t>(random.below(5));
        account.run_thread(running, at(now));
      } else if (choice < 6 || open[running].empty()) {
        open[running].push_back(random.below(30));
        account.commit(running, enter(open[running].back()), at(now));
      } else {
        account.commit(running, leave(open[running].back()), at(now));
        open[running].pop_back();
      }
    }
    account.settle(at(now));
    std::map<std::uint16_t, RegionAccount::Sum> sums;
    Time all = 0;
    std::int64_t instructions = 0;
    const auto rows = account.rows();
    for (const auto& row : rows) {
      sums[row.thread].time += row.exclusive.time;
      sums[row.thread].away += row.exclusive.away;
      all += row.exclusive.time;
      instructions += row.exclusive.instructions;
    }
    check(all == now * nanosecond && instructions == 10 * now, "all of the core's time is credited");
    for (const auto& [thread, sum] : sums) {
      const auto* whole = find(rows, thread, RegionAccount::outside);
      check(whole->inclusive.time == sum.time && whole->inclusive.away == sum.away,
            "a thread's regions add up");
    }
  }
}

TEST(tables) {
  RegionTable regions;
  const auto first = regions.intern({RegionKind::loop, "", 0x100, 0});
  const auto second = regions.intern({RegionKind::barrier, "", 0x100, 0});
  check(first == 0 && second == 1 && regions.intern({RegionKind::loop, "", 0x100, 0}) == 0, "interned once");
  for (std::uint64_t pc = 0; pc < RegionTable::limit + 10; ++pc)
    regions.intern({RegionKind::user, "", 0x1000 + pc, 0});
  check(regions.size() == RegionTable::limit, "no more regions than the limit");
  check(regions.intern({RegionKind::user, "one more", 0, 0}) == RegionTable::limit - 1,
        "further ones share the last");
  TaskTable tasks;
  check(tasks.add({.region = 5}, {{0x10, TaskDependence::Type::in}}) == 0, "tasks count from 0");
  check(tasks.add({.region = 6}, {{0x20, TaskDependence::Type::out}, {0x30, TaskDependence::Type::in}}) == 1,
        "and on");
  check(tasks.tasks()[1].first_dependence == 1 && tasks.tasks()[1].dependence_count == 2,
        "their dependences");
}

}  // namespace
