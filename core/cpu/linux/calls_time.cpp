// SPDX-License-Identifier: Apache-2.0
// System calls about time. All clocks show simulated time; that of the day
// begins at a fixed date.
#include <sys/time.h>

#include <ctime>

#include "cpu/linux/system_calls.hpp"

namespace manyscale::cpu {

namespace {

constexpr Time nanoseconds_of_second = 1'000'000'000;

bool known_clock(std::uint64_t clock) {
  return clock <= CLOCK_TAI;
}

// Processor-time clocks, also those of other processes and threads, which have
// large numbers.
bool counts_processor_time(std::uint64_t clock) {
  return clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID ||
         static_cast<std::int32_t>(clock) < 0;
}

std::int64_t sleep_until(Call& call, Time moment) {
  if (moment <= call.kernel.time) return 0;
  call.thread.timeout_result = 0;
  call.kernel.wait(call.thread, "the end of a sleep", moment);
  return no_result;
}

}  // namespace

std::optional<Time> time_from(const TimeValue& value) {
  if (value.seconds < 0 || value.nanoseconds < 0 || value.nanoseconds >= nanoseconds_of_second) return {};
  if (value.seconds > last_moment / second) return last_moment;
  return moment_after(value.seconds * second, value.nanoseconds * nanosecond);
}

TimeValue time_value(Time time) {
  return {time / second, time % second / nanosecond};
}

std::optional<Time> moment_from(std::uint64_t clock, TimeValue value) {
  if (!time_from(value)) return {};
  if (clock == CLOCK_REALTIME || clock == CLOCK_TAI) {
    if (value.seconds < realtime_begin) return 0;
    value.seconds -= realtime_begin;
  }
  return time_from(value);
}

std::int64_t get_deadline(const Call& call, std::uint64_t address, Time& deadline) {
  deadline = never;
  if (address == 0) return 0;
  TimeValue value;
  if (!call.get(address, value)) return -EFAULT;
  const std::optional<Time> duration = time_from(value);
  if (!duration) return -EINVAL;
  deadline = moment_after(call.kernel.time, *duration);
  return 0;
}

std::int64_t call_clock_gettime(Call& call) {
  if (!known_clock(call[0]) && !counts_processor_time(call[0])) return -EINVAL;
  TimeValue value = time_value(call.kernel.time);
  const bool of_day = call[0] == CLOCK_REALTIME || call[0] == CLOCK_REALTIME_COARSE || call[0] == CLOCK_TAI;
  if (of_day) value.seconds += realtime_begin;
  return call.put(call[1], value) ? 0 : -EFAULT;
}

std::int64_t call_clock_getres(Call& call) {
  if (!known_clock(call[0]) && !counts_processor_time(call[0])) return -EINVAL;
  return call[1] == 0 || call.put(call[1], TimeValue{0, 1}) ? 0 : -EFAULT;
}

std::int64_t call_gettimeofday(Call& call) {
  TimeValue value = time_value(call.kernel.time);
  value.seconds += realtime_begin;
  value.nanoseconds /= 1000;
  return call[0] == 0 || call.put(call[0], value) ? 0 : -EFAULT;
}

std::int64_t call_nanosleep(Call& call) {
  TimeValue value;
  if (!call.get(call[0], value)) return -EFAULT;
  const std::optional<Time> duration = time_from(value);
  if (!duration) return -EINVAL;
  return sleep_until(call, moment_after(call.kernel.time, *duration));
}

std::int64_t call_clock_nanosleep(Call& call) {
  TimeValue value;
  if (!known_clock(call[0])) return -EINVAL;
  if (!call.get(call[2], value)) return -EFAULT;
  const bool absolute = (call[1] & TIMER_ABSTIME) != 0;
  const std::optional<Time> time = absolute ? moment_from(call[0], value) : time_from(value);
  if (!time) return -EINVAL;
  return sleep_until(call, absolute ? *time : moment_after(call.kernel.time, *time));
}

namespace {

// Interval and time left as Linux's itimerval has them, in microseconds.
using IntervalTimer = std::array<TimeValue, 2>;

IntervalTimer alarm_of(const Call& call) {
  const auto value = [](Time time) {
    TimeValue parts = time_value(time);
    parts.nanoseconds /= 1000;
    return parts;
  };
  const Time alarm = call.process.alarm;
  return {value(call.process.alarm_interval), value(alarm == never ? 0 : alarm - call.kernel.time)};
}

}  // namespace

std::int64_t call_getitimer(Call& call) {
  if (call[0] != ITIMER_REAL) return -EINVAL;
  return call.put(call[1], alarm_of(call)) ? 0 : -EFAULT;
}

std::int64_t call_setitimer(Call& call) {
  // Timers of processor time are left out.
  if (call[0] != ITIMER_REAL) return -EINVAL;
  const IntervalTimer old = alarm_of(call);
  IntervalTimer wanted{};
  if (call[1] != 0 && !call.get(call[1], wanted)) return -EFAULT;
  for (TimeValue& value : wanted) {
    if (value.nanoseconds < 0 || value.nanoseconds >= 1'000'000) return -EINVAL;
    value.nanoseconds *= 1000;
  }
  const std::optional<Time> interval = time_from(wanted[0]), first = time_from(wanted[1]);
  if (!interval || !first) return -EINVAL;
  call.kernel.set_alarm(call.process, *first == 0 ? never : moment_after(call.kernel.time, *first),
                        *interval);
  return call[2] == 0 || call.put(call[2], old) ? 0 : -EFAULT;
}

std::int64_t call_times(Call& call) {
  constexpr Time tick = second / 100;
  const std::array<std::int64_t, 4> ticks{call.kernel.time / tick, 0, 0, 0};
  if (call[0] != 0 && !call.put(call[0], ticks)) return -EFAULT;
  return call.kernel.time / tick;
}

std::int64_t call_getrusage(Call& call) {
  std::array<std::int64_t, 18> usage{};  // user time, system time, largest resident kilobytes, …
  usage[0] = call.kernel.time / second;
  usage[1] = call.kernel.time % second / microsecond;
  usage[4] = static_cast<std::int64_t>(call.memory().resident_bytes() / 1024);
  return call.put(call[1], usage) ? 0 : -EFAULT;
}

}  // namespace manyscale::cpu
