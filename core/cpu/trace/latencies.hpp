// SPDX-License-Identifier: Apache-2.0
// What folding needs to know of a core: how long each kind of instruction takes, and which kinds are so many
// for their ports that the ports, not the width of the core, set the pace.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "cpu/core/core_spec.hpp"
#include "cpu/record.hpp"

namespace manyscale::cpu {

class Latencies {
 public:
  static constexpr std::size_t rows = 2 * kinds;

  explicit Latencies(const CoreSpec& spec);

  // Kinds, each in double and in single precision.
  static std::size_t row(const Record& record) {
    return 2 * static_cast<std::size_t>(record.kind) + (record.format == 4 ? 1 : 0);
  }
  std::uint32_t latency(const Record& record) const { return latencies_[row(record)]; }
  std::uint32_t width() const { return width_; }
  std::uint64_t astray() const { return astray_; }

  // The rows, as bits, that wait for their ports where so many of each row are executed, and so many branches
  // predicted wrong.
  std::uint64_t scarce_rows(const std::array<std::uint16_t, rows>& executed,
                            std::uint64_t mispredicted) const;

 private:
  // Rows whose instructions can only go to these ports.
  struct PortGroup {
    std::uint32_t ports = 0;
    std::uint64_t rows = 0;
  };

  std::array<std::uint32_t, rows> latencies_{};
  std::array<std::uint32_t, rows> intervals_{};
  std::array<std::uint32_t, rows> ports_{};
  std::vector<PortGroup> groups_;
  std::uint32_t width_;
  std::uint64_t astray_;  // cycles without instructions after a mispredicted branch, at least
};

}  // namespace manyscale::cpu
