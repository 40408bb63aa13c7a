// SPDX-License-Identifier: Apache-2.0
// Managed memory seen from the host: pages that a device may have are closed to the host, and its first
// access asks the server to bring them back, which takes simulated time.
#pragma once
#include <cstddef>
#include <cstdint>

namespace manyscale::cudart {

// From now on accesses of the host to closed pages are handled; other faults go on to the program's own
// handler.
void watch_host_accesses();

void add_managed(std::uint64_t address, std::uint64_t bytes);
void forget_managed(std::uint64_t address);
// Work that may touch managed memory is about to be given to a device: the host has to ask again.
void close_managed();

// What an access of the host to some bytes would do, if they are managed memory.
void touch_managed(const void* pointer, std::size_t bytes, bool writes);

}  // namespace manyscale::cudart
