// SPDX-License-Identifier: Apache-2.0
// How a thread waits for others between windows. Spins first, since windows are short; then gives the
// processor away.
#pragma once
#include <chrono>
#include <cstdint>
#include <thread>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace manyscale {

class Waiting {
 public:
  // For one of so many threads.
  explicit Waiting(std::size_t threads) : spins_(threads <= std::thread::hardware_concurrency() ? 1000 : 0) {}

  // Returns when `ready` says so. `idle` is called now and then meanwhile.
  template <class Ready, class Idle>
  void until(Ready&& ready, Idle&& idle) const {
    for (std::uint32_t spin = 0; spin < spins_; ++spin) {
      if (ready()) return;
      pause();
    }
    for (std::uint32_t round = 0; !ready(); ++round) {
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

  std::uint32_t spins_;
};

}  // namespace manyscale
