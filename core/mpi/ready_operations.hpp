// SPDX-License-Identifier: Apache-2.0
// Ready operations: the operations of a rank that have no order and begin as soon as what they wait for is
// there. The longest ready comes first, but receives come before all others: they cost nothing, and messages
// then find them.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/time.hpp"
#include "mpi/program/program.hpp"

namespace manyscale::mpi {

class ReadyOperations {
 public:
  // The operations from `first` up to the next `end`; those that wait for nothing are ready.
  void start(const Program& program, std::uint32_t first, Time now) {
    first_ = first;
    std::uint32_t end = first;
    while (program.operations[end].kind != OperationKind::end) ++end;
    left_ = end - first;
    const auto missing = program.dependencies.missing.begin();
    missing_.assign(missing + first, missing + end);
    for (std::uint32_t operation = first; operation < end; ++operation)
      if (missing_[operation - first] == 0) add(program, operation, now);
  }
  // An operation has begun or ended, which others may have waited for.
  void begun(const Program& program, std::uint32_t operation, Time now) {
    satisfy(program, operation, program.dependencies.on_begin, now);
  }
  void ended(const Program& program, std::uint32_t operation, Time now) {
    --left_;
    satisfy(program, operation, program.dependencies.on_end, now);
  }

  bool empty() const { return ready_.empty(); }
  bool all_ended() const { return left_ == 0; }
  std::uint32_t take() {
    std::pop_heap(ready_.begin(), ready_.end(), std::greater<>());
    const std::uint32_t operation = ready_.back().operation;
    ready_.pop_back();
    return operation;
  }

  std::uint32_t computing = none;  // the operation that keeps the processor

 private:
  struct Ready {
    Time since;  // -1: a receive
    std::uint32_t operation;
    friend bool operator>(const Ready& a, const Ready& b) {
      return a.since != b.since ? a.since > b.since : a.operation > b.operation;
    }
  };

  void add(const Program& program, std::uint32_t operation, Time now) {
    const bool receive = program.operations[operation].kind == OperationKind::receive;
    ready_.push_back({receive ? -1 : now, operation});
    std::push_heap(ready_.begin(), ready_.end(), std::greater<>());
  }
  // Those that waited for this operation, and for nothing else, are ready now.
  void satisfy(const Program& program, std::uint32_t operation, const Dependencies::Lists& lists, Time now) {
    for (std::uint32_t i = lists.first[operation]; i < lists.first[operation + 1]; ++i) {
      const std::uint32_t waiting = lists.waiting[i];
      if (--missing_[waiting - first_] == 0) add(program, waiting, now);
    }
  }

  std::uint32_t first_ = 0;             // operation
  std::uint32_t left_ = 0;              // that have not ended
  std::vector<std::uint32_t> missing_;  // for each operation what it still waits for
  std::vector<Ready> ready_;            // a heap
};

}  // namespace manyscale::mpi
