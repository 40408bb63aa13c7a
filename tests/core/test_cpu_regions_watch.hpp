// SPDX-License-Identifier: Apache-2.0
// Scripted calls: threads that call and return by hand, and the markers that MarkerWatch makes of it.
#pragma once
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "cpu/openmp/marker_watch.hpp"
#include "test_checks.hpp"

namespace manyscale::test {

using namespace manyscale::cpu;

inline constexpr std::uint64_t memory_at = 0x10000, memory_bytes = 0x10000;
inline constexpr std::size_t ra = 1, sp = 2, a0 = 10;

// One watched program with threads, each of which has a stack of calls.
class Script {
 public:
  explicit Script(const std::vector<WatchPoint>& points)
      : memory_(0, 1 << 20), watch_(points, regions_, tasks_) {
    memory_.map(memory_at, memory_bytes, Permission::read | Permission::write);
    for (std::uint16_t thread = 0; thread < 4; ++thread) {
      harts_[thread].x[sp] = 0x800000 - 0x100000 * thread;
      harts_[thread].x[ra] = 0x99;
    }
  }

  // The thread calls a function from the instruction before `from`; what it notes.
  std::string call(std::uint16_t thread, std::uint64_t function, std::uint64_t from,
                   std::vector<std::uint64_t> arguments = {}) {
    riscv::Hart& hart = harts_[thread];
    calls_[thread].push_back({from, hart.x[sp]});
    for (std::size_t index = 0; index < arguments.size(); ++index) hart.x[a0 + index] = arguments[index];
    hart.x[ra] = from;
    hart.pc = function;
    std::string noted = reach(thread);
    hart.x[sp] -= 64;
    return noted;
  }
  // The function called last returns.
  std::string back(std::uint16_t thread, std::uint64_t result = 0) {
    const Call call = calls_[thread].back();
    calls_[thread].pop_back();
    riscv::Hart& hart = harts_[thread];
    hart.x[a0] = result;
    hart.x[sp] = call.stack_pointer;
    hart.pc = call.from;
    return reach(thread);
  }
  // All frames but so many are gone at once.
  void unwind(std::uint16_t thread, std::size_t left) {
    harts_[thread].x[sp] = calls_[thread][left].stack_pointer;
    calls_[thread].resize(left);
  }
  std::string instruction(std::uint16_t thread, std::int32_t code, std::uint64_t value) {
    harts_[thread].pc = 0x5000;
    return text(thread, {0x5000, value, code});
  }
  std::string ends(std::uint16_t thread) {
    std::vector<std::uint64_t> markers;
    watch_.thread_ends(thread, markers);
    return text(markers);
  }
  void write(std::uint64_t address, const void* bytes, std::size_t count) {
    check(memory_.write(address, bytes, count), "memory of the script");
  }

  const TaskTable& tasks() const { return tasks_; }
  const MarkerWatch& watch() const { return watch_; }

 private:
  struct Call {
    std::uint64_t from, stack_pointer;
  };

  std::string reach(std::uint16_t thread) {
    const auto& watched = watch_.addresses();
    if (std::find(watched.begin(), watched.end(), harts_[thread].pc) == watched.end()) return "";
    return text(thread, {harts_[thread].pc, 0, -1});
  }
  std::string text(std::uint16_t thread, const riscv::Marker& marker) {
    std::vector<std::uint64_t> markers;
    watch_.reached(thread, harts_[thread], marker, memory_, markers);
    return text(markers);
  }
  std::string pc_of(std::uint64_t region) const {
    char pc[32];
    const auto address = static_cast<unsigned long long>(regions_[static_cast<std::uint32_t>(region)].pc);
    std::snprintf(pc, sizeof pc, "@%llx", address);
    return pc;
  }
  // Such as "7" or, of one that must have happened three times, "7*3".
  static std::string event(std::uint64_t subject) {
    const std::uint64_t posts = event_posts(subject);
    return std::to_string(event_number(subject)) + (posts == 1 ? "" : "*" + std::to_string(posts));
  }
  // Such as "+parallel@100 -loop@200 new0": entered, left, task created.
  std::string text(const std::vector<std::uint64_t>& markers) const {
    std::string text;
    for (const std::uint64_t marker : markers) {
      const std::uint64_t subject = marker_subject(marker);
      if (!text.empty()) text += ' ';
      switch (marker_action(marker)) {
        case MarkerAction::enter:
        case MarkerAction::leave: {
          const Region& region = regions_[static_cast<std::uint32_t>(subject)];
          text += marker_action(marker) == MarkerAction::enter ? '+' : '-';
          text +=
              region.name.empty() ? std::string(region_kind_name(region.kind)) + pc_of(subject) : region.name;
          break;
        }
        case MarkerAction::task_created:
          text += "new" + std::to_string(subject);
          break;
        case MarkerAction::task_starts:
          text += "start" + std::to_string(subject);
          break;
        case MarkerAction::task_ends:
          text += "end" + std::to_string(subject);
          break;
        case MarkerAction::released:
          text += "released" + pc_of(subject);
          break;
        case MarkerAction::acquired:
          text += "acquired" + pc_of(subject);
          break;
        case MarkerAction::thread_begins:
          text += "begins" + event(subject);
          break;
        case MarkerAction::posted:
          text += "posted" + event(subject);
          break;
        case MarkerAction::awaited:
          text += "awaited" + event(subject);
          break;
      }
    }
    return text;
  }

  RegionTable regions_;
  TaskTable tasks_;
  AddressSpace memory_;
  MarkerWatch watch_;
  riscv::Hart harts_[4];
  std::vector<Call> calls_[4];
};

inline void expect(const std::string& found, const std::string& expected, const std::string& what) {
  check(found == expected, what + ": '" + found + "' instead of '" + expected + "'");
}

}  // namespace manyscale::test
