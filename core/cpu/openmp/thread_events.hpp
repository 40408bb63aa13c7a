// SPDX-License-Identifier: Apache-2.0
// The events by which threads that a program makes itself wait for each other: the creation and the end of a
// thread, a signal of a condition, the post of a semaphore, the arrival of all at a barrier. Each has a
// number of its own.
//
// Which event ended a wait is settled as the program ran: a thread that comes back from a condition was woken
// by the last signal, one that comes back from a semaphore by the oldest post that is not taken yet.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace manyscale::cpu {

class ThreadEvents {
 public:
  // A thread that begins: the event it follows, and that of its end.
  struct Beginning {
    std::uint64_t begin = 0, end = 0;
  };
  // The end of a barrier: all of so many arrivals.
  struct BarrierArrival {
    std::uint64_t event = 0;
    std::uint64_t arrivals = 0;
  };

  // Thread `creator` is about to make one that executes a function with an argument; returns the event of its
  // beginning. The event of its end is the next number.
  std::uint64_t create(std::uint16_t creator, std::uint64_t function, std::uint64_t argument);
  // It could not be made.
  void give_up(std::uint64_t begin);
  // It was made, and the program knows it by this name.
  void name(std::uint64_t name, std::uint64_t begin);
  // A thread executes the function with the argument: what it follows, if it is one that was made for it.
  std::optional<Beginning> begin(std::uint16_t thread, std::uint64_t function, std::uint64_t argument);
  // The thread is no more; its number may be given to another.
  void ends(std::uint16_t thread) { begun_.erase(thread); }
  // The event of the end of the thread with this name.
  std::optional<std::uint64_t> end_of(std::uint64_t name) const;

  // What happens from now on has events of this number and above.
  std::uint64_t next() const { return next_; }

  std::uint64_t signal(std::uint64_t condition);
  // The last signal, if there was one at `since` or later.
  std::optional<std::uint64_t> signalled(std::uint64_t condition, std::uint64_t since) const;

  std::uint64_t arrive(std::uint64_t barrier);
  BarrierArrival meet(std::uint64_t barrier, std::uint64_t event);

  std::uint64_t post(std::uint64_t semaphore);
  std::optional<std::uint64_t> take(std::uint64_t semaphore);

 private:
  struct Pending {
    std::uint64_t function = 0, argument = 0, begin = 0;
  };
  struct Barrier {
    std::uint64_t event = 0;
    std::uint64_t arrivals = 0;
  };
  struct Met {
    std::uint64_t arrivals = 0;
    std::uint64_t to_go_on = 0;
  };
  static constexpr std::size_t most_posts = 1 << 16;  // of a semaphore that are remembered

  std::uint64_t next_ = 0;
  std::vector<Pending> pending_;                           // made, and not yet begun
  std::unordered_set<std::uint16_t> begun_;                // threads that are known already
  std::unordered_map<std::uint64_t, std::uint64_t> ends_;  // by name
  std::unordered_map<std::uint64_t, std::uint64_t> signals_;
  std::unordered_map<std::uint64_t, Barrier> barriers_;
  std::unordered_map<std::uint64_t, Met> met_;  // by event: those whose first thread has gone on
  std::unordered_map<std::uint64_t, std::deque<std::uint64_t>> posts_;
};

}  // namespace manyscale::cpu
