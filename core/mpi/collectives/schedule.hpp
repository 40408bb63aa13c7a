// SPDX-License-Identifier: Apache-2.0
// One rank's part in a collective operation, as a coroutine that hands out one action after another: send,
// receive, combine, wait. It is asked for the next action only when that one is due, so no schedule is ever
// written out, and an algorithm reads as the loop it is.
#pragma once
#include <coroutine>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "engine/component.hpp"
#include "mpi/program/communicator.hpp"
#include "mpi/program/program.hpp"

namespace manyscale::mpi {

// In this order, each where asked for: begins a receive, begins a send, waits until all that was begun is
// complete, combines two operands of a reduction.
struct Action {
  std::uint32_t from = none;  // rank of the world
  std::uint32_t to = none;
  std::uint64_t receive_bytes = 0;
  std::uint64_t send_bytes = 0;
  std::uint64_t combine_bytes = 0;
  std::uint64_t value = 0;  // check mode: what is sent
  bool wait = false;
};

class Schedule {
 public:
  struct promise_type {
    Action action;
    std::exception_ptr error;

    Schedule get_return_object() {
      return Schedule(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(const Action& next) noexcept {
      action = next;
      return {};
    }
    void return_void() noexcept {}
    void unhandled_exception() { error = std::current_exception(); }
  };

  Schedule() = default;
  Schedule(Schedule&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Schedule& operator=(Schedule&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Schedule() {
    if (handle_) handle_.destroy();
  }

  // Goes on to the next action; false at the end.
  bool next() {
    handle_.resume();
    if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
    return !handle_.done();
  }
  const Action& action() const { return handle_.promise().action; }

 private:
  explicit Schedule(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

class MpiLibrary;

// Of a message, or of all blocks of a collective: far above what a network carries in the time that
// can be simulated, and low enough for sums of sizes to stay in range.
inline constexpr std::uint64_t most_bytes = std::uint64_t{1} << 48;

// What a rank calls a collective with, and what it holds of the result so far.
struct Call {
  Group group;
  // Of hierarchical algorithms: the members on this node, and the first members of all nodes.
  Group local, leaders;
  bool leads = false;               // whether this rank is one of the latter
  std::uint32_t root_leader = 0;    // among the leaders, that of the root's node
  std::uint32_t root_local = none;  // among the local members, the root; none: it is on another node
  std::uint32_t root = 0;
  std::uint64_t bytes = 0;              // each rank's part, or the whole, as the collective defines it
  std::uint64_t segment = 0;            // of pipelined algorithms; 0: not cut
  std::uint32_t window = 32;            // of scattered exchanges: how many at a time
  const MpiLibrary* library = nullptr;  // chooses the algorithm where none is named
  const Program* program = nullptr;
  std::int32_t column = -1;  // of the bytes, where they differ between ranks
  std::uint32_t iteration = 0;

  // Check mode: a reduction is a sum of whole numbers, other collectives carry the root's number.
  std::uint64_t own = 0;       // this rank's contribution
  std::uint64_t value = 0;     // the result so far
  std::uint64_t received = 0;  // sum of what came since the wait before the last

  std::uint32_t rank() const { return group.rank; }
  std::uint32_t size() const { return group.size; }
  bool uniform() const { return column < 0; }
  // The same call within another group, with its own root.
  Call within(const Group& other, std::uint32_t other_root) const {
    Call call = *this;
    call.group = other;
    call.root = other_root;
    return call;
  }
  // The bytes of a member's part.
  std::uint64_t part(std::uint32_t member) const {
    return uniform()
               ? bytes
               : sized(static_cast<std::uint64_t>(program->value_at(column, group.world(member), iteration)));
  }
  // The bytes that one member has for another.
  std::uint64_t part(std::uint32_t from, std::uint32_t to) const {
    return uniform() ? bytes
                     : sized(static_cast<std::uint64_t>(program->value_at(column, group.world(from), to)));
  }
  // The bytes of the parts of `count` members from `first` on, around the end of the group.
  std::uint64_t parts(std::uint32_t first, std::uint32_t count) const {
    if (uniform()) return bytes * count;
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < count; ++i) sum = sized(sum + part((first + i) % size()));
    return sum;
  }

  // Actions; those that begin something leave it in flight, the others wait.
  Action begin_send(std::uint32_t member, std::uint64_t size) const {
    return {.to = group.world(member), .send_bytes = size, .value = value};
  }
  Action begin_receive(std::uint32_t member, std::uint64_t size) const {
    return {.from = group.world(member), .receive_bytes = size};
  }
  Action send(std::uint32_t member, std::uint64_t size) const {
    return {.to = group.world(member), .send_bytes = size, .value = value, .wait = true};
  }
  Action receive(std::uint32_t member, std::uint64_t size) const {
    return {.from = group.world(member), .receive_bytes = size, .wait = true};
  }
  // Both at a time.
  Action exchange(std::uint32_t to, std::uint64_t sent, std::uint32_t from, std::uint64_t got) const {
    return {.from = group.world(from),
            .to = group.world(to),
            .receive_bytes = got,
            .send_bytes = sent,
            .value = value,
            .wait = true};
  }
  static Action wait() { return {.wait = true}; }
  static Action combine(std::uint64_t size) { return {.combine_bytes = size}; }

 private:
  static std::uint64_t sized(std::uint64_t bytes) {
    if (bytes > most_bytes)
      throw SimulationError("a collective operation was given sizes below 0 or beyond " +
                            std::to_string(most_bytes));
    return bytes;
  }
};

}  // namespace manyscale::mpi
