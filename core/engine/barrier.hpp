// SPDX-License-Identifier: Apache-2.0
// Where threads meet between windows. Spins first, since windows are short; then gives the processor away.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace manyscale {

class Barrier {
 public:
  explicit Barrier(std::uint32_t threads)
      : threads_(threads), spins_(threads <= std::thread::hardware_concurrency() ? 1000 : 0) {}

  // Returns when all threads have arrived. `idle` is called now and then while waiting.
  template <class Idle>
  void arrive_and_wait(Idle&& idle) {
    const auto generation = generation_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      generation_.store(generation + 1, std::memory_order_release);
      return;
    }
    for (std::uint32_t spin = 0; spin < spins_; ++spin) {
      if (generation_.load(std::memory_order_acquire) != generation) return;
      pause();
    }
    for (std::uint32_t round = 0; generation_.load(std::memory_order_acquire) == generation; ++round) {
      if (round < 1000) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        idle();
      }
    }
  }

 private:
  static void pause() {
#if defined(__x86_64__)
    _mm_pause();
#endif
  }

  const std::uint32_t threads_;
  const std::uint32_t spins_;
  alignas(128) std::atomic<std::uint32_t> arrived_{0};
  alignas(128) std::atomic<std::uint32_t> generation_{0};
};

}  // namespace manyscale
