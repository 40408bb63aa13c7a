// SPDX-License-Identifier: Apache-2.0
#include "cpu/trace/latencies.hpp"

#include <algorithm>
#include <bit>

#include "cpu/core/issue_ports.hpp"

namespace manyscale::cpu {

Latencies::Latencies(const CoreSpec& spec)
    : width_(static_cast<std::uint32_t>(spec.dispatch_width)),
      reorder_buffer_(static_cast<std::uint32_t>(spec.reorder_buffer)) {
  const IssuePorts issue(spec);
  std::array<std::uint32_t, rows> ports{};
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    for (const std::uint8_t format : {8, 4}) {
      Record record;
      record.kind = static_cast<Kind>(kind);
      record.format = format;
      latencies_[row(record)] = static_cast<std::uint32_t>(issue.latency(record));
      intervals_[row(record)] = static_cast<std::uint32_t>(issue.interval(record));
      ports[row(record)] = issue.ports_of(record);
    }
  }
  for (const std::uint32_t group : ports) {
    if (std::ranges::any_of(groups_, [&](const PortGroup& known) { return known.ports == group; })) continue;
    groups_.push_back({group, 0});
    for (std::size_t row = 0; row < rows; ++row) {
      if ((ports[row] & ~group) == 0) groups_.back().rows |= std::uint64_t{1} << row;
    }
  }
}

std::uint64_t Latencies::scarce_rows(const std::array<std::uint16_t, rows>& executed) const {
  std::uint64_t instructions = 0;
  for (const std::uint16_t count : executed) instructions += count;
  std::uint64_t scarce = 0;
  for (const PortGroup& group : groups_) {
    std::uint64_t busy = 0;
    for (std::uint64_t left = group.rows; left != 0; left &= left - 1) {
      const auto row = static_cast<std::size_t>(std::countr_zero(left));
      busy += std::uint64_t{executed[row]} * intervals_[row];
    }
    const auto ports = static_cast<std::uint64_t>(std::popcount(group.ports));
    if (busy * width_ > instructions * ports) scarce |= group.rows;
  }
  return scarce;
}

}  // namespace manyscale::cpu
