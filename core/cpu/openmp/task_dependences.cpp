// SPDX-License-Identifier: Apache-2.0
#include "cpu/openmp/task_dependences.hpp"

#include <algorithm>
#include <array>

namespace manyscale::cpu {

namespace {

constexpr std::uint64_t most_dependences = 4096;

TaskDependence::Type dependence_type(std::uint64_t libgomp_type) {
  switch (libgomp_type) {  // GOMP_DEPEND_IN to GOMP_DEPEND_INOUTSET
    case 1:
      return TaskDependence::Type::in;
    case 4:
      return TaskDependence::Type::mutexinoutset;
    case 5:
      return TaskDependence::Type::inoutset;
    default:
      return TaskDependence::Type::out;
  }
}

}  // namespace

// The list has one of two forms: {n, n_out, addresses: out,
// then in}, or {0, n, n_out, n_mutexinoutset, n_in, addresses in this order, then addresses of dependence
// objects {address, type}}.
std::vector<TaskDependence> read_dependences(AddressSpace& memory, std::uint64_t list) {
  std::array<std::uint64_t, 5> head{};
  if (!memory.read(list, head.data(), 2 * sizeof(std::uint64_t))) return {};
  const bool short_form = head[0] != 0;
  if (!short_form && !memory.read(list, head.data(), sizeof head)) return {};
  const std::uint64_t all = std::min(short_form ? head[0] : head[1], most_dependences);
  const std::uint64_t out = short_form ? head[1] : head[2];
  const std::uint64_t mutexinoutset = short_form ? 0 : head[3];
  const std::uint64_t in = short_form ? all : head[4];
  const std::uint64_t first = list + (short_form ? 2 : 5) * sizeof(std::uint64_t);
  std::vector<TaskDependence> dependences;
  for (std::uint64_t index = 0; index < all; ++index) {
    TaskDependence dependence;
    if (!memory.read(first + index * sizeof(std::uint64_t), &dependence.address, sizeof(std::uint64_t)))
      break;
    if (index < out) {
      dependence.type = TaskDependence::Type::out;
    } else if (index - out < mutexinoutset) {
      dependence.type = TaskDependence::Type::mutexinoutset;
    } else if (index - out - mutexinoutset >= in) {
      std::array<std::uint64_t, 2> object{};
      if (!memory.read(dependence.address, object.data(), sizeof object)) break;
      dependence = {object[0], dependence_type(object[1])};
    }
    dependences.push_back(dependence);
  }
  return dependences;
}

}  // namespace manyscale::cpu
