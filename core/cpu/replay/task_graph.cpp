// SPDX-License-Identifier: Apache-2.0
#include "cpu/replay/task_graph.hpp"

#include <algorithm>
#include <utility>

namespace manyscale::cpu {

std::vector<std::uint64_t> remaining_paths(std::span<const StreamInfo* const> tasks) {
  std::unordered_map<std::uint64_t, std::uint32_t> index;      // by number
  std::unordered_map<std::uint64_t, DependenceTable> tables;   // by creator
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;  // from earlier to later, sorted by later
  for (std::uint32_t i = 0; i < tasks.size(); ++i) {
    const StreamInfo& task = *tasks[i];
    index.emplace(task.subject, i);
    tables[task.parent].add(i, task.dependences,
                            [&](std::uint32_t earlier) { edges.emplace_back(earlier, i); });
    if (const auto parent = index.find(task.parent - 1); task.parent != 0 && parent != index.end())
      edges.emplace_back(parent->second, i);
  }
  std::vector<std::uint64_t> paths(tasks.size(), 0);
  std::size_t edge = edges.size();
  for (std::size_t i = tasks.size(); i-- > 0;) {
    paths[i] += tasks[i]->instructions;
    for (; edge > 0 && edges[edge - 1].second == i; --edge) {
      std::uint64_t& before = paths[edges[edge - 1].first];
      before = std::max(before, paths[i]);
    }
  }
  return paths;
}

}  // namespace manyscale::cpu
