// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/device.hpp"

#include <cstring>
#include <map>

#include "gpu/exec/address_space.hpp"
#include "gpu/exec/fault.hpp"
#include "gpu/exec/sass/cross_cta_reads.hpp"

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
  for (const ptx::Variable& variable : module_.variables) placement_.variables.push_back(allocate(variable));
  for (const ptx::Function& function : module_.functions) {
    auto& addresses = placement_.function_variables.emplace_back();
    for (const ptx::Variable& variable : function.variables) addresses.push_back(allocate(variable));
  }
  for (std::size_t i = 0; i < module_.variables.size(); ++i) {
    fill(module_.variables[i], placement_.variables[i]);
    if (placement_.variables[i] != 0)
      variables_.try_emplace(std::string(module_.variables[i].name),
                             Placed{placement_.variables[i], module_.variables[i].size});
  }
  for (std::size_t f = 0; f < module_.functions.size(); ++f)
    for (std::size_t i = 0; i < module_.functions[f].variables.size(); ++i)
      fill(module_.functions[f].variables[i], placement_.function_variables[f][i]);
  read_signatures();
}

LoadedModule::LoadedModule(ptx::Module module, sass::Cubin cubin, DeviceMemory& memory)
    : module_(std::move(module)),
      memory_(memory),
      machine_(std::make_unique<SassModule>(std::move(cubin), memory)) {
  read_machine_variables();
  // Variables that no kernel uses are not in the SASS; the host may yet.
  placement_.variables.assign(module_.variables.size(), 0);
  for (std::size_t i = 0; i < module_.variables.size(); ++i) {
    const ptx::Variable& variable = module_.variables[i];
    if (variables_.contains(variable.name)) continue;
    placement_.variables[i] = allocate(variable);
    if (placement_.variables[i] == 0) continue;
    fill(variable, placement_.variables[i]);
    variables_.emplace(std::string(variable.name), Placed{placement_.variables[i], variable.size});
  }
  read_signatures();
}

LoadedModule::LoadedModule(sass::Cubin cubin, DeviceMemory& memory)
    : memory_(memory), machine_(std::make_unique<SassModule>(std::move(cubin), memory)) {
  read_machine_variables();
  const auto& functions = machine_->cubin().functions;
  for (std::uint32_t i = 0; i < functions.size(); ++i)
    if (functions[i].is_kernel)
      signatures_[i] = {functions[i].name, machine_parameters(functions[i]), functions[i].required_threads,
                        functions[i].maximum_threads};
  for (const auto& [id, signature] : signatures_) kernels_.try_emplace(signature.name, id);
}

void LoadedModule::read_machine_variables() {
  for (const SassModule::Variable& variable : machine_->variables())
    variables_.try_emplace(variable.name, Placed{variable.address, variable.bytes});
  for (const SassModule::Variable& managed : machine_->managed())
    managed_.push_back({managed.address, managed.bytes});
}

void LoadedModule::read_signatures() {
  for (std::uint32_t i = 0; i < module_.functions.size(); ++i) {
    const ptx::Function& function = module_.functions[i];
    if (!function.is_entry || !function.has_body) continue;
    signatures_[i] = {std::string(function.name), kernel_parameters(module_, i),
                      std::to_array(function.required_threads), std::to_array(function.maximum_threads)};
  }
  for (const auto& [id, signature] : signatures_) kernels_.try_emplace(signature.name, id);
}

LoadedModule::~LoadedModule() {
  for (std::uint64_t address : allocations_) memory_.free(address);
}

std::uint64_t LoadedModule::allocate(const ptx::Variable& variable) {
  if (!has_memory(variable)) return 0;
  allocations_.push_back(
      memory_.allocate(variable.size, "variable " + std::string(variable.name),
                       variable.managed ? DeviceMemory::kManagedAlignment : DeviceMemory::kAlignment));
  if (variable.managed) managed_.push_back({allocations_.back(), variable.size});
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
  const auto found = kernels_.find(name);
  return found == kernels_.end() ? std::nullopt : std::optional(found->second);
}

// SASS names lines of the PTX that it was made from; that PTX knows what stands there, and the lines
// of the source.
void LoadedModule::name_lines(Program& program) {
  if (lines_.empty())
    for (const ptx::Function& function : module_.functions)
      for (const ptx::Instruction& instruction : function.instructions)
        lines_.try_emplace(instruction.where.line, &instruction);
  if (lines_.empty()) return;
  program.files = module_.files;
  for (Code& code : program.codes)
    for (OpInfo& info : code.infos) {
      const auto found = lines_.find(info.where.line);
      if (found == lines_.end()) continue;
      info.source = found->second->source;
      std::string& text = program.ptx_texts[info.where.line];
      if (!text.empty()) continue;
      text = found->second->opcode;
      for (std::string_view modifier : module_.modifiers_of(*found->second))
        text.append(".").append(modifier);
    }
}

KernelAttributes LoadedModule::attributes(std::uint32_t kernel) {
  const sass::CubinFunction* function =
      machine_ == nullptr ? nullptr : machine_->kernel(signatures_.at(kernel).name);
  if (function != nullptr)
    return {function->shared_bytes, function->parameter_bytes, function->registers,
            std::max(function->stack_bytes.value_or(0), function->frame_bytes)};
  const Program& decoded = program(kernel);
  return {decoded.static_shared_bytes, decoded.parameter_bytes, decoded.registers,
          decoded.codes[decoded.kernel].local_bytes};
}

