// SPDX-License-Identifier: Apache-2.0
// Latencies and issue ports of a core, as trace compaction needs them: the latency of each kind of
// instruction, and which ports have so much work that they, not the width of the core, limit the rate.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "cpu/core/core_spec.hpp"
#include "cpu/stream/record.hpp"

namespace manyscale::cpu {

class Latencies {
 public:
  static constexpr std::size_t rows = 2 * instruction_classes;
  static constexpr std::size_t most_groups = 64;
  using Counts = std::array<std::uint16_t, rows>;  // instructions by row

  // Rows whose instructions can only go to these ports.
  struct PortGroup {
    std::uint32_t ports = 0;
    std::uint64_t rows = 0;
  };

  explicit Latencies(const CoreSpec& spec);

  // Kinds, each in double and in single precision.
  static std::size_t row(const Record& record) {
    return 2 * static_cast<std::size_t>(record.kind) + (record.format == 4 ? 1 : 0);
  }
  std::uint32_t latency(const Record& record) const { return latencies_[row(record)]; }
  std::uint32_t ports(const Record& record) const { return ports_[row(record)]; }
  std::uint32_t width() const { return width_; }
  std::uint64_t misprediction_penalty() const { return misprediction_penalty_; }

  // Cycles of an L1 hit, and of a load that an older store serves.
  std::uint32_t l1_hit() const { return l1_hit_; }
  std::uint32_t store_forward() const { return store_forward_; }

  std::span<const PortGroup> groups() const { return groups_; }
  // The groups, as bits, whose ports limit the rate where so many of each row are executed, and so many
  // branches mispredicted.
  std::uint64_t limiting_groups(const Counts& executed, std::uint64_t mispredicted, double slack) const;
  // The rows, as bits, that keep units busy for longer than their ports.
  std::uint64_t unit_rows() const { return unit_rows_; }

 private:
  bool exceeds(std::uint64_t cycles, std::uint32_t ports, const Counts& executed, std::uint64_t mispredicted,
               double slack) const;

  std::array<std::uint32_t, rows> latencies_{};
  std::array<std::uint32_t, rows> ports_{};
  std::vector<PortGroup> groups_;
  std::uint64_t unit_rows_ = 0;
  std::uint32_t width_;
  std::uint32_t l1_hit_, store_forward_;
  std::uint64_t misprediction_penalty_;  // cycles without instructions after a mispredicted branch, at least
};

}  // namespace manyscale::cpu
