// SPDX-License-Identifier: Apache-2.0
// cudaDeviceProp as the versions of the runtime lay it out.
#pragma once
#include <cstddef>

#include "process.hpp"

namespace manyscale::cudart {

enum class PropertyVersion { cuda11, cuda12, cuda13 };

// The size of the struct.
std::size_t properties_bytes(PropertyVersion version);
// Fills a struct of that size.
void write_properties(const DeviceDescription& device, PropertyVersion version, std::byte* to);

}  // namespace manyscale::cudart
