// SPDX-License-Identifier: Apache-2.0
#include "cpu/openmp/marker_watch.hpp"

#include <algorithm>
#include <array>

#include "cpu/mpi/mpi_calls.hpp"
#include "cpu/openmp/marker_visit.hpp"
#include "cpu/openmp/task_dependences.hpp"

namespace manyscale::cpu {

namespace {

constexpr std::size_t longest_name = 256;
constexpr std::uint64_t task_has_dependences = 8;  // flag of GOMP_task (GOMP_TASK_FLAG_DEPEND)

// What the marker instruction's code means; see runtime/manyscale.h.
enum Code : std::int32_t { begin_user = 1, end_user, begin_mpi, end_mpi, begin_interest, end_interest };

}  // namespace

std::string_view construct_name(Construct construct) {
  static constexpr std::array<std::string_view, constructs> names{
      "parallel",
      "parallel_loop",
      "parallel_sections",
      "team_end",
      "loop_start",
      "loop_next",
      "loop_end",
      "loop_end_nowait",
      "barrier",
      "critical_start",
      "critical_end",
      "named_critical_start",
      "named_critical_end",
      "single_start",
      "single_copy_start",
      "single_copy_end",
      "sections_start",
      "sections_end",
      "sections_end_nowait",
      "ordered_start",
      "ordered_end",
      "task",
      "taskloop",
      "task_memory",
      "taskwait",
      "taskgroup_start",
      "taskgroup_end",
      "lock",
      "unlock",
      "mutex_lock",
      "mutex_unlock",
      "try_lock",
      "test_lock",
      "team_size",
      "thread_number",
      "static_loop",
      "thread_create",
      "thread_join",
      "condition_wait",
      "condition_signal",
      "thread_barrier",
      "semaphore_wait",
      "semaphore_post",
      "thread",
      "function",
  };
  return names[static_cast<std::size_t>(construct)];
}

MarkerWatch::MarkerWatch(const std::vector<WatchPoint>& points, RegionTable& regions, TaskTable& tasks)
    : regions_(regions), tasks_(tasks) {
  for (const WatchPoint& point : points) {
    Watched& watched = watch_address(point.address);
    watched.enters = true;
    watched.construct = point.construct;
  }
}

MarkerWatch::Watched& MarkerWatch::watch_address(std::uint64_t address) {
  const auto [place, added] = watched_.try_emplace(address);
  if (added) {
    addresses_.push_back(address);
    ++version_;
  }
  return place->second;
}

void MarkerWatch::reached(std::uint16_t thread, const riscv::Hart& hart, const riscv::Marker& marker,
                          AddressSpace& memory, std::vector<std::uint64_t>& markers) {
  if (open_.size() <= thread) open_.resize(thread + std::size_t{1});
  Visit visit{*this, thread, open_[thread], hart, memory, markers};
  if (const auto found = watched_.find(hart.pc); found != watched_.end()) {
    const Watched watched = found->second;  // watching more addresses may move it
    // What was called from frames that are gone has ended without returning (an exception, a longjmp), and so
    // has what was called from this one if it now calls something else.
    const std::uint64_t next = watched.returns ? hart.pc : visit.returns_to();
    const auto gone = std::ranges::find_if(visit.open, [&](const Open& open) {
      if (open.return_address == 0 || open.stack_pointer > visit.stack_pointer()) return false;
      return open.stack_pointer < visit.stack_pointer() || open.return_address != next;
    });
    visit.close_down_to(static_cast<std::size_t>(gone - visit.open.begin()));
    if (watched.returns) visit.at_return();
    if (watched.outlined) visit.at_outlined(watched.outlined_by);
    if (watched.enters) visit.at_entry(watched.construct);
  }
  if (marker.code >= 0) visit.at_instruction(marker);
}

void MarkerWatch::thread_ends(std::uint16_t thread, std::vector<std::uint64_t>& markers) {
  events_.ends(thread);
  if (open_.size() <= thread) return;
  std::vector<Open>& open = open_[thread];
  while (!open.empty()) {
    if (open.back().entered) markers.push_back(marker_address(open.back().region, MarkerAction::leave));
    if (open.back().construct == Construct::thread)
      markers.push_back(marker_address(sync_event(open.back().event, 1), MarkerAction::posted));
    open.pop_back();
  }
}

void MarkerWatch::Visit::at_entry(Construct construct) {
  // The join after a parallel region belongs to it; anything else means that there was none.
  if (construct != Construct::team_end && !open.empty() && open.back().awaits_join) close_innermost();
  const std::uint64_t here = call_site(returns_to());
  switch (construct) {
    case Construct::parallel:
    case Construct::parallel_loop:
    case Construct::parallel_sections: {
      enter(construct, {.kind = RegionKind::parallel, .pc = argument(0)}).function = argument(0);
      until_return();
      watch_outlined(construct);
      break;
    }
    case Construct::team_end: {
      close_worksharing();
      const auto region = std::find_if(open.rbegin(), open.rend(), [](const Open& candidate) {
        return candidate.construct <= Construct::parallel_sections;
      });
      const std::uint64_t pc = region == open.rend() ? here : region->function;
      enter(construct, {.kind = RegionKind::barrier, .pc = pc});
      until_return();
      break;
    }
    case Construct::loop_start:
    case Construct::sections_start: {
      if (find(construct) != open.size()) break;  // libgomp's functions for it call each other
      close_worksharing();
      const bool loop = construct == Construct::loop_start;
      enter(construct, {.kind = loop ? RegionKind::loop : RegionKind::sections, .pc = here});
      break;
    }
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
    case Construct::single_copy_start:
      // Who executes it goes on at once; the others meet that thread's single_copy_end here.
      close_worksharing();
      enter_until_return(construct, RegionKind::wait);
      break;
    case Construct::barrier:
    case Construct::single_copy_end:
      close_worksharing();
      enter_until_return(construct, RegionKind::barrier);
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
      if (!open.empty() && open.back().construct == Construct::loop_next) break;
      enter_until_return(construct, RegionKind::ordered_wait);
      break;
    case Construct::ordered_end:
      close(Construct::ordered_start);
      break;
    case Construct::task:
    case Construct::taskloop: {
      enter_until_return(construct, RegionKind::task_create).function = argument(0);
      watch_outlined(construct);
      if (construct == Construct::taskloop) break;
      const bool depends = (argument(6) & task_has_dependences) != 0;
      const auto dependences =
          depends ? read_dependences(memory, argument(7)) : std::vector<TaskDependence>{};
      open.back().task = add_task(argument(0), dependences);
      break;
    }
    case Construct::task_memory: {
      Open* maker = caller();
      if (maker == nullptr) break;
      if (maker->construct != Construct::task && maker->construct != Construct::taskloop) break;
      // A task's memory is asked for first, and all of a loop's tasks have one size; what else is asked for
      // is for lists.
      const bool tasks_own =
          maker->bytes == 0 || (maker->construct == Construct::taskloop && maker->bytes == argument(0));
      if (!tasks_own) break;
      maker->bytes = argument(0);
      const std::uint64_t function = maker->function;
      const std::uint64_t task = maker->construct == Construct::task ? maker->task : add_task(function, {});
      Open& wanted = follow(construct);
      wanted.function = function;
      wanted.task = task;
      wanted.bytes = argument(0);
      until_return();
      break;
    }
    case Construct::taskwait:
      enter_until_return(construct, RegionKind::taskwait);
      break;
    case Construct::taskgroup_end: {
      // Often the last thing in its function, and then no call that returns there.
      const std::size_t group = find(Construct::taskgroup_start);
      const std::uint64_t pc = group == open.size() ? here : watch.regions_[open[group].region].pc;
      enter(construct, {.kind = RegionKind::taskwait, .pc = pc});
      until_return();
      break;
    }
    case Construct::taskgroup_start: {
      const std::uint64_t called = place();
      follow(construct).place = called;
      until_return();
      break;
    }
    case Construct::lock:
      enter_until_return(construct, RegionKind::lock, argument(0));
      break;
    case Construct::unlock:
      mark(lock_at(place(), argument(0)), MarkerAction::released);
      break;
    case Construct::team_size:
      at_team_size();
      break;
    case Construct::thread_number:
      at_thread_number();
      break;
    case Construct::mutex_lock:
    case Construct::mutex_unlock:
    case Construct::try_lock:
    case Construct::test_lock:
    case Construct::thread_create:
    case Construct::thread_join:
    case Construct::condition_wait:
    case Construct::condition_signal:
    case Construct::thread_barrier:
    case Construct::semaphore_wait:
    case Construct::semaphore_post:
      if (!in_runtime()) at_thread_call(construct);
      break;
    case Construct::static_loop:
    case Construct::thread:  // begin at no function of their own
      break;
    case Construct::function:
      enter(construct, {.kind = RegionKind::user, .pc = hart.pc});
      until_return();
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

// Code that GCC makes for a loop with a static schedule asks how many threads there are, and at once which of
// them it is. Nothing is called where such a loop ends.
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

std::uint64_t MarkerWatch::Visit::add_task(std::uint64_t function,
                                           const std::vector<TaskDependence>& dependences) {
  Task task{.region = watch.regions_.intern({.kind = RegionKind::task, .pc = function}), .creator = number};
  const auto parent = std::find_if(open.rbegin(), open.rend(), [](const Open& candidate) {
    return candidate.outlined_task || candidate.in_body;
  });
  if (parent != open.rend() && parent->outlined_task && parent->task != no_task)
    task.parent = parent->task + 1;
  const std::uint64_t added = watch.tasks_.add(task, dependences);
  mark(added, MarkerAction::task_created);
  return added;
}

void MarkerWatch::Visit::start_task() {
  std::uint64_t task = no_task;
  // Its data lie in the memory taken for it; a task executed at once has no memory of its own.
  auto memory_of_task = watch.task_memory_.upper_bound(argument(0));
  if (memory_of_task != watch.task_memory_.begin() &&
      argument(0) - (--memory_of_task)->first < memory_of_task->second.bytes &&
      memory_of_task->second.function == hart.pc) {
    task = memory_of_task->second.task;
    watch.task_memory_.erase(memory_of_task);
  } else if (!open.empty() && open.back().function == hart.pc) {
    if (open.back().construct == Construct::task) task = open.back().task;
    if (open.back().construct == Construct::taskloop) task = add_task(hart.pc, {});
  }
  if (task != no_task) mark(task, MarkerAction::task_starts);
  Open& execution = enter(Construct::task, {.kind = RegionKind::task, .pc = hart.pc});
  execution.outlined_task = execution.in_body = true;
  execution.task = task;
  until_return();
}

void MarkerWatch::Visit::at_return() {
  for (;;) {
    const auto call = std::find_if(open.rbegin(), open.rend(), [&](const Open& candidate) {
      return candidate.return_address == hart.pc && candidate.stack_pointer == stack_pointer();
    });
    if (call == open.rend()) return;
    close_down_to(static_cast<std::size_t>(open.rend() - call));
    returned();
  }
}

// The function of the innermost construct has returned.
void MarkerWatch::Visit::returned() {
  const Open call = open.back();
  const std::uint64_t result = argument(0);
  thread_call_returns(call);
  if (call.worker) {
    open.back().return_address = 0;
    open.back().in_body = false;
    open.back().awaits_join = true;
    return;
  }
  close_innermost();
  const std::uint64_t here = call_site(call.return_address);
  switch (call.construct) {
    case Construct::team_end:
      if (!open.empty() && open.back().awaits_join) close_innermost();
      break;
    case Construct::critical_start:
    case Construct::named_critical_start:
      enter(call.construct, {RegionKind::critical, {}, here, watch.regions_[call.region].object});
      break;
    case Construct::ordered_start:
      enter(call.construct, {.kind = RegionKind::ordered, .pc = here});
      break;
    case Construct::single_start:
      if (result != 0) enter(Construct::single_start, {.kind = RegionKind::single, .pc = here});
      break;
    case Construct::single_copy_start:
      if (result == 0) {
        enter(Construct::single_start, {.kind = RegionKind::single, .pc = here});
      } else {
        enter(call.construct, {.kind = RegionKind::barrier, .pc = here});
        close_innermost();
      }
      break;
    case Construct::taskgroup_start:
      enter(call.construct, {.kind = RegionKind::taskgroup, .pc = call.place});
      break;
    case Construct::taskgroup_end:
      close(Construct::taskgroup_start);
      break;
    case Construct::task_memory:
      if (result != 0) watch.task_memory_[result] = {call.bytes, call.function, call.task};
      break;
    default:
      break;
  }
}

void MarkerWatch::Visit::at_instruction(const riscv::Marker& marker) {
  const auto mpi_region = [&] {
    const bool known = marker.value < mpi_calls.size();
    return Region{RegionKind::mpi,
                  known ? std::string(mpi_calls[marker.value]) : "MPI call " + std::to_string(marker.value),
                  0, 0};
  };
  const auto user_region = [&] {
    return Region{RegionKind::user, memory.read_string(marker.value, longest_name).value_or("(no name)"), 0,
                  0};
  };
  const Region interest{RegionKind::user, "region of interest", 0, 0};
  switch (marker.code) {
    case begin_user:
      enter(Construct::function, user_region());
      break;
    case end_user:
      end_region(user_region());
      break;
    case begin_mpi:
      enter(Construct::function, mpi_region());
      break;
    case end_mpi:
      end_region(mpi_region());
      break;
    case begin_interest:
      enter(Construct::function, interest);
      break;
    case end_interest:
      end_region(interest);
      break;
    default:
      break;
  }
}

// Ends a region that marker instructions enclose, with all that began within it.
void MarkerWatch::Visit::end_region(const Region& region) {
  const std::uint32_t ended = watch.regions_.intern(region);
  const auto begun = std::find_if(open.rbegin(), open.rend(), [&](const Open& candidate) {
    return candidate.region == ended && candidate.entered && candidate.return_address == 0;
  });
  if (begun != open.rend()) close_down_to(static_cast<std::size_t>(open.rend() - begun) - 1);
}

}  // namespace manyscale::cpu
