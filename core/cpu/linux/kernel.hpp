// SPDX-License-Identifier: Apache-2.0
// The simulated Linux: processes, threads, futexes, signals and clocks of one
// run. It has no timing: the caller that runs the threads (a stream source with
// simulated time, or a functional run) sets the time, executes instructions,
// and calls it for system calls and faults.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cpu/linux/host_directory.hpp"
#include "cpu/linux/launch_spec.hpp"
#include "cpu/linux/process.hpp"
#include "cpu/linux/program_error.hpp"
#include "engine/random.hpp"

namespace manyscale::cpu {

class Kernel {
 public:
  // The scheduler of threads, notified of their changes of state.
  class Scheduler {
   public:
    virtual void created(Thread&) = 0;   // a new thread that can run
    virtual void awakened(Thread&) = 0;  // a thread that waited can run again
    virtual void ended(Thread&) = 0;     // a thread will never run again; it may
                                         // have been waiting or running

   protected:
    ~Scheduler() = default;
  };

  Kernel(Scheduler& scheduler, std::uint32_t cores, std::uint64_t seed);
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  ~Kernel();

  // Makes the processes of a program, each with its first thread. Throws
  // ElfError.
  void launch(const LaunchSpec& spec);

  // Simulated time; the one who runs the threads keeps it up to date.
  Time time = 0;

  // Does the system call at the thread's pc; afterwards pc is behind it, unless
  // the thread waits and will do it again. The thread may then be runnable,
  // waiting or ended. Throws ProgramError for a call that is not there.
  void system_call(Thread& thread);
  // A fault or breakpoint at the thread's pc: the program's handler is called
  // if it has one, otherwise ProgramError is thrown.
  void exception(Thread& thread, riscv::Stop stop);
  // Lets the thread handle its signals, if any are due; before it runs on.
  void deliver_signals(Thread& thread);

  // When the next wait is over or alarm due; `never` if none.
  Time next_deadline() const { return deadlines_.empty() ? never : deadlines_.begin()->first; }
  // Wakes the threads whose wait is over by now, and raises alarms. Throws ProgramError at the last moment of
  // simulated time: waits that end then would last longer.
  void expire_deadlines();

  const std::vector<std::unique_ptr<Process>>& processes() const { return processes_; }
  const std::vector<std::unique_ptr<Thread>>& threads() const { return threads_; }
  bool finished() const { return living_ == 0; }
  // The first exit status that is not 0, in the order of the processes.
  int exit_status() const;

  // What system calls use.
  std::uint32_t cores() const { return cores_; }
  Random& random() { return random_; }
  HostDirectory& folder() { return folder_; }
  Thread* find_thread(std::int32_t id) const;
  // A further thread of a process, on the core that is its turn; nullptr if
  // there are too many. It does not run before `start`.
  Thread* create_thread(Process& process, const riscv::Hart& hart);
  void start(Thread& thread) { scheduler_.created(thread); }
  void end_thread(Thread& thread);
  void end_process(Process& process, int status);
  [[noreturn]] void fail(const Thread& thread, std::string kind, std::uint64_t address,
                         std::string what) const;

  // Puts the thread to sleep until it is woken, or the deadline.
  void wait(Thread& thread, const char* what, Time deadline = never);
  // Makes a waiting thread runnable, its system call giving back this.
  void wake(Thread& thread, std::int64_t result);
  // Has threads that wait for a pipe or the like look again.
  void retry_waiting();

  std::int64_t futex_wait(Thread& thread, std::uint64_t key, std::uint32_t bits, Time deadline);
  std::int64_t futex_wake(std::uint64_t key, std::uint64_t most, std::uint32_t bits);
  std::int64_t futex_requeue(std::uint64_t from, std::uint64_t to, std::uint64_t wake, std::uint64_t move);

  // Raises a signal for a thread, or for one thread of a process: the preferred one unless it blocks it.
  void raise(Thread& thread, int signal);
  void raise(Process& process, int signal, Thread* preferred = nullptr);
  // Has SIGALRM raised at a moment (never: not), and from then on at an interval if that is not 0.
  void set_alarm(Process& process, Time when, Time interval);
  // Sets up the call of a handler on the thread's stack.
  void call_handler(Thread& thread, int signal, std::uint64_t fault_address, std::int32_t code);
  void return_from_handler(Thread& thread);

  // Memory for shared mappings; none if there would be more than a process may
  // have.
  std::shared_ptr<SharedSegment> make_segment(std::uint64_t bytes);
  std::map<std::string, std::shared_ptr<SharedSegment>> shared_files;  // of /dev/shm
  std::uint64_t memory_limit() const { return memory_limit_; }

  // The name in shared_files of what the ranks of the MPI library share.
  static constexpr std::string_view mpi_segment = "manyscale-mpi";
  // An observer of every wake-up at an address in one of the segments.
  struct WakeWatch {
    std::shared_ptr<SharedSegment> segment;
    std::function<void(std::uint64_t key)> woke;
  };
  WakeWatch wake_watch;

 private:
  [[noreturn]] void fail_beyond_time(const Thread& thread, const char* what) const;
  static constexpr std::uint32_t most_processes = 4096;
  static constexpr std::uint32_t most_threads = 4096;  // at a time; records number them in 16 bits
  static constexpr std::uint32_t most_segments = 100'000;

  Thread& add_thread(Process& process, const riscv::Hart& hart, std::int32_t id);
  // Does the system call of a waiting thread again, which may have to wait on.
  void retry(Thread& thread);
  // Does the call whose number and arguments are in the thread's registers and
  // stores what it gives back, unless it waits or replaced the registers.
  void do_system_call(Thread& thread);
  void leave_futex(Thread& thread);
  void release_robust_list(Thread& thread);

  Scheduler& scheduler_;
  std::uint32_t cores_;
  Random random_;
  HostDirectory folder_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::uint32_t living_ = 0;  // threads that have not ended
  std::int32_t next_id_ = 1000;
  std::uint32_t segments_made_ = 0;
  std::vector<std::weak_ptr<SharedSegment>> segments_;
  std::uint32_t ranks_ = 1;
  std::uint64_t memory_limit_ = 0;
  // Of waiting threads, by number, and of processes' alarms, by number and the bit above all threads.
  std::set<std::pair<Time, std::uint32_t>> deadlines_;
  static constexpr std::uint32_t alarm_bit = 1u << 31;
  std::unordered_map<std::uint64_t, std::deque<Thread*>> futexes_;
};

}  // namespace manyscale::cpu
