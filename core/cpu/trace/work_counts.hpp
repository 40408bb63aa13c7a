// SPDX-License-Identifier: Apache-2.0
// How much work of each kind the processes of a program did: what tells ranks that behave differently apart.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "cpu/trace/record_sink.hpp"

namespace manyscale::cpu {

class WorkCounts final : public RecordSink {
 public:
  using Counts = std::array<std::uint64_t, kinds>;

  void take(std::span<const Record> records) override {
    for (const Record& record : records) {
      const auto process = static_cast<std::size_t>(record.pc >> process_shift);
      if (process >= by_process_.size()) by_process_.resize(process + 1);
      ++by_process_[process][static_cast<std::size_t>(record.kind)];
    }
  }

  // Records of each process by kind.
  const std::vector<Counts>& by_process() const { return by_process_; }

 private:
  static constexpr int process_shift = 40;  // above it is the number of the process (linux/address_space.hpp)

  std::vector<Counts> by_process_;
};

}  // namespace manyscale::cpu
