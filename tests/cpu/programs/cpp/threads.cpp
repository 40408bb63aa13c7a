// SPDX-License-Identifier: Apache-2.0
// Threads of the C++ library: mutexes, condition variables, atomics, futures, thread-local objects.
#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <numeric>
#include <queue>
#include <thread>
#include <vector>

#include "programs.hpp"

namespace {

thread_local long own = 0;

long through_a_queue(int consumers, int items) {
  std::mutex mutex;
  std::condition_variable filled;
  std::queue<int> queue;
  bool done = false;
  std::atomic<long> total{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < consumers; ++i) {
    threads.emplace_back([&] {
      for (;;) {
        std::unique_lock lock(mutex);
        filled.wait(lock, [&] { return done || !queue.empty(); });
        if (queue.empty()) return;
        const int item = queue.front();
        queue.pop();
        lock.unlock();
        total += static_cast<long>(item) * item;
      }
    });
  }
  for (int i = 0; i < items; ++i) {
    const std::lock_guard lock(mutex);
    queue.push(i);
    filled.notify_one();
  }
  {
    const std::lock_guard lock(mutex);
    done = true;
  }
  filled.notify_all();
  for (std::thread& each : threads) each.join();
  return total;
}

}  // namespace

int run_threads(int argc, char** argv) {
  const int count = static_cast<int>(number_argument(argc, argv, 1, 4));
  std::printf("queue %ld\n", through_a_queue(count, 200));
  std::atomic<long> counter{0}, maximum{0};
  std::vector<long> mine(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      for (int j = 0; j < 500; ++j) {
        own += i + 1;
        counter.fetch_add(1, std::memory_order_relaxed);
        long seen = maximum.load();
        while (seen < i * 1000 + j && !maximum.compare_exchange_weak(seen, i * 1000 + j)) {
        }
      }
      mine[static_cast<std::size_t>(i)] = own;
    });
  }
  for (std::thread& each : threads) each.join();
  std::printf("counter %ld maximum %ld own %ld here %ld\n", counter.load(), maximum.load(),
              std::accumulate(mine.begin(), mine.end(), 0l), own);
  std::vector<std::future<long>> futures;
  for (int i = 0; i < count; ++i) {
    futures.push_back(std::async(std::launch::async, [i] {
      long sum = 0;
      for (long j = 0; j < 1000; ++j) sum += j % (i + 2);
      if (i == 1) throw i;
      return sum;
    }));
  }
  long sum = 0;
  for (auto& each : futures) {
    try {
      sum += each.get();
    } catch (int thrown) {
      std::printf("thrown by %d\n", thrown);
    }
  }
  std::printf("futures %ld\n", sum);
  std::once_flag once;
  int calls = 0;
  for (int i = 0; i < 3; ++i) std::call_once(once, [&] { ++calls; });
  std::printf("once %d\n", calls);
  return 0;
}
