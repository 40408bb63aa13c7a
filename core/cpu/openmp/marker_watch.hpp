// SPDX-License-Identifier: Apache-2.0
// Turns what a thread does at watched addresses (entry points of libgomp, functions the user named) and at
// marker instructions into the actions of marker records: enter, leave, task created. One for each process.
//
// Only entries have to be known beforehand. Where a construct ends when its function returns, the return
// address is watched from then on; there are as many of those as there are calls in the program, so the
// watched addresses soon stop changing. An open construct is known by its return address and stack pointer,
// which no other call of the same thread can have at the same time.
//
// A loop with a static schedule, which the compiler divides without calling libgomp, is known by the two
// questions at its beginning: how many threads, and which of them. It is taken to last until its thread comes
// to the next barrier or worksharing construct, and so is a single construct with nowait.
//
// Threads that the program makes itself (pthreads, and what is built on them) are known by the functions of
// the C library. Where one of them waits for another, the two have an event in common (thread_events.hpp).
#pragma once
#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cpu/openmp/thread_events.hpp"
#include "cpu/riscv/hart.hpp"
#include "cpu/riscv/interpreter.hpp"
#include "cpu/stream/marker.hpp"
#include "cpu/stream/region_table.hpp"
#include "cpu/stream/task_table.hpp"
#include "cpu/virtual_memory/address_space.hpp"

namespace manyscale::cpu {

// What the function at a watched address does; its arguments follow the RISC-V calling convention.
enum class Construct : std::uint8_t {
  parallel,           // (fn, …)
  parallel_loop,      // (fn, …): the outlined function is a loop from its beginning
  parallel_sections,  // (fn, …): the same with sections
  team_end,           // the barrier at the end of a parallel region
  loop_start,
  loop_next,        // of an ordered loop, which then waits for its turn by the function of ordered_start
  loop_end,         // with a barrier
  loop_end_nowait,  // without
  barrier,
  critical_start,  // () or (name)
  critical_end,    // the same
  named_critical_start,
  named_critical_end,
  single_start,       // returns whether this thread executes it
  single_copy_start,  // returns 0 if this thread executes it
  single_copy_end,    // with a barrier
  sections_start,
  sections_end,  // with a barrier
  sections_end_nowait,
  ordered_start,
  ordered_end,
  task,         // (fn, data, copy, bytes, alignment, if, flags, dependences, …)
  taskloop,     // (fn, …)
  task_memory,  // (bytes): returns memory; within `task` and `taskloop` that of a task
  taskwait,
  taskgroup_start,
  taskgroup_end,
  lock,              // (lock)
  unlock,            // (lock)
  mutex_lock,        // (lock)
  mutex_unlock,      // (lock)
  try_lock,          // (lock): returns 0 if it was taken
  test_lock,         // (lock): returns 0 if it was not
  team_size,         // (): returns the number of threads
  thread_number,     // (): returns the thread's own
  static_loop,       // after the last two; no function's
  thread_create,     // (where its name goes, …, fn, argument)
  thread_join,       // (name)
  condition_wait,    // (condition, lock, …)
  condition_signal,  // (condition)
  thread_barrier,    // (barrier)
  semaphore_wait,    // (semaphore, …): returns 0 if it was taken
  semaphore_post,    // (semaphore)
  thread,            // the body of a thread that was created so; no function's
  function,          // a function of the user's
};
inline constexpr std::size_t constructs = 45;
// The names by which Python gives constructs.
std::string_view construct_name(Construct construct);
// Throws std::invalid_argument.
Construct construct_named(std::string_view name);

struct WatchPoint {
  std::uint64_t address = 0;
  Construct construct = Construct::function;
};

class MarkerWatch {
 public:
  // The tables are those of the run and are shared by all its processes.
  MarkerWatch(const std::vector<WatchPoint>& points, RegionTable& regions, TaskTable& tasks);

  // Software thread `thread` is at a watched pc or at a marker instruction, which is not yet executed.
  // Appends to `markers` the addresses (Record::address) of the marker records to be written before it.
  void reached(std::uint16_t thread, const riscv::Hart& hart, const riscv::Marker& marker,
               AddressSpace& memory, std::vector<std::uint64_t>& markers);
  // The thread ends: leaves what it had entered.
  void thread_ends(std::uint16_t thread, std::vector<std::uint64_t>& markers);

  // All addresses to be watched now, and how often that has changed: give them to Interpreter::watch at the
  // beginning and whenever the version is another than then.
  const std::vector<std::uint64_t>& addresses() const { return addresses_; }
  std::uint64_t version() const { return version_; }

 private:
  // A construct that a thread is in: its function is being executed (then it has a return address), or its
  // body, which another function will end.
  struct Open {
    Construct construct = Construct::function;
    bool entered = false;        // `region` was entered and is to be left
    bool in_body = false;        // the thread executes the outlined function
    bool worker = false;         // of parallel: the thread was only given the outlined function
    bool awaits_join = false;    // of parallel, worker: the outlined function has returned
    bool outlined_task = false;  // execution of a task
    std::uint32_t region = 0;
    std::uint64_t return_address = 0;
    std::uint64_t stack_pointer = 0;
    std::uint64_t function = 0;  // of parallel and task: the outlined function
    std::uint64_t call_pc = 0;   // of taskgroup: its call site
    std::uint64_t handle = 0;    // of thread_create: address where the thread's handle is stored
    std::uint64_t task = 0;      // of task: its number
    std::uint64_t bytes = 0;     // of task: size of its memory
    std::uint64_t object = 0;    // of calls about locks, conditions, barriers, semaphores: which
    std::uint64_t lock = 0;      // of condition_wait: the lock it gives back meanwhile
    std::uint64_t event = 0;     // of calls about threads (thread_events.hpp)
  };
  // Memory that libgomp took for a task which has not started yet.
  struct TaskMemory {
    std::uint64_t bytes = 0;
    std::uint64_t function = 0;
    std::uint64_t task = 0;
  };
  // What is at a watched address: the beginning of a construct's function, of an outlined function, or where
  // such functions return to.
  struct Watched {
    bool enters = false;
    bool outlined = false;
    bool returns = false;
    Construct construct = Construct::function;
    Construct outlined_by = Construct::parallel;
  };
  struct Visit;

  Watched& watch_address(std::uint64_t address);

  std::unordered_map<std::uint64_t, Watched> watched_;
  std::vector<std::uint64_t> addresses_;
  std::uint64_t version_ = 0;
  std::vector<std::vector<Open>> open_;  // by thread; innermost last
  std::map<std::uint64_t, TaskMemory> task_memory_;
  // Return address and stack pointer of the last call that asked for the number of threads, by thread.
  std::unordered_map<std::uint16_t, std::pair<std::uint64_t, std::uint64_t>> asked_team_size_;
  ThreadEvents events_;
  RegionTable& regions_;
  TaskTable& tasks_;
};

}  // namespace manyscale::cpu
