// SPDX-License-Identifier: Apache-2.0
// Times of constructs, measured from logs that are written by hand.
#include <map>

#include "cpu/openmp/construct_times.hpp"
#include "test_checks.hpp"

using namespace manyscale;
using namespace manyscale::cpu;
using namespace manyscale::test;

namespace {

class Log {
 public:
  Log() {
    parallel_ = regions.intern({.kind = RegionKind::parallel, .pc = 100});
    join_ = regions.intern({.kind = RegionKind::barrier, .pc = 100});
  }
  std::uint32_t region(RegionKind kind, std::uint64_t pc, std::uint64_t object = 0) {
    return regions.intern({.kind = kind, .pc = pc, .object = object});
  }
  void add(std::uint16_t thread, Time time, MarkerAction action, std::uint64_t subject) {
    logs_[thread].push_back({time, subject, thread, action});
  }
  void visit(std::uint16_t thread, std::uint32_t number, Time begin, Time end) {
    add(thread, begin, MarkerAction::enter, number);
    add(thread, end, MarkerAction::leave, number);
  }
  // Two threads are in a parallel region from time 0 on; its end is told by `finish`.
  void begin() {
    add(0, 0, MarkerAction::enter, parallel_);
    add(1, 10, MarkerAction::enter, parallel_);
  }
  std::map<std::string, Time> finish() {
    visit(0, join_, 10000, 10130);
    visit(1, join_, 10100, 10120);
    add(1, 10125, MarkerAction::leave, parallel_);
    add(0, 10140, MarkerAction::leave, parallel_);
    std::vector<const std::vector<RegionAccount::LogEntry>*> all;
    for (const auto& log : logs_) all.push_back(&log.second);
    std::map<std::string, Time> times;
    for (const auto& [name, time] : construct_times(all, regions)) times[name] = time;
    return times;
  }

  RegionTable regions;

 private:
  std::uint32_t parallel_, join_;
  std::map<std::uint16_t, std::vector<RegionAccount::LogEntry>> logs_;
};

TEST(barriers) {
  Log log;
  const std::uint32_t barrier = log.region(RegionKind::barrier, 7);
  log.begin();
  // The second thread comes last, leaves late, and the first is at the next barrier before that.
  log.visit(0, barrier, 100, 320);
  log.visit(1, barrier, 300, 360);
  log.visit(0, barrier, 340, 540);
  log.visit(1, barrier, 500, 540);
  const auto times = log.finish();
  check_equal(times.at("barrier_latency"), (20 + 60 + 40 + 40) / 4, "from the last arrival");
  check_equal(times.at("join_latency"), 40, "from the last arrival until the master is outside");
  check(!times.contains("lock_latency"), "what did not occur is missing");
}

TEST(locks) {
  Log log;
  const std::uint32_t wait = log.region(RegionKind::critical_wait, 8, 77);
  const std::uint32_t held = log.region(RegionKind::critical, 8, 77);
  log.begin();
  log.visit(0, wait, 100, 120);
  log.visit(0, held, 120, 200);
  log.visit(1, wait, 150, 230);
  log.visit(1, held, 230, 260);
  log.visit(0, wait, 300, 310);
  const auto times = log.finish();
  check_equal(times.at("lock_latency"), 15, "of a lock that was free");
  check_equal(times.at("handover_latency"), 30, "of one that was waited for");
}

TEST(tasks) {
  Log log;
  const std::uint32_t create = log.region(RegionKind::task_create, 9);
  const std::uint32_t barrier = log.region(RegionKind::barrier, 7);
  const std::uint32_t body = log.region(RegionKind::task, 50);
  log.begin();
  log.visit(0, create, 100, 140);
  log.visit(0, create, 150, 180);
  log.add(1, 90, MarkerAction::enter, barrier);
  const auto run = [&](std::uint16_t thread, std::uint64_t task, Time begin, Time end) {
    log.add(thread, begin, MarkerAction::task_starts, task);
    log.visit(thread, body, begin, end);
    log.add(thread, end, MarkerAction::task_ends, task);
  };
  run(1, 0, 150, 400);
  run(1, 1, 420, 600);
  run(1, 2, 630, 700);
  log.add(1, 750, MarkerAction::leave, barrier);
  log.visit(0, barrier, 200, 770);
  const auto times = log.finish();
  check_equal(times.at("create_latency"), 35, "mean of two");
  check_equal(times.at("schedule_latency"), 30, "median of 60, 20 and 30");
  check_equal(times.at("barrier_latency"), 60, "after the last task");
}

}  // namespace
