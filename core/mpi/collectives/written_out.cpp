// SPDX-License-Identifier: Apache-2.0
#include "mpi/collectives/written_out.hpp"

#include <stdexcept>

namespace manyscale::mpi {

std::vector<Action> written_out(const WrittenCall& given, OperationKind collective, Algorithm algorithm,
                                std::span<const std::uint32_t> nodes) {
  const auto size = static_cast<std::uint32_t>(nodes.size());
  if (given.rank >= size || given.root >= size)
    throw std::invalid_argument("a collective of " + std::to_string(size) + " members has no member " +
                                std::to_string(given.rank >= size ? given.rank : given.root));
  const AlgorithmInfo* const info = find_algorithm(collective, algorithm);
  if (algorithm != Algorithm::automatic && info == nullptr)
    throw std::invalid_argument("the collective has no such algorithm");
  if (given.bytes > most_bytes / size)
    throw std::invalid_argument("the parts of all ranks together have more than " +
                                std::to_string(most_bytes) + " bytes");
  const Communicator world = Communicator::world(size);
  Call call;
  call.group = world.group(given.rank);
  call.root = given.root;
  call.bytes = given.bytes;
  call.segment = given.segment;
  call.library = given.library;
  NodeSplit split;
  if (info != nullptr && info->implementation->needs_nodes()) {
    split = split_by_node(world, nodes);
    call.local = split.local.group(given.rank);
    call.leads = split.leaders.contains(given.rank);
    if (call.leads) call.leaders = split.leaders.group(given.rank);
    call.root_leader = split.leaders.rank(split.local.group(given.root).world(0));
    if (nodes[given.root] == nodes[given.rank]) call.root_local = split.local.rank(given.root);
  }
  std::vector<Action> actions;
  Schedule schedule = begin_collective(call, collective, algorithm);
  while (schedule.next()) actions.push_back(schedule.action());
  return actions;
}

}  // namespace manyscale::mpi
