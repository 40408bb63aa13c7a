// SPDX-License-Identifier: Apache-2.0
#include "engine/thread_usage.hpp"

#include <time.h>

#include <algorithm>

namespace manyscale {

namespace {

constexpr std::chrono::milliseconds sample_interval{1};

std::chrono::nanoseconds thread_processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

void ThreadUsage::begin() {
  sampled_ = std::chrono::steady_clock::now();
  processor_ = thread_processor_time();
}

void ThreadUsage::end() {
  const auto now = std::chrono::steady_clock::now();
  const auto processor = thread_processor_time();
  times.wall += now - sampled_;
  times.processor += processor - processor_;
  sampled_ = now;
  processor_ = processor;
}

void ThreadUsage::publish_sometimes() {
  if (std::chrono::steady_clock::now() - sampled_ < sample_interval) return;
  end();
  publish();
}

std::chrono::duration<double, std::nano> pause_length() {
  // The shortest of some tries, since the host may do something else in the middle of one.
  static const auto length = [] {
    constexpr int pauses = 256;
    auto shortest = std::chrono::steady_clock::duration::max();
    for (int attempt = 0; attempt < 4; ++attempt) {
      const auto began = std::chrono::steady_clock::now();
      for (int i = 0; i < pauses; ++i) pause_spinning();
      shortest = std::min(shortest, std::chrono::steady_clock::now() - began);
    }
    return std::max(std::chrono::duration<double, std::nano>(shortest) / pauses,
                    std::chrono::duration<double, std::nano>(1));
  }();
  return length;
}

}  // namespace manyscale
