// SPDX-License-Identifier: Apache-2.0
#include "mpi/collectives/algorithms.hpp"

#include <array>
#include <stdexcept>
#include <string>

namespace manyscale::mpi {

namespace {

OperationKind collective_named(std::string_view name) {
  for (std::size_t i = 0; i < kind_count; ++i)
    if (const auto kind = static_cast<OperationKind>(i);
        kind >= OperationKind::barrier && kind_name(kind) == name)
      return kind;
  throw std::invalid_argument("there is no collective operation '" + std::string(name) + "'");
}

// All registered algorithms, and those of each collective.
struct AlgorithmTable {
  std::vector<AlgorithmInfo> all;
  std::array<std::vector<const AlgorithmInfo*>, kind_count> of_collective;

  AlgorithmTable() {
    const auto& entries = Registry<CollectiveAlgorithm>::get().entries();
    if (entries.size() > 255) throw std::invalid_argument("there are more than 255 collective algorithms");
    all.reserve(entries.size());
    for (const auto& [full_name, entry] : entries) {
      const std::size_t dot = full_name.find('.');
      const std::string name = dot == std::string::npos ? "" : full_name.substr(dot + 1);
      const OperationKind collective = collective_named(std::string_view(full_name).substr(0, dot));
      all.push_back({collective, static_cast<Algorithm>(all.size() + 1), name, AlgorithmName::of(name),
                     entry.create()});
      of_collective[static_cast<std::size_t>(collective)].push_back(&all.back());
    }
  }
};

std::unique_ptr<AlgorithmTable>& table() {
  static auto made = std::make_unique<AlgorithmTable>();
  return made;
}

const AlgorithmInfo& named(OperationKind collective, AlgorithmName name) {
  for (const AlgorithmInfo* info : table()->of_collective[static_cast<std::size_t>(collective)])
    if (info->id == name) return *info;
  throw std::invalid_argument("the MPI library chooses an algorithm of " +
                              std::string(kind_name(collective)) + " that is not there");
}

}  // namespace

const std::vector<AlgorithmInfo>& algorithm_infos() {
  return table()->all;
}

void update_algorithms() {
  if (table()->all.size() != Registry<CollectiveAlgorithm>::get().entries().size())
    table() = std::make_unique<AlgorithmTable>();
}

const AlgorithmInfo* find_algorithm(OperationKind collective, Algorithm algorithm) {
  const auto number = static_cast<std::size_t>(algorithm);
  if (number == 0 || number > table()->all.size()) return nullptr;
  const AlgorithmInfo& info = table()->all[number - 1];
  return info.collective == collective ? &info : nullptr;
}

std::unique_ptr<const MpiLibrary> make_mpi_library(const std::string& name) {
  const auto& known = Registry<MpiLibrary>::get();
  if (!known.contains(name)) {
    std::string names;
    for (const auto& [one, entry] : known.entries()) names += (names.empty() ? "'" : ", '") + one + "'";
    throw std::invalid_argument("mpi.collectives is '" + name + "'; it must be one of " + names);
  }
  return make_plugin<MpiLibrary>(name);
}

Schedule begin_collective(Call& call, OperationKind collective, Algorithm algorithm) {
  if (algorithm == Algorithm::automatic) {
    // All members must come to the same choice, so parts that differ count with their mean.
    const bool sum = !call.uniform() &&
                     (collective == OperationKind::allgather || collective == OperationKind::reduce_scatter);
    const std::uint64_t bytes = sum ? call.parts(0, call.size()) / call.size() : call.bytes;
    const Choice choice = call.library->choose(collective, call.size(), bytes, call.uniform());
    call.segment = choice.segment;
    call.window = choice.window;
    return named(collective, choice.algorithm).implementation->run(call);
  }
  return find_algorithm(collective, algorithm)->implementation->run(call);
}

}  // namespace manyscale::mpi
