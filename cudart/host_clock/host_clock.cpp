// SPDX-License-Identifier: Apache-2.0
// libmanyscale-hostclock.so: the clocks of the C library in simulated time, for programs that time
// themselves. Loaded before other libraries (LD_PRELOAD) with --host-clock simulated.
//
// A clock is what it was when the process began, and the simulated time of the host since then. That goes on
// with CUDA calls; by one nanosecond whenever a clock is read, so that a program which waits for a time to
// come gets there; and by the time for which the program asked to sleep. Deadlines are converted for the
// waiting itself, which takes real time. Left out: the time stamp counter, and what the operating system
// tells of processes (getrusage, times).
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace manyscale::host_clock {

namespace {

using Nanoseconds = std::uint64_t;
constexpr Nanoseconds kSecond = 1'000'000'000;

Nanoseconds of(const timespec& time) {
  return static_cast<Nanoseconds>(time.tv_sec) * kSecond + static_cast<Nanoseconds>(time.tv_nsec);
}

timespec to_timespec(Nanoseconds time) {
  return {static_cast<time_t>(time / kSecond), static_cast<long>(time % kSecond)};
}

Nanoseconds real_time(clockid_t clock) {
  timespec now{};
  syscall(SYS_clock_gettime, clock, &now);
  return of(now);
}

bool counts_from_zero(clockid_t clock) {
  return clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
}

bool is_of_day(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}

struct Began {
  Nanoseconds of_day = real_time(CLOCK_REALTIME);
  Nanoseconds monotonic = real_time(CLOCK_MONOTONIC);
};

const Began& began() {
  static const Began only;
  return only;
}

std::atomic<Nanoseconds (*)()> simulated{nullptr};  // time of the host; null before the first CUDA call
std::atomic<Nanoseconds> added{0};                  // by readings and sleeps

Nanoseconds elapsed() {
  auto* const source = simulated.load();
  return (source == nullptr ? 0 : source()) + ++added;
}

Nanoseconds now(clockid_t clock) {
  const Nanoseconds since = elapsed();
  if (counts_from_zero(clock)) return since;
  return since + (is_of_day(clock) ? began().of_day : began().monotonic);
}

template <class Signature>
Signature* next(const char* name) {
  return reinterpret_cast<Signature*>(dlsym(RTLD_NEXT, name));
}

// The real time at which a simulated one has come, if the program only waits until then.
timespec real_deadline(clockid_t clock, const timespec& deadline) {
  const Nanoseconds wanted = of(deadline), simulated_now = now(clock);
  return to_timespec(real_time(clock) + (wanted > simulated_now ? wanted - simulated_now : 0));
}

// The clock of a deadline when only its condition variable knows: the one that it is nearer to.
clockid_t clock_of(const timespec& deadline) {
  return of(deadline) > (began().of_day + began().monotonic) / 2 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
}

}  // namespace

}  // namespace manyscale::host_clock

using namespace manyscale::host_clock;

extern "C" {

// The CUDA runtime says so when it has connected to its server.
void manyscale_set_host_clock(std::uint64_t (*source)()) {
  simulated = source;
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (time == nullptr || clock < 0) return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  *time = to_timespec(now(clock));
  return 0;
}

int gettimeofday(timeval* time, void*) noexcept {
  if (time == nullptr) return 0;
  const Nanoseconds at = now(CLOCK_REALTIME);
  *time = {static_cast<time_t>(at / kSecond), static_cast<suseconds_t>(at % kSecond / 1000)};
  return 0;
}

time_t time(time_t* to) noexcept {
  const auto seconds = static_cast<time_t>(now(CLOCK_REALTIME) / kSecond);
  if (to != nullptr) *to = seconds;
  return seconds;
}

int timespec_get(timespec* to, int base) noexcept {
  if (base != TIME_UTC || to == nullptr) return 0;
  *to = to_timespec(now(CLOCK_REALTIME));
  return base;
}

clock_t clock() noexcept {
  constexpr Nanoseconds tick = kSecond / CLOCKS_PER_SEC;
  return static_cast<clock_t>(now(CLOCK_PROCESS_CPUTIME_ID) / tick);
}

int nanosleep(const timespec* duration, timespec* left) {
  const auto result = static_cast<int>(syscall(SYS_nanosleep, duration, left));
  if (duration != nullptr && result == 0) added += of(*duration);
  return result;
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  timespec duration = *time;
  if ((flags & TIMER_ABSTIME) != 0) {
    const Nanoseconds wanted = of(*time), at = now(clock);
    duration = to_timespec(wanted > at ? wanted - at : 0);
    left = nullptr;
  }
  return nanosleep(&duration, left) == 0 ? 0 : errno;
}

int usleep(useconds_t microseconds) {
  const timespec duration = to_timespec(Nanoseconds{microseconds} * 1000);
  return nanosleep(&duration, nullptr);
}

unsigned sleep(unsigned seconds) {
  const timespec duration{static_cast<time_t>(seconds), 0};
  timespec left{};
  return nanosleep(&duration, &left) == 0 ? 0 : static_cast<unsigned>(left.tv_sec);
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* deadline) {
  static auto* const real =
      next<int(pthread_cond_t*, pthread_mutex_t*, const timespec*)>("pthread_cond_timedwait");
  const timespec at = real_deadline(clock_of(*deadline), *deadline);
  const int result = real(condition, mutex, &at);
  if (result == ETIMEDOUT) added += of(*deadline) - std::min(of(*deadline), now(clock_of(*deadline)));
  return result;
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* deadline) {
  static auto* const real =
      next<int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)>("pthread_cond_clockwait");
  const timespec at = real_deadline(clock, *deadline);
  const int result = real(condition, mutex, clock, &at);
  if (result == ETIMEDOUT) added += of(*deadline) - std::min(of(*deadline), now(clock));
  return result;
}

int sem_timedwait(sem_t* semaphore, const timespec* deadline) {
  static auto* const real = next<int(sem_t*, const timespec*)>("sem_timedwait");
  const timespec at = real_deadline(CLOCK_REALTIME, *deadline);
  const int result = real(semaphore, &at);
  if (result != 0 && errno == ETIMEDOUT)
    added += of(*deadline) - std::min(of(*deadline), now(CLOCK_REALTIME));
  return result;
}

int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* deadline) {
  static auto* const real = next<int(sem_t*, clockid_t, const timespec*)>("sem_clockwait");
  const timespec at = real_deadline(clock, *deadline);
  const int result = real(semaphore, clock, &at);
  if (result != 0 && errno == ETIMEDOUT) added += of(*deadline) - std::min(of(*deadline), now(clock));
  return result;
}

}  // extern "C"
