// SPDX-License-Identifier: Apache-2.0
// What instructions of textures and surfaces share: which one it is, and where the components go.
#pragma once
#include <cstdint>
#include <vector>

#include "gpu/exec/op.hpp"

namespace manyscale::gpu {

class MachineBuilder;

// The slot of the handle: a word of a constant bank, or a uniform register.
Slot texture_handle(MachineBuilder& builder);
// Which of four components are wanted.
std::uint8_t texture_mask(MachineBuilder& builder);
// Four slots: of each component that is wanted, in order, where it goes; the first two are in the register
// that is named last.
std::vector<Slot> texture_results(MachineBuilder& builder, std::uint8_t mask);

}  // namespace manyscale::gpu