const Program& LoadedModule::program(std::uint32_t kernel, bool reordered) {
  const auto key = std::pair(kernel, reordered && machine_ == nullptr);
  const auto found = programs_.find(key);
  if (found != programs_.end()) return found->second;
  if (machine_ == nullptr)
    return programs_.emplace(key, decode(module_, kernel, placement_, reordered)).first->second;
  const KernelSignature& signature = signatures_.at(kernel);
  Program program;
  if (const sass::CubinFunction* function = machine_->kernel(signature.name))
    program = machine_->program(*function);
  else
    program.problems.push_back({signature.name, "", "the SASS has no such kernel", {}});
  if (program.codes.empty()) program.codes.emplace_back();
  name_lines(program);
  if (kernel < module_.functions.size() && module_.functions[kernel].is_entry)
    program.cross_cta_reads = find_cross_cta_reads(
        module_, kernel, reachable_functions(module_, kernel),
        [&](std::uint32_t function, std::uint32_t variable) -> DeviceMemory::Range {
          if (function != ptx::kNone) return {};
          const auto placed = this->variable(module_.variables[variable].name);
          return placed ? DeviceMemory::Range{placed->address, placed->bytes} : DeviceMemory::Range{};
        });
  else
    program.cross_cta_reads = find_sass_cross_cta_reads(program, memory_);
  return programs_.emplace(key, std::move(program)).first->second;
}

std::optional<LoadedModule::Placed> LoadedModule::variable(std::string_view name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> LoadedModule::variables() const {
  std::vector<std::string> names;
  for (const auto& [name, placed] : variables_) names.push_back(name);
  return names;
}

LoadedModule& Device::load(ptx::Module module) {
  modules_.push_back(std::make_unique<LoadedModule>(std::move(module), memory));
  return *modules_.back();
}

LoadedModule& Device::load(ptx::Module module, sass::Cubin cubin) {
  modules_.push_back(std::make_unique<LoadedModule>(std::move(module), std::move(cubin), memory));
  return *modules_.back();
}

LoadedModule& Device::load(sass::Cubin cubin) {
  modules_.push_back(std::make_unique<LoadedModule>(std::move(cubin), memory));
  return *modules_.back();
}

LaunchResult Device::launch(LoadedModule& module, std::uint32_t kernel, const LaunchRequest& request) {
  return run_grid(prepare(module, kernel, request));
}

Launch Device::prepare(LoadedModule& module, std::uint32_t kernel, const LaunchRequest& request) {
  const Program& program = module.program(kernel, request.reordered);
  const KernelSignature& function = module.signature(kernel);
  if (!program.problems.empty())
    throw BadLaunch(LaunchProblem::unsupported_instruction,
                    "kernel " + function.name + " cannot be executed");
  std::uint64_t threads = 1;
  for (unsigned axis = 0; axis < 3; ++axis) {
    threads *= request.block[axis];
    if (request.block[axis] == 0 || request.block[axis] > kMaximumBlock[axis] || threads > kMaximumThreads)
      throw BadLaunch(
          LaunchProblem::block_shape,
          "a block of this shape is not possible: at most 1024 threads in all, and at most 1024 x 1024 x 64");
    if (request.grid[axis] == 0 || request.grid[axis] > kMaximumGrid[axis])
      throw BadLaunch(
          LaunchProblem::grid_shape,
          "a grid of this shape is not possible: at most 2147483647 x 65535 x 65535 blocks, at least one");
    if (function.required_threads[axis] != 0 && request.block[axis] != function.required_threads[axis])
      throw BadLaunch(LaunchProblem::required_threads,
                      "the kernel requires blocks of " + std::to_string(function.required_threads[0]) +
                          " x " + std::to_string(std::max(function.required_threads[1], 1U)) + " x " +
                          std::to_string(std::max(function.required_threads[2], 1U)) + " threads (.reqntid)");
  }
  std::uint64_t most = 1;
  for (std::uint32_t extent : function.maximum_threads) most *= std::max(extent, 1U);
  if (function.maximum_threads[0] != 0 && threads > most)
    throw BadLaunch(LaunchProblem::maximum_threads,
                    "the kernel allows at most " + std::to_string(most) + " threads in a block (.maxntid)");
  if (program.static_shared_bytes + request.dynamic_shared_bytes > kMaximumShared ||
      request.dynamic_shared_bytes > kMaximumShared)
    throw BadLaunch(LaunchProblem::shared_memory,
                    "the block needs " +
                        std::to_string(program.static_shared_bytes + request.dynamic_shared_bytes) +
                        " bytes of shared memory; at most 227 KiB are possible");
  std::uint64_t parameter_bytes = program.parameter_bytes;
  if (!function.parameters.empty())
    parameter_bytes = function.parameters.back().offset + function.parameters.back().size;
  if (request.parameters.size() != parameter_bytes)
    throw BadLaunch(LaunchProblem::parameters,
                    "the kernel takes " + std::to_string(parameter_bytes) + " bytes of parameters");

  Launch launch;
  launch.program = &program;
  launch.memory = &memory;
  launch.textures = &textures;
  launch.grid = request.grid;
  launch.block = request.block;
  launch.dynamic_shared_bytes = request.dynamic_shared_bytes;
  launch.parameters.assign(request.parameters.begin(), request.parameters.end());
  launch.order_matters =
      program.order_matters || program.cross_cta_reads.possible(memory, request.parameters, request.grid);
  launch.threads = request.threads;
  launch.check = request.check;
  launch.maximum_instructions = request.maximum_instructions;
  launch.sequence = ++launches_;
  launch.workspace = request.workspace;
  if (module.is_machine_code()) prepare_banks(launch);
  stop_.store(false, std::memory_order_relaxed);
  launch.stop = &stop_;
  return launch;
}

}  // namespace manyscale::gpu
