// SPDX-License-Identifier: Apache-2.0
// Marker visit: one thread of a program at one watched pc or marker instruction. Private to MarkerWatch.
#pragma once
#include <algorithm>
#include <cstddef>

#include "cpu/openmp/marker_watch.hpp"

namespace manyscale::cpu {

// An address within the call instruction that returns to `return_address`; calls have 2 or 4 bytes.
inline std::uint64_t call_site(std::uint64_t return_address) {
  return return_address - 2;
}

// One thread at one watched pc or marker instruction.
struct MarkerWatch::Visit {
  static constexpr std::uint64_t no_task = ~std::uint64_t{0};
  static constexpr std::size_t return_register = 1, stack_register = 2, first_argument = 10;

  MarkerWatch& watch;
  std::uint16_t number;
  std::vector<Open>& open;
  const riscv::Hart& hart;
  AddressSpace& memory;
  std::vector<std::uint64_t>& markers;

  std::uint64_t argument(std::size_t index) const { return hart.x[first_argument + index]; }
  std::uint64_t returns_to() const { return hart.x[return_register]; }
  std::uint64_t stack_pointer() const { return hart.x[stack_register]; }

  void mark(std::uint64_t subject, MarkerAction action) {
    markers.push_back(marker_address(subject, action));
  }

  // Opens a construct that enters a region and lasts until it is closed.
  Open& enter(Construct construct, const Region& region) {
    const std::uint32_t number_of_region = watch.regions_.intern(region);
    mark(number_of_region, MarkerAction::enter);
    open.push_back({.construct = construct, .entered = true, .region = number_of_region});
    return open.back();
  }
  // Opens one that has no region itself.
  Open& follow(Construct construct) {
    open.push_back({.construct = construct});
    return open.back();
  }
  // Makes the innermost construct, whose function has just been entered, end when the function returns.
  void until_return() {
    open.back().return_address = returns_to();
    open.back().stack_pointer = stack_pointer();
    watch.watch_address(returns_to()).returns = true;
  }
  // The function given as first argument will be executed for this construct, by whichever threads.
  void watch_outlined(Construct construct) {
    Watched& outlined = watch.watch_address(argument(0));
    outlined.outlined = true;
    outlined.outlined_by = construct;
  }
  // The construct that calls the function just entered: the innermost, but for a taskgroup that a taskloop
  // has begun; nullptr if there is none.
  Open* caller() {
    const auto found = std::find_if(open.rbegin(), open.rend(), [](const Open& candidate) {
      return candidate.construct != Construct::taskgroup_start || candidate.return_address != 0;
    });
    return found == open.rend() ? nullptr : &*found;
  }
  // The call site of the function just entered; of one that a taskloop calls, that of the taskloop.
  std::uint64_t caller_pc() {
    const Open* call = caller();
    const bool in_taskloop = call != nullptr && call->construct == Construct::taskloop;
    return call_site(in_taskloop ? call->return_address : returns_to());
  }
  Open& enter_until_return(Construct construct, RegionKind kind, std::uint64_t object = 0) {
    enter(construct, {kind, {}, caller_pc(), object, construct == Construct::mutex_lock});
    until_return();
    return open.back();
  }

  // Whether the thread is in a function of OpenMP's runtime, which may call watched functions itself.
  bool in_runtime() const {
    return !open.empty() && open.back().return_address != 0 && !open.back().in_body &&
           open.back().construct != Construct::function;
  }

  void close_innermost() {
    const Open& last = open.back();
    if (last.outlined_task && last.task != no_task) mark(last.task, MarkerAction::task_ends);
    if (last.entered) mark(last.region, MarkerAction::leave);
    open.pop_back();
  }
  void close_down_to(std::size_t count) {
    while (open.size() > count) close_innermost();
  }

  // The index of the innermost construct of this kind whose beginning has returned, in the function of the
  // parallel region or task that the thread executes; open.size() if there is none.
  std::size_t find(Construct construct) const {
    for (std::size_t index = open.size(); index-- > 0;) {
      if (open[index].construct == construct && open[index].return_address == 0) return index;
      if (open[index].in_body) break;
    }
    return open.size();
  }
  void close(Construct construct) {
    if (const std::size_t index = find(construct); index != open.size()) close_down_to(index);
  }

  // Ends the constructs that last until their thread comes to the next worksharing construct.
  void close_worksharing() {
    close(Construct::single_start);
    close(Construct::static_loop);
  }

  void at_entry(Construct construct);
  // Parallel regions, worksharing, mutual exclusion (marker_visit_worksharing.cpp).
  void at_parallel_call(Construct construct);
  void end_team();
  void at_team_size();
  void at_thread_number();
  void at_outlined(Construct by);
  void at_worksharing_call(Construct construct);
  void start_worksharing(Construct construct, RegionKind kind);
  void at_mutual_exclusion_call(Construct construct);
  // Tasks (marker_visit_tasks.cpp).
  void at_task_call(Construct construct);
  void create_task(Construct construct);
  void allocate_task_memory();
  void end_taskgroup();
  std::uint64_t add_task(std::uint64_t function, const std::vector<TaskDependence>& dependences);
  void start_task();

  void at_return();
  void returned();
  void at_instruction(const riscv::Marker& marker);
  void end_region(const Region& region);

  // Threads that the program creates itself (marker_visit_threads.cpp).
  std::uint64_t lock_at(std::uint64_t call_pc, std::uint64_t object, bool sleeps = false);
  void mark_event(std::uint64_t event, std::uint64_t posts, MarkerAction action);
  // Whether there is no other thread that a lock could be for: the C library takes some of its own.
  bool alone() const { return open.empty() && watch.events_.next() == 0; }
  void at_thread_call(Construct construct);
  void thread_call_returns(const Open& call);
  void start_thread();
};

}  // namespace manyscale::cpu
