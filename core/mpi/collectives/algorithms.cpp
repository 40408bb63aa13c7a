// SPDX-License-Identifier: Apache-2.0
#include "mpi/collectives/algorithms.hpp"

#include <array>
#include <stdexcept>
#include <string>

namespace manyscale::mpi {

namespace {

Kind collective_named(std::string_view name) {
  for (std::size_t i = 0; i < kind_count; ++i)
    if (const auto kind = static_cast<Kind>(i); kind >= Kind::barrier && kind_name(kind) == name) return kind;
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
      const Kind collective = collective_named(std::string_view(full_name).substr(0, dot));
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

const AlgorithmInfo& named(Kind collective, AlgorithmName name) {
  for (const AlgorithmInfo* info : table()->of_collective[static_cast<std::size_t>(collective)])
    if (info->id == name) return *info;
  throw std::logic_error("a library chooses an algorithm that is not there");
}

}  // namespace

const std::vector<AlgorithmInfo>& algorithm_infos() {
  return table()->all;
}

void update_algorithms() {
  if (table()->all.size() != Registry<CollectiveAlgorithm>::get().entries().size())
    table() = std::make_unique<AlgorithmTable>();
}

const AlgorithmInfo* find_algorithm(Kind collective, Algorithm algorithm) {
  const auto number = static_cast<std::size_t>(algorithm);
  if (number == 0 || number > table()->all.size()) return nullptr;
  const AlgorithmInfo& info = table()->all[number - 1];
  return info.collective == collective ? &info : nullptr;
}

Library library_named(std::string_view name) {
  if (name == "openmpi") return Library::openmpi;
  if (name == "mpich") return Library::mpich;
  throw std::invalid_argument("collectives are chosen as 'openmpi' or 'mpich', not as '" + std::string(name) +
                              "'");
}

Choice choose(Library library, Kind collective, std::uint32_t size, std::uint64_t bytes, bool uniform) {
  return library == Library::openmpi ? choose_openmpi(collective, size, bytes, uniform)
                                     : choose_mpich(collective, size, bytes, uniform);
}

Schedule begin_collective(Call& call, Kind collective, Algorithm algorithm) {
  if (algorithm == Algorithm::automatic) {
    // All members must come to the same choice, so parts that differ count with their mean.
    const bool sum = !call.uniform() && (collective == Kind::allgather || collective == Kind::reduce_scatter);
    const std::uint64_t bytes = sum ? call.parts(0, call.size()) / call.size() : call.bytes;
    const Choice choice = choose(call.library, collective, call.size(), bytes, call.uniform());
    call.segment = choice.segment;
    call.window = choice.window;
    return named(collective, choice.algorithm).implementation->run(call);
  }
  return find_algorithm(collective, algorithm)->implementation->run(call);
}

}  // namespace manyscale::mpi
