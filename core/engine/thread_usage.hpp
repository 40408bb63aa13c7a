// SPDX-License-Identifier: Apache-2.0
// What the threads of a run did with their time: processor time, of it spinning, and time asleep. What is
// left of the wall time a thread was ready to run while the host ran something else.
#pragma once
#include <chrono>
#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace manyscale {

struct ThreadTimes {
  std::chrono::nanoseconds wall{0};       // of all threads
  std::chrono::nanoseconds processor{0};  // of all threads
  std::chrono::nanoseconds asleep{0};     // waiting for other threads without a processor
  std::uint64_t pauses = 0;               // steps of spinning
  std::uint64_t sleeps = 0;

  ThreadTimes& operator+=(const ThreadTimes& other) {
    wall += other.wall;
    processor += other.processor;
    asleep += other.asleep;
    pauses += other.pauses;
    sleeps += other.sleeps;
    return *this;
  }
  friend ThreadTimes operator-(ThreadTimes a, const ThreadTimes& b) {
    a.wall -= b.wall;
    a.processor -= b.processor;
    a.asleep -= b.asleep;
    a.pauses -= b.pauses;
    a.sleeps -= b.sleeps;
    return a;
  }
};

// The times of one thread, which alone writes them, and a copy that others read after they have met it.
class alignas(128) ThreadUsage {
 public:
  // To be called by the thread itself, when it begins and when it ends to run windows.
  void begin();
  void end();
  // To be called by the thread itself before it meets others: copies the times, if some time has passed.
  void publish_sometimes();
  // To be called by whoever has joined the thread.
  void publish() { published_ = times; }
  const ThreadTimes& published() const { return published_; }

  ThreadTimes times;

 private:
  ThreadTimes published_;
  std::chrono::steady_clock::time_point sampled_{};
  std::chrono::nanoseconds processor_{0};  // of the thread, when it was sampled
};

// One step of spinning: lets the other hardware thread of the core go first.
inline void pause_spinning() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}
// How long a step takes on this host; measured once.
std::chrono::duration<double, std::nano> pause_length();

}  // namespace manyscale
