// SPDX-License-Identifier: Apache-2.0
// Processes of a simulation as threads of one program, each with a simulation of its own: they meet in a
// hall.
#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/exchange.hpp"

namespace manyscale::test {

// Lets nobody on until all are there. Who waits sleeps: a spinning thread would keep others from arriving.
class Gate {
 public:
  explicit Gate(std::uint32_t threads) : threads_(threads) {}

  void arrive_and_wait() {
    std::unique_lock lock(mutex_);
    const std::uint64_t round = round_;
    if (++arrived_ == threads_) {
      arrived_ = 0;
      ++round_;
      opened_.notify_all();
    } else {
      opened_.wait(lock, [&] { return round_ != round; });
    }
  }

 private:
  const std::uint32_t threads_;
  std::uint32_t arrived_ = 0;
  std::uint64_t round_ = 0;
  std::mutex mutex_;
  std::condition_variable opened_;
};

struct Hall {
  explicit Hall(std::uint32_t processes)
      : processes(processes), gate(processes), records(processes), boxes(processes) {}

  std::uint32_t processes;
  Gate gate;
  std::vector<Bytes> records;              // by process
  std::vector<std::vector<Bytes>*> boxes;  // what each has for the others
};

class HallExchange final : public Exchange {
 public:
  HallExchange(Hall& hall, std::uint32_t process) : hall_(hall), process_(process) {}

  std::uint32_t process() const override { return process_; }
  std::uint32_t processes() const override { return hall_.processes; }
  void exchange(const BarrierExchange& barrier) override {
    hall_.records[process_].assign(barrier.own.begin(), barrier.own.end());
    hall_.boxes[process_] = &barrier.outgoing;
    hall_.gate.arrive_and_wait();
    barrier.records.clear();
    for (std::uint32_t other = 0; other < hall_.processes; ++other) {
      barrier.records.insert(barrier.records.end(), hall_.records[other].begin(), hall_.records[other].end());
      barrier.incoming[other] = (*hall_.boxes[other])[process_];
    }
    hall_.gate.arrive_and_wait();
  }

 private:
  Hall& hall_;
  std::uint32_t process_;
};

// Does the same in each of so many processes.
inline void in_processes(std::uint32_t processes, const std::function<void(HallExchange&)>& work) {
  Hall hall(processes);
  std::vector<std::jthread> threads;
  for (std::uint32_t process = 0; process < processes; ++process) {
    threads.emplace_back([&hall, &work, process] {
      HallExchange exchange(hall, process);
      work(exchange);
    });
  }
}

}  // namespace manyscale::test
