// SPDX-License-Identifier: Apache-2.0
#include "cpu/stream/region_table.hpp"

#include <array>

namespace manyscale::cpu {

std::string_view region_kind_name(RegionKind kind) {
  static constexpr std::array<std::string_view, region_kinds> names{
      "parallel",  "loop",    "barrier",      "critical", "critical_wait", "single",
      "sections",  "ordered", "ordered_wait", "task",     "task_create",   "taskwait",
      "taskgroup", "lock",    "thread",       "wait",     "mpi",           "user"};
  return names[static_cast<std::size_t>(kind)];
}

std::uint32_t RegionTable::intern(const Region& region) {
  if (const auto found = numbers_.find(region); found != numbers_.end()) return found->second;
  if (regions_.size() == limit) return limit - 1;
  const auto number = static_cast<std::uint32_t>(regions_.size());
  regions_.push_back(regions_.size() + 1 == limit ? Region{RegionKind::user, "(further regions)", 0, 0}
                                                  : region);
  if (regions_.size() < limit) numbers_.emplace(region, number);
  return number;
}

}  // namespace manyscale::cpu
