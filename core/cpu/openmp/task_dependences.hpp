// SPDX-License-Identifier: Apache-2.0
// What a task depends on, as GCC's code passes it to libgomp: a list in the program's memory.
#pragma once
#include <cstdint>
#include <vector>

#include "cpu/stream/task_table.hpp"
#include "cpu/virtual_memory/address_space.hpp"

namespace manyscale::cpu {

// The dependences in the list at this address, as far as they can be read.
std::vector<TaskDependence> read_dependences(AddressSpace& memory, std::uint64_t list);

}  // namespace manyscale::cpu
