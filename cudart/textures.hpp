// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "abi.hpp"

namespace manyscale::cudart {

// A texture on the current device, or a surface, for which `texture` may be null; `view` may be null.
Error create_texture(std::uint64_t* handle, const ResourceDescription* resource,
                     const TextureDescription* texture, const void* view, bool surface);

}  // namespace manyscale::cudart
