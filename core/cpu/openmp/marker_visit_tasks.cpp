// SPDX-License-Identifier: Apache-2.0
// Calls of libgomp for tasks: creation, the memory of a task, taskwait and taskgroups; execution of tasks.
#include "cpu/openmp/marker_visit.hpp"
#include "cpu/openmp/task_dependences.hpp"

namespace manyscale::cpu {

namespace {

constexpr std::uint64_t task_has_dependences = 8;  // flag of GOMP_task (GOMP_TASK_FLAG_DEPEND)

}  // namespace

void MarkerWatch::Visit::at_task_call(Construct construct) {
  switch (construct) {
    case Construct::task:
    case Construct::taskloop:
      create_task(construct);
      break;
    case Construct::task_memory:
      allocate_task_memory();
      break;
    case Construct::taskwait:
      enter_until_return(construct, RegionKind::taskwait);
      break;
    case Construct::taskgroup_start: {
      const std::uint64_t called = caller_pc();
      follow(construct).call_pc = called;
      until_return();
      break;
    }
    case Construct::taskgroup_end:
      end_taskgroup();
      break;
    default:
      break;
  }
}

// The tasks of a taskloop are added one by one, as libgomp takes memory for them.
void MarkerWatch::Visit::create_task(Construct construct) {
  enter_until_return(construct, RegionKind::task_create).function = argument(0);
  watch_outlined(construct);
  if (construct == Construct::taskloop) return;
  const bool depends = (argument(6) & task_has_dependences) != 0;
  const auto dependences = depends ? read_dependences(memory, argument(7)) : std::vector<TaskDependence>{};
  open.back().task = add_task(argument(0), dependences);
}

// libgomp takes the memory of a task first, and that of all tasks of a loop has one size; other memory that
// it takes meanwhile is for lists.
void MarkerWatch::Visit::allocate_task_memory() {
  Open* creation = caller();
  if (creation == nullptr) return;
  const bool of_task = creation->construct == Construct::task;
  const bool of_loop = creation->construct == Construct::taskloop;
  if (!of_task && !of_loop) return;
  const std::uint64_t bytes = argument(0);
  if (creation->bytes != 0 && (of_task || creation->bytes != bytes)) return;
  creation->bytes = bytes;
  const std::uint64_t function = creation->function;
  const std::uint64_t task = of_task ? creation->task : add_task(function, {});
  Open& call = follow(Construct::task_memory);
  call.function = function;
  call.task = task;
  call.bytes = bytes;
  until_return();
}

// The call is often the last of its function, and then a jump that does not return there.
void MarkerWatch::Visit::end_taskgroup() {
  const std::size_t group = find(Construct::taskgroup_start);
  const std::uint64_t pc =
      group == open.size() ? call_site(returns_to()) : watch.regions_[open[group].region].pc;
  enter(Construct::taskgroup_end, {.kind = RegionKind::taskwait, .pc = pc});
  until_return();
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
  // Its data are in the memory taken for it; an undeferred task has no memory of its own.
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

}  // namespace manyscale::cpu
