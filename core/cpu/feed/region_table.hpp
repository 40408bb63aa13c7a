// SPDX-License-Identifier: Apache-2.0
// The regions of a program that time is credited to: OpenMP constructs, MPI calls, and what the user marks.
// A region is a place in the program, not one visit to it; it has a small number, which marker records carry.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace manyscale::cpu {

enum class RegionKind : std::uint8_t {
  parallel,       // parallel region, on each of its threads
  loop,           // iterations of a worksharing loop
  barrier,        // waiting at a barrier, explicit or implied
  critical,       // holding a critical section
  critical_wait,  // waiting to enter one
  single,         // the body of a single construct, on the thread that executes it
  sections,       // a sections construct
  ordered,        // the body of an ordered construct
  ordered_wait,   // waiting for the iterations before it
  task,           // execution of an explicit task
  task_create,    // making one
  taskwait,       // waiting for tasks
  taskgroup,      // a taskgroup construct
  lock,           // waiting for a lock of omp.h, or a mutex
  thread,         // all that a thread does that the program made itself
  wait,           // waiting for such a thread: its end, a condition, a barrier, a semaphore
  mpi,            // a call of MPI
  user,           // between the marks of manyscale.h, or a function the user named
};
inline constexpr std::size_t region_kinds = 18;
std::string_view region_kind_name(RegionKind kind);

// What a marker record tells the core, in the low 8 bits of Record::address; above them is a region, or
// what else is said.
enum class MarkerAction : std::uint8_t {
  enter = 0,
  leave = 1,
  task_created = 2,   // number of a task
  task_starts = 3,    // number of a task
  task_ends = 4,      // number of a task
  released = 5,       // region of kind lock: where the lock was given back
  acquired = 6,       // region of kind lock: where it was taken without a region of its own
  thread_begins = 7,  // sync_event: its thread begins, after the event
  posted = 8,         // sync_event: it has happened once more
  awaited = 9,        // sync_event: it was waited for
};
constexpr std::uint64_t marker_address(std::uint64_t region_or_task, MarkerAction action) {
  return region_or_task << 8 | static_cast<std::uint64_t>(action);
}
constexpr MarkerAction marker_action(std::uint64_t address) {
  return static_cast<MarkerAction>(address & 0xff);
}
constexpr std::uint64_t marker_subject(std::uint64_t address) {
  return address >> 8;
}

// Something that one thread does and others wait for, as a marker or a sync node names it: its number, and
// how often it must have happened before those go on.
constexpr std::uint64_t sync_event(std::uint64_t number, std::uint64_t posts) {
  return number << 16 | posts;
}
constexpr std::uint64_t event_number(std::uint64_t event) {
  return event >> 16;
}
constexpr std::uint64_t event_posts(std::uint64_t event) {
  return event & 0xffff;
}

struct Region {
  RegionKind kind = RegionKind::user;
  std::string name{};  // given by the program or by MPI; empty: to be made from the pc
  std::uint64_t pc =
      0;  // of the outlined function, or of the caller's next instruction; 0: the name says all
  std::uint64_t object = 0;  // address of a lock or of the name of a critical section; 0: none
  bool sleeps = false;  // of a lock: who waits for it asks the system to, and does not look at it meanwhile

  auto operator<=>(const Region&) const = default;
};

class RegionTable {
 public:
  // A program may invent as many names as it likes; beyond this many regions all share the last one.
  static constexpr std::size_t limit = 1 << 16;

  // The number of a region, the same for the same region; numbers count from 0.
  std::uint32_t intern(const Region& region);
  const Region& operator[](std::uint32_t number) const { return regions_.at(number); }
  std::size_t size() const { return regions_.size(); }

 private:
  std::vector<Region> regions_;
  std::map<Region, std::uint32_t> numbers_;
};

// How a task depends on an address that others depend on, too.
struct TaskDependence {
  enum class Kind : std::uint8_t { in, out, mutexinoutset, inoutset };
  std::uint64_t address = 0;
  Kind kind = Kind::in;
};

// One explicit task that a program made.
struct Task {
  std::uint32_t region = 0;            // of kind task: its function
  std::uint16_t creator = 0;           // software thread
  std::uint64_t parent = 0;            // number + 1 of the task that made it; 0: an implicit one
  std::uint32_t first_dependence = 0;  // in TaskTable::dependences
  std::uint32_t dependence_count = 0;
};

// All tasks of a run in the order of their creation, up to a limit; the numbers go on beyond it.
class TaskTable {
 public:
  static constexpr std::size_t limit = 1 << 22;

  std::uint64_t add(Task task, const std::vector<TaskDependence>& dependences);
  const std::vector<Task>& tasks() const { return tasks_; }
  const std::vector<TaskDependence>& dependences() const { return dependences_; }
  std::uint64_t created() const { return created_; }

 private:
  std::vector<Task> tasks_;
  std::vector<TaskDependence> dependences_;
  std::uint64_t created_ = 0;
};

}  // namespace manyscale::cpu
