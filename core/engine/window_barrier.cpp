// SPDX-License-Identifier: Apache-2.0
#include "engine/window_barrier.hpp"

namespace manyscale {

void WindowBarrier::wake_all() {
  // With the lock, so that a thread which has looked but does not sleep yet is not missed.
  {
    const std::lock_guard lock(mutex_);
    woken_ = std::chrono::steady_clock::now();
  }
  arrived_.notify_all();
}

}  // namespace manyscale
