// SPDX-License-Identifier: Apache-2.0
// The issue queues of a core: one for all instructions, and others of floating point and memory accesses
// alone where the core has them.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "cpu/core/core_spec.hpp"
#include "cpu/core/issue_queue.hpp"
#include "cpu/stream/elastic_timing.hpp"
#include "cpu/stream/record.hpp"

namespace manyscale::cpu {

class IssueQueues {
 public:
  explicit IssueQueues(const CoreSpec& spec) : in_order_(spec.in_order) {
    using enum InstructionClass;
    queues_.emplace_back(spec.issue_queue);
    add(spec.float_queue, {float_add, float_multiply, float_fused, float_divide, float_root, float_convert});
    add(spec.memory_queue, {load, store, atomic});
  }

  // The first cycle from `from` on with a free entry; unknown if that depends on what is in flight.
  Cycle earliest(InstructionClass kind, Cycle from) { return queue(kind).earliest(from); }
  void enter(InstructionClass kind, const ElasticTiming& timing) {
    queue(kind).enter();
    if (const std::uint32_t waiters = waiters_of(timing); waiters > 0) queues_[0].enter(waiters);
  }
  void issue(InstructionClass kind, Cycle cycle) { queue(kind).leave(cycle); }
  // The result is there: those compacted instructions that wait for it issue.
  void complete(const ElasticTiming& timing, Cycle cycle) {
    if (const std::uint32_t waiters = waiters_of(timing); waiters > 0) queues_[0].leave(cycle, waiters);
  }

 private:
  IssueQueue& queue(InstructionClass kind) { return queues_[numbers_[static_cast<std::size_t>(kind)]]; }
  // In order, the first instruction that waits for a result keeps all others from issue anyway.
  std::uint32_t waiters_of(const ElasticTiming& timing) const { return in_order_ ? 0 : timing.waiters; }
  void add(std::int64_t entries, std::initializer_list<InstructionClass> kinds) {
    if (entries == 0) return;
    for (const InstructionClass kind : kinds)
      numbers_[static_cast<std::size_t>(kind)] = static_cast<std::uint32_t>(queues_.size());
    queues_.emplace_back(entries);
  }

  const bool in_order_;
  std::array<std::uint32_t, instruction_classes> numbers_{};  // in queues_, by class
  std::vector<IssueQueue> queues_;
};

}  // namespace manyscale::cpu
