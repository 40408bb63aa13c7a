// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "gpu/exec/device.hpp"

// A kernel of a loaded module, as Python sees it.
struct KernelHandle {
  manyscale::gpu::LoadedModule* module;
  std::uint32_t kernel;

  const manyscale::gpu::Program& program() const { return module->program(kernel); }
  manyscale::gpu::KernelAttributes attributes() const { return module->attributes(kernel); }
};
