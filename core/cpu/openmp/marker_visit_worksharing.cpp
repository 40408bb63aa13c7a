// SPDX-License-Identifier: Apache-2.0
// Calls of libgomp for parallel regions, worksharing constructs, barriers and mutual exclusion.
#include "cpu/openmp/marker_visit.hpp"

namespace manyscale::cpu {

void MarkerWatch::Visit::at_parallel_call(Construct construct) {
  switch (construct) {
    case Construct::parallel:
    case Construct::parallel_loop:
    case Construct::parallel_sections:
      enter(construct, {.kind = RegionKind::parallel, .pc = argument(0)}).function = argument(0);
      until_return();
      watch_outlined(construct);
      break;
    case Construct::team_end:
      end_team();
      break;
    case Construct::team_size:
      at_team_size();
      break;
    case Construct::thread_number:
      at_thread_number();
      break;
    default:
      break;
  }
}

// The barrier at the end of a parallel region; it belongs to the region's function where that is known.
void MarkerWatch::Visit::end_team() {
  close_worksharing();
  const auto region = std::find_if(open.rbegin(), open.rend(), [](const Open& candidate) {
    return candidate.construct <= Construct::parallel_sections;
  });
  const std::uint64_t pc = region == open.rend() ? call_site(returns_to()) : region->function;
  enter(Construct::team_end, {.kind = RegionKind::barrier, .pc = pc});
  until_return();
}

void MarkerWatch::Visit::at_worksharing_call(Construct construct) {
  switch (construct) {
    case Construct::loop_start:
      start_worksharing(construct, RegionKind::loop);
      break;
    case Construct::sections_start:
      start_worksharing(construct, RegionKind::sections);
      break;
    case Construct::loop_end:
    case Construct::loop_end_nowait:
      close(Construct::loop_start);
      if (construct == Construct::loop_end) enter_until_return(construct, RegionKind::barrier);
      break;
    case Construct::sections_end:
    case Construct::sections_end_nowait:
      close(Construct::sections_start);
      if (construct == Construct::sections_end) enter_until_return(construct, RegionKind::barrier);
      break;
    case Construct::loop_next:
      follow(construct);
      until_return();
      break;
    case Construct::single_start:
      close_worksharing();
      follow(construct);
      until_return();
      break;
    case Construct::single_copy_start:
      // The thread that executes it returns at once; the others wait here for its single_copy_end.
      close_worksharing();
      enter_until_return(construct, RegionKind::wait);
      break;
    case Construct::barrier:
    case Construct::single_copy_end:
      close_worksharing();
      enter_until_return(construct, RegionKind::barrier);
      break;
    default:
      break;
  }
}

void MarkerWatch::Visit::start_worksharing(Construct construct, RegionKind kind) {
  if (find(construct) != open.size()) return;  // libgomp's functions for it call each other
  close_worksharing();
  enter(construct, {.kind = kind, .pc = call_site(returns_to())});
}

void MarkerWatch::Visit::at_mutual_exclusion_call(Construct construct) {
  switch (construct) {
    case Construct::critical_start:
      enter_until_return(construct, RegionKind::critical_wait);
      break;
    case Construct::named_critical_start:
      enter_until_return(construct, RegionKind::critical_wait, argument(0));
      break;
    case Construct::critical_end:
      close(Construct::critical_start);
      break;
    case Construct::named_critical_end:
      close(Construct::named_critical_start);
      break;
    case Construct::ordered_start:
      // An ordered loop calls it too, when it takes its next iterations.
      if (!open.empty() && open.back().construct == Construct::loop_next) break;
      enter_until_return(construct, RegionKind::ordered_wait);
      break;
    case Construct::ordered_end:
      close(Construct::ordered_start);
      break;
    case Construct::lock:
      enter_until_return(construct, RegionKind::lock, argument(0));
      break;
    case Construct::unlock:
      mark(lock_at(caller_pc(), argument(0)), MarkerAction::released);
      break;
    default:
      break;
  }
}

void MarkerWatch::Visit::at_outlined(Construct by) {
  if (by == Construct::task || by == Construct::taskloop) return start_task();
  if (by == Construct::thread_create) return start_thread();
  const bool started_here =
      !open.empty() && open.back().construct == by && open.back().function == hart.pc && !open.back().in_body;
  if (!started_here) {
    if (!open.empty() && open.back().awaits_join) close_innermost();
    enter(by, {.kind = RegionKind::parallel, .pc = hart.pc}).function = hart.pc;
    open.back().worker = true;
    until_return();
  }
  open.back().in_body = true;
  if (by == Construct::parallel_loop) enter(Construct::loop_start, {.kind = RegionKind::loop, .pc = hart.pc});
  if (by == Construct::parallel_sections)
    enter(Construct::sections_start, {.kind = RegionKind::sections, .pc = hart.pc});
}

// GCC's code for a loop with a static schedule calls omp_get_num_threads and right after it
// omp_get_thread_num. It calls nothing at the end of such a loop.
void MarkerWatch::Visit::at_team_size() {
  watch.asked_team_size_[number] = {returns_to(), stack_pointer()};
}

void MarkerWatch::Visit::at_thread_number() {
  constexpr std::uint64_t furthest = 32;  // bytes between the calls
  const auto asked = watch.asked_team_size_.find(number);
  if (asked == watch.asked_team_size_.end()) return;
  const auto [returned_to, its_stack_pointer] = asked->second;
  watch.asked_team_size_.erase(asked);
  if (its_stack_pointer != stack_pointer() || returns_to() - returned_to > furthest) return;
  const auto body =
      std::find_if(open.rbegin(), open.rend(), [](const Open& candidate) { return candidate.in_body; });
  if (body == open.rend() || body->construct > Construct::parallel_sections) return;
  close_worksharing();
  enter(Construct::static_loop, {.kind = RegionKind::loop, .pc = call_site(returned_to)});
}

}  // namespace manyscale::cpu
