// SPDX-License-Identifier: Apache-2.0
// The system calls of RISC-V Linux by number: their names, and what does those
// that are there. A handler gives back what the program gets in a0: a result,
// or a negative error number.
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "cpu/linux/kernel.hpp"

namespace manyscale::cpu {

// One system call that a thread makes.
struct Call {
  Kernel& kernel;
  Thread& thread;
  Process& process;
  std::array<std::uint64_t, 6> arguments;

  AddressSpace& memory() const { return process.memory; }
  std::uint64_t operator[](std::size_t number) const { return arguments[number]; }
  std::int32_t whole(std::size_t number) const { return static_cast<std::int32_t>(arguments[number]); }

  // Copies of plain structs from and to the program's memory; false if it may
  // not be touched.
  template <class T>
  bool get(std::uint64_t address, T& value) const {
    return memory().read(address, &value, sizeof value);
  }
  template <class T>
  bool put(std::uint64_t address, const T& value) const {
    return memory().write(address, &value, sizeof value);
  }
};

// A handler gives this back when the thread waits (what the program gets comes
// later), or ended, or had its registers replaced.
inline constexpr std::int64_t no_result = std::numeric_limits<std::int64_t>::min();

using CallHandler = std::int64_t (*)(Call&);

struct SystemCall {
  std::string_view name;          // empty: there is no such call
  CallHandler handler = nullptr;  // nullptr: the program cannot be run on
};
const SystemCall& system_call_of(std::uint64_t number);

// A timespec of the program's memory, as Linux lays it out.
struct TimeValue {
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;
};
// The duration or moment in femtoseconds; none if it is not a valid time. What is
// beyond the range of simulated time is its `last_moment`: `never` is for waits
// without an end.
std::optional<Time> time_from(const TimeValue& value);
TimeValue time_value(Time time);
// What the realtime clock shows at the beginning of a run: 1 January 2025.
inline constexpr std::int64_t realtime_begin = 1'735'689'600;
// When the moment of a clock (CLOCK_REALTIME or another) comes, in simulated
// time; 0 if it is past.
std::optional<Time> moment_from(std::uint64_t clock, TimeValue value);
// When a wait ends that may last as long as the timespec at `address`; without one (0) it never ends.
// Gives back 0 or a negative error number.
std::int64_t get_deadline(const Call& call, std::uint64_t address, Time& deadline);

// calls_files.cpp, calls_paths.cpp
std::int64_t call_read(Call&);
std::int64_t call_write(Call&);
std::int64_t call_readv(Call&);
std::int64_t call_writev(Call&);
std::int64_t call_pread(Call&);
std::int64_t call_pwrite(Call&);
std::int64_t call_lseek(Call&);
std::int64_t call_close(Call&);
std::int64_t call_fstat(Call&);
std::int64_t call_getdents(Call&);
std::int64_t call_ioctl(Call&);
std::int64_t call_fcntl(Call&);
std::int64_t call_dup(Call&);
std::int64_t call_dup3(Call&);
std::int64_t call_pipe(Call&);
std::int64_t call_ftruncate(Call&);
std::int64_t call_fsync(Call&);
std::int64_t call_poll(Call&);
std::int64_t call_memfd_create(Call&);
std::int64_t call_openat(Call&);
std::int64_t call_fstatat(Call&);
std::int64_t call_statx(Call&);
std::int64_t call_readlinkat(Call&);
std::int64_t call_faccessat(Call&);
std::int64_t call_unlinkat(Call&);
std::int64_t call_mkdirat(Call&);
std::int64_t call_renameat(Call&);
std::int64_t call_getcwd(Call&);
std::int64_t call_chdir(Call&);
std::int64_t call_statfs(Call&);

// calls_memory.cpp
std::int64_t call_brk(Call&);
std::int64_t call_mmap(Call&);
std::int64_t call_munmap(Call&);
std::int64_t call_mprotect(Call&);
std::int64_t call_mremap(Call&);
std::int64_t call_madvise(Call&);

// calls_threads.cpp
std::int64_t call_clone(Call&);
std::int64_t call_clone3(Call&);
std::int64_t call_exit(Call&);
std::int64_t call_exit_group(Call&);
std::int64_t call_set_tid_address(Call&);
std::int64_t call_set_robust_list(Call&);
std::int64_t call_get_robust_list(Call&);
std::int64_t call_futex(Call&);
std::int64_t call_sched_yield(Call&);
std::int64_t call_sched_getaffinity(Call&);
std::int64_t call_sched_setaffinity(Call&);
std::int64_t call_sched_getscheduler(Call&);
std::int64_t call_sched_getparam(Call&);
std::int64_t call_sched_get_priority(Call&);
std::int64_t call_getcpu(Call&);

// calls_signals.cpp
std::int64_t call_rt_sigaction(Call&);
std::int64_t call_rt_sigprocmask(Call&);
std::int64_t call_rt_sigpending(Call&);
std::int64_t call_rt_sigsuspend(Call&);
std::int64_t call_rt_sigtimedwait(Call&);
std::int64_t call_rt_sigreturn(Call&);
std::int64_t call_sigaltstack(Call&);
std::int64_t call_kill(Call&);
std::int64_t call_tkill(Call&);
std::int64_t call_tgkill(Call&);

// calls_time.cpp
std::int64_t call_clock_gettime(Call&);
std::int64_t call_clock_getres(Call&);
std::int64_t call_gettimeofday(Call&);
std::int64_t call_nanosleep(Call&);
std::int64_t call_clock_nanosleep(Call&);
std::int64_t call_getitimer(Call&);
std::int64_t call_setitimer(Call&);
std::int64_t call_times(Call&);
std::int64_t call_getrusage(Call&);

// calls_system.cpp
std::int64_t call_zero(Call&);      // succeeds and does nothing
std::int64_t call_absent(Call&);    // ENOSYS, which the C library knows how to do without
std::int64_t call_no_child(Call&);  // ECHILD: there are no child processes to wait for
std::int64_t call_getpid(Call&);
std::int64_t call_getppid(Call&);
std::int64_t call_gettid(Call&);
std::int64_t call_user(Call&);
std::int64_t call_resource_users(Call&);
std::int64_t call_uname(Call&);
std::int64_t call_sysinfo(Call&);
std::int64_t call_getrlimit(Call&);
std::int64_t call_prlimit(Call&);
std::int64_t call_getrandom(Call&);
std::int64_t call_prctl(Call&);
std::int64_t call_umask(Call&);
std::int64_t call_flush_icache(Call&);
std::int64_t call_membarrier(Call&);

}  // namespace manyscale::cpu
