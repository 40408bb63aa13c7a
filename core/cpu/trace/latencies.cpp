// SPDX-License-Identifier: Apache-2.0
#include "cpu/trace/latencies.hpp"

#include <algorithm>
#include <bit>

#include "cpu/core/issue_ports.hpp"

namespace manyscale::cpu {

Latencies::Latencies(const CoreSpec& spec)
    : width_(static_cast<std::uint32_t>(spec.dispatch_width)),
      l1_hit_(static_cast<std::uint32_t>(spec.l1.tag_latency + spec.l1.data_latency)),
      store_forward_(static_cast<std::uint32_t>(spec.forward_latency)),
      misprediction_penalty_(static_cast<std::uint64_t>(spec.front_end_depth + spec.mispredict_penalty)) {
  const IssuePorts issue(spec);
  for (std::size_t kind = 0; kind < instruction_classes; ++kind) {
    for (const std::uint8_t format : {8, 4}) {
      Record record;
      record.kind = static_cast<InstructionClass>(kind);
      record.format = format;
      latencies_[row(record)] = static_cast<std::uint32_t>(issue.latency(record));
      ports_[row(record)] = issue.ports_of(record);
      if (issue.keeps_unit(record)) unit_rows_ |= std::uint64_t{1} << row(record);
    }
  }
  for (const std::uint32_t group : ports_) {
    if (std::ranges::any_of(groups_, [&](const PortGroup& known) { return known.ports == group; })) continue;
    groups_.push_back({group, 0});
    for (std::size_t row = 0; row < rows; ++row) {
      if ((ports_[row] & ~group) == 0) groups_.back().rows |= std::uint64_t{1} << row;
    }
  }
}

// Whether so many cycles of work are more than these ports have while the instructions pass.
bool Latencies::exceeds(std::uint64_t cycles, std::uint32_t ports, const Counts& executed,
                        std::uint64_t mispredicted, double slack) const {
  std::uint64_t instructions = 0;
  for (const std::uint16_t count : executed) instructions += count;
  // How long they take at least, whatever the ports.
  const double least =
      static_cast<double>(instructions) / width_ + static_cast<double>(mispredicted * misprediction_penalty_);
  return static_cast<double>(cycles) > slack * least * std::popcount(ports);
}

std::uint64_t Latencies::limiting_groups(const Counts& executed, std::uint64_t mispredicted,
                                         double slack) const {
  std::uint64_t limiting = 0;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    std::uint64_t issued = 0;
    for (std::uint64_t left = groups_[group].rows; left != 0; left &= left - 1) {
      issued += executed[static_cast<std::size_t>(std::countr_zero(left))];
    }
    if (exceeds(issued, groups_[group].ports, executed, mispredicted, slack))
      limiting |= std::uint64_t{1} << group;
  }
  return limiting;
}

}  // namespace manyscale::cpu
