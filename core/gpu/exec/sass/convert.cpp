// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/sass/builder.hpp"

namespace manyscale::gpu {

std::span<const MachineOpcode> machine_convert_opcodes() {
  return {};
}

}  // namespace manyscale::gpu
