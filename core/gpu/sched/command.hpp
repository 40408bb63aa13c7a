// SPDX-License-Identifier: Apache-2.0
// What the host asks of a GPU: kernels, copies, events and moves of managed memory, in the order of their
// streams.
#pragma once
#include <compare>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <vector>

#include "engine/time.hpp"
#include "gpu/sched/copy.hpp"
#include "gpu/uvm/commands.hpp"
#include "memory/protocol.hpp"

namespace manyscale::gpu {

enum class CommandKind : std::uint8_t { kernel, copy, record, wait, range };

// A command in a stream: it begins when those before it in its stream have ended.
struct Command {
  CommandKind kind = CommandKind::kernel;
  std::uint32_t stream = 0;
  std::int32_t priority = 0;               // of the stream; lower numbers are more urgent, as in CUDA
  std::uint32_t launch = 0;                // of a kernel: its index in the table of launches
  memory::Origin origin = memory::nobody;  // of what a kernel or a copy does to memory
  CommandId event = 0;                     // of a wait: the record that it waits for
  Copy copy;
  RangeStart range;         // what is done with which pages of managed memory
  Time behind_kernel = -1;  // of a kernel: since when it waits behind another kernel of its stream
  Time begun = -1;
  Time ended = -1;
};

// All commands that have not ended, and those that have since somebody last asked; shared by the scheduler
// and the copy engines. A command that is no longer here has ended.
struct CommandTable {
  std::unordered_map<CommandId, Command> commands;
  std::vector<CommandId> ended;
};

// Commands that wait for the same thing: the most urgent goes first, of equals the one that came first.
class UrgencyQueue {
 public:
  void push(std::int32_t priority, CommandId command) { waiting_.insert({priority, next_order_++, command}); }
  bool empty() const { return waiting_.empty(); }
  CommandId pop() {
    const CommandId first = waiting_.begin()->command;
    waiting_.erase(waiting_.begin());
    return first;
  }

 private:
  struct Entry {
    std::int32_t priority;
    std::uint64_t order;
    CommandId command;
    auto operator<=>(const Entry&) const = default;
  };
  std::set<Entry> waiting_;
  std::uint64_t next_order_ = 0;
};

}  // namespace manyscale::gpu
