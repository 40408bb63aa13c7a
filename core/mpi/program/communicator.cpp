// SPDX-License-Identifier: Apache-2.0
#include "mpi/program/communicator.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

namespace manyscale::mpi {

Communicator Communicator::world(std::uint32_t ranks) {
  return strided(ranks, 1, ranks);
}

Communicator Communicator::strided(std::uint32_t ranks, std::uint32_t stride, std::uint32_t count) {
  if (stride == 0 || count == 0 || ranks % (std::uint64_t{stride} * count) != 0) {
    throw std::invalid_argument("groups of " + std::to_string(count) + " ranks, " + std::to_string(stride) +
                                " apart, do not divide " + std::to_string(ranks) +
                                " ranks: their product must divide the number of ranks");
  }
  Communicator result;
  result.stride_ = stride;
  result.count_ = count;
  return result;
}

Communicator Communicator::split(std::span<const std::int32_t> group, std::span<const std::int32_t> key) {
  if (group.size() != key.size()) throw std::invalid_argument("a split needs one group and one key per rank");
  auto members = std::make_shared<Members>();
  members->begin.assign(group.size(), 0);
  members->size.assign(group.size(), 0);
  members->position.assign(group.size(), -1);
  members->ranks.resize(group.size());
  std::iota(members->ranks.begin(), members->ranks.end(), 0);
  std::erase_if(members->ranks, [&](std::uint32_t rank) { return group[rank] < 0; });
  std::stable_sort(members->ranks.begin(), members->ranks.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(group[a], key[a]) < std::pair(group[b], key[b]);
  });
  const auto& ranks = members->ranks;
  for (std::size_t begin = 0, end = 0; begin < ranks.size(); begin = end) {
    while (end < ranks.size() && group[ranks[end]] == group[ranks[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) {
      members->begin[ranks[i]] = static_cast<std::uint32_t>(begin);
      members->size[ranks[i]] = static_cast<std::uint32_t>(end - begin);
      members->position[ranks[i]] = static_cast<std::int32_t>(i - begin);
    }
  }
  Communicator result;
  result.members_ = std::move(members);
  return result;
}

NodeSplit split_by_node(const Communicator& communicator, std::span<const std::uint32_t> node_of_rank) {
  const std::size_t ranks = node_of_rank.size();
  std::vector<std::int32_t> local(ranks, -1), leaders(ranks, -1), key(ranks, 0);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int32_t>
      parts;  // by first rank of the group and node
  // In the order of the groups, so that the first rank met of a part is the one that speaks for it.
  std::vector<std::uint32_t> order(ranks);
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](std::uint32_t rank) { return !communicator.contains(rank); });
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return communicator.rank(a) < communicator.rank(b);
  });
  for (const std::uint32_t rank : order) {
    const Group group = communicator.group(rank);
    const std::uint32_t head = group.world(0);
    const auto [part, fresh] =
        parts.try_emplace({head, node_of_rank[rank]}, static_cast<std::int32_t>(parts.size()));
    local[rank] = part->second;
    key[rank] = static_cast<std::int32_t>(group.rank);
    if (fresh) leaders[rank] = static_cast<std::int32_t>(head);
  }
  return {Communicator::split(local, key), Communicator::split(leaders, key)};
}

}  // namespace manyscale::mpi
