// SPDX-License-Identifier: Apache-2.0
// Memory of the program that it registered (cudaHostRegister): its pages are replaced by pages of the shared
// heap with the same contents, so that kernels and copies reach it at an address of their own.
#pragma once
#include <cstdint>

#include "memory.hpp"

namespace manyscale::cudart {

// Where the devices find memory that was registered; 0 if it was not.
std::uint64_t registered_address(const void* pointer);
// Makes the program's pages its own again, with what is in them now.
void give_pages_back(const Allocation& registered);

}  // namespace manyscale::cudart
