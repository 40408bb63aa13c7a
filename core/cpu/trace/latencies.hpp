// SPDX-License-Identifier: Apache-2.0
// What folding needs to know of a core: how long each kind of instruction takes, and which kinds are so many
// for their ports that the ports, not the width of the core, set the pace.
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
  static constexpr std::size_t rows = 2 * kinds;
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
  std::uint64_t astray() const { return astray_; }

  // Cycles of a hit of the first-level cache, and of a load that an older store serves.
  std::uint32_t hit() const { return hit_; }
  std::uint32_t forward() const { return forward_; }

  std::span<const PortGroup> groups() const { return groups_; }
  // The groups, as bits, whose ports set the pace where so many of each row are executed, and so many
  // branches predicted wrong.
  std::uint64_t scarce_groups(const Counts& executed, std::uint64_t mispredicted) const;
  // The rows, as bits, that keep units busy for longer than their ports.
  std::uint64_t unit_rows() const { return unit_rows_; }

 private:
  bool too_much(std::uint64_t cycles, std::uint32_t ports, const Counts& executed,
                std::uint64_t mispredicted) const;

  std::array<std::uint32_t, rows> latencies_{};
  std::array<std::uint32_t, rows> ports_{};
  std::vector<PortGroup> groups_;
  std::uint64_t unit_rows_ = 0;
  std::uint32_t width_;
  std::uint32_t hit_, forward_;
  std::uint64_t astray_;  // cycles without instructions after a mispredicted branch, at least
};

}  // namespace manyscale::cpu
