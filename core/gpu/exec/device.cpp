// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/device.hpp"

#include <cstring>

#include "gpu/exec/address_space.hpp"
#include "gpu/exec/fault.hpp"

namespace manyscale::gpu {

using ptx::Space;

namespace {

// What every GPU of the supported generations allows.
constexpr std::array<std::uint64_t, 3> kMaximumBlock{1024, 1024, 64};
constexpr std::array<std::uint64_t, 3> kMaximumGrid{0x7fffffff, 65535, 65535};
constexpr std::uint64_t kMaximumShared = std::uint64_t{227} << 10;

bool has_memory(const ptx::Variable& variable) {
  return (variable.space == Space::global || variable.space == Space::constant) &&
         variable.linkage != ptx::Linkage::external && variable.size != 0;
}

}  // namespace

LoadedModule::LoadedModule(ptx::Module module, DeviceMemory& memory)
    : module_(std::move(module)), memory_(memory) {
  for (const ptx::Variable& variable : module_.variables) placement_.variables.push_back(place(variable));
  for (const ptx::Function& function : module_.functions) {
    auto& addresses = placement_.function_variables.emplace_back();
    for (const ptx::Variable& variable : function.variables) addresses.push_back(place(variable));
  }
  for (std::size_t i = 0; i < module_.variables.size(); ++i)
    fill(module_.variables[i], placement_.variables[i]);
  for (std::size_t f = 0; f < module_.functions.size(); ++f)
    for (std::size_t i = 0; i < module_.functions[f].variables.size(); ++i)
      fill(module_.functions[f].variables[i], placement_.function_variables[f][i]);
}

LoadedModule::~LoadedModule() {
  for (std::uint64_t address : allocations_) memory_.free(address);
}

std::uint64_t LoadedModule::place(const ptx::Variable& variable) {
  if (!has_memory(variable)) return 0;
  allocations_.push_back(memory_.allocate(variable.size, "variable " + std::string(variable.name)));
  return allocations_.back();
}

void LoadedModule::fill(const ptx::Variable& variable, std::uint64_t address) {
  if (address == 0) return;
  std::byte* bytes = memory_.host(address);
  memory_.mark_written(address, variable.size);  // with zeros, where the module says nothing
  if (!variable.initial.empty()) std::memcpy(bytes, variable.initial.data(), variable.initial.size());
  for (const ptx::Relocation& relocation : variable.relocations) {
    if (relocation.offset > variable.size || variable.size - relocation.offset < relocation.size) continue;
    std::uint64_t value = relocation.is_function ? kCodeWindow + relocation.id * kFunctionStride
                                                 : placement_.variables[relocation.id];
    value += static_cast<std::uint64_t>(relocation.addend);
    value >>= relocation.shift;
    std::memcpy(bytes + relocation.offset, &value, relocation.size);
  }
}

std::optional<std::uint32_t> LoadedModule::kernel(std::string_view name) const {
  for (std::uint32_t i = 0; i < module_.functions.size(); ++i)
    if (module_.functions[i].is_entry && module_.functions[i].has_body && module_.functions[i].name == name)
      return i;
  return std::nullopt;
}

const Program& LoadedModule::program(std::uint32_t kernel, bool reordered) {
  const auto found = programs_.find({kernel, reordered});
  if (found != programs_.end()) return found->second;
  return programs_.emplace(std::pair(kernel, reordered), decode(module_, kernel, placement_, reordered))
      .first->second;
}

std::optional<LoadedModule::Placed> LoadedModule::variable(std::string_view name) const {
  for (std::size_t i = 0; i < module_.variables.size(); ++i)
    if (module_.variables[i].name == name && placement_.variables[i] != 0)
      return Placed{placement_.variables[i], module_.variables[i].size};
  return std::nullopt;
}

LoadedModule& Device::load(ptx::Module module) {
  modules_.push_back(std::make_unique<LoadedModule>(std::move(module), memory));
  return *modules_.back();
}

LaunchResult Device::launch(LoadedModule& module, std::uint32_t kernel, const LaunchRequest& request) {
  return run_grid(prepare(module, kernel, request));
}

Launch Device::prepare(LoadedModule& module, std::uint32_t kernel, const LaunchRequest& request) {
  const Program& program = module.program(kernel, request.reordered);
  const ptx::Function& function = module.module().functions[kernel];
  if (!program.problems.empty())
    throw BadLaunch("kernel " + std::string(function.name) + " cannot be executed");
  std::uint64_t threads = 1;
  for (unsigned axis = 0; axis < 3; ++axis) {
    threads *= request.block[axis];
    if (request.block[axis] == 0 || request.block[axis] > kMaximumBlock[axis] || threads > kMaximumThreads)
      throw BadLaunch(
          "a block of this shape is not possible: at most 1024 threads in all, and at most 1024 x 1024 x 64");
    if (request.grid[axis] == 0 || request.grid[axis] > kMaximumGrid[axis])
      throw BadLaunch(
          "a grid of this shape is not possible: at most 2147483647 x 65535 x 65535 blocks, at least one");
    if (function.required_threads[axis] != 0 && request.block[axis] != function.required_threads[axis])
      throw BadLaunch("the kernel requires blocks of " + std::to_string(function.required_threads[0]) +
                      " x " + std::to_string(std::max(function.required_threads[1], 1U)) + " x " +
                      std::to_string(std::max(function.required_threads[2], 1U)) + " threads (.reqntid)");
  }
  std::uint64_t most = 1;
  for (std::uint32_t extent : function.maximum_threads) most *= std::max(extent, 1U);
  if (function.maximum_threads[0] != 0 && threads > most)
    throw BadLaunch("the kernel allows at most " + std::to_string(most) + " threads in a block (.maxntid)");
  if (program.static_shared_bytes + request.dynamic_shared_bytes > kMaximumShared ||
      request.dynamic_shared_bytes > kMaximumShared)
    throw BadLaunch("the block needs " +
                    std::to_string(program.static_shared_bytes + request.dynamic_shared_bytes) +
                    " bytes of shared memory; at most 227 KiB are possible");
  if (request.parameters.size() != program.parameter_bytes)
    throw BadLaunch("the kernel takes " + std::to_string(program.parameter_bytes) + " bytes of parameters");

  Launch launch;
  launch.program = &program;
  launch.memory = &memory;
  launch.textures = &textures;
  launch.grid = request.grid;
  launch.block = request.block;
  launch.dynamic_shared_bytes = request.dynamic_shared_bytes;
  launch.parameters.assign(request.parameters.begin(), request.parameters.end());
  launch.threads = request.threads;
  launch.check = request.check;
  launch.maximum_instructions = request.maximum_instructions;
  launch.sequence = ++launches_;
  launch.workspace = request.workspace;
  stop_.store(false, std::memory_order_relaxed);
  launch.stop = &stop_;
  return launch;
}

}  // namespace manyscale::gpu
