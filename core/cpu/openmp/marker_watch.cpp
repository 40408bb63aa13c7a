// SPDX-License-Identifier: Apache-2.0
#include "cpu/openmp/marker_watch.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "cpu/mpi/mpi_calls.hpp"
#include "cpu/openmp/marker_visit.hpp"

namespace manyscale::cpu {

namespace {

constexpr std::size_t longest_name = 256;

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

Construct construct_named(std::string_view name) {
  for (std::size_t i = 0; i < constructs; ++i) {
    if (construct_name(static_cast<Construct>(i)) == name) return static_cast<Construct>(i);
  }
  throw std::invalid_argument("there is no construct named '" + std::string(name) + "'");
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
  const auto [entry, added] = watched_.try_emplace(address);
  if (added) {
    addresses_.push_back(address);
    ++version_;
  }
  return entry->second;
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

// Each of these handles the constructs of its own family.
void MarkerWatch::Visit::at_entry(Construct construct) {
  // The join after a parallel region belongs to it; any other call means that there was none.
  if (construct != Construct::team_end && !open.empty() && open.back().awaits_join) close_innermost();
  at_parallel_call(construct);
  at_worksharing_call(construct);
  at_mutual_exclusion_call(construct);
  at_task_call(construct);
  if (!in_runtime()) at_thread_call(construct);
  if (construct != Construct::function) return;
  enter(construct, {.kind = RegionKind::user, .pc = hart.pc});
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
      enter(call.construct, {.kind = RegionKind::taskgroup, .pc = call.call_pc});
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
