// SPDX-License-Identifier: Apache-2.0
// A device that executes kernels without regard to time: its memory, its textures and the modules loaded on
// it.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gpu/exec/checks.hpp"
#include "gpu/exec/device_memory.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/program.hpp"
#include "gpu/exec/sass/sass_module.hpp"
#include "gpu/exec/texture.hpp"
#include "gpu/ptx/module.hpp"

namespace manyscale::gpu {

// Threads of a block, on every GPU of the supported generations.
inline constexpr std::uint64_t kMaximumThreads = 1024;

// What a kernel says of itself to those who launch it.
struct KernelSignature {
  std::string name;
  std::vector<KernelParameter> parameters;
  std::array<std::uint32_t, 3> required_threads{};  // zeros: it does not say
  std::array<std::uint32_t, 3> maximum_threads{};
};

// What a kernel needs.
struct KernelAttributes {
  std::uint64_t static_shared_bytes = 0;
  std::uint64_t parameter_bytes = 0;
  std::uint32_t registers = 0;  // of a thread; 0 for PTX
  std::uint32_t local_bytes = 0;
};

// A module whose variables have addresses in a device's memory: PTX, SASS, or SASS that was
// made of PTX and has names and types from there.
class LoadedModule {
 public:
  LoadedModule(ptx::Module module, DeviceMemory& memory);
  LoadedModule(ptx::Module module, sass::Cubin cubin, DeviceMemory& memory);
  LoadedModule(sass::Cubin cubin, DeviceMemory& memory);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  bool is_machine_code() const { return machine_ != nullptr; }
  // By number: kernels of PTX have that of their function.
  const KernelSignature& signature(std::uint32_t kernel) const { return signatures_.at(kernel); }
  std::optional<std::uint32_t> kernel(std::string_view name) const;
  // Of SASS, they are known without decoding it: libraries ask for those of many kernels, and launch few.
  KernelAttributes attributes(std::uint32_t kernel);
  // A kernel ready to run; decoded when it is first asked for.
  const Program& program(std::uint32_t kernel, bool reordered = false);

  struct Placed {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
  };
  std::optional<Placed> variable(std::string_view name) const;
  std::vector<std::string> variables() const;
  // Memory of variables that host and device share.
  const std::vector<Placed>& managed() const { return managed_; }

 private:
  void read_machine_variables();
  void name_lines(Program& program);
  void read_signatures();
  std::uint64_t allocate(const ptx::Variable& variable);
  void fill(const ptx::Variable& variable, std::uint64_t address);

  ptx::Module module_;
  DeviceMemory& memory_;
  std::unique_ptr<SassModule> machine_;
  std::map<std::uint32_t, KernelSignature> signatures_;
  std::unordered_map<std::string_view, std::uint32_t> kernels_;       // by the names in the signatures
  std::unordered_map<std::uint32_t, const ptx::Instruction*> lines_;  // of PTX; filled when first needed
  std::map<std::string, Placed, std::less<>> variables_;
  std::vector<Placed> managed_;
  Placement placement_;
  std::vector<std::uint64_t> allocations_;
  std::map<std::pair<std::uint32_t, bool>, Program> programs_;
};

struct LaunchRequest {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint64_t dynamic_shared_bytes = 0;
  std::span<const std::byte> parameters;
  unsigned threads = 1;
  Checks check;
  std::uint64_t maximum_instructions = 0;
  bool reordered = false;       // run the program in the order that an assembler would choose
  std::uint64_t workspace = 0;  // address of zeroed memory, if the CTAs may wait for each other at a barrier
};

// Why a device cannot take a launch.
enum class LaunchProblem : std::uint8_t {
  unsupported_instruction,
  block_shape,
  grid_shape,
  required_threads,  // .reqntid
  maximum_threads,   // .maxntid
  shared_memory,
  parameters,
  resources,  // of an SM: registers, threads, shared memory
};

// The request is not one that a device can take: too many threads, too much shared memory, parameters of a
// wrong size.
struct BadLaunch : std::runtime_error {
  BadLaunch(LaunchProblem problem, const std::string& message)
      : std::runtime_error(message), problem(problem) {}
  LaunchProblem problem;
};

class Device {
 public:
  Device() : Device(std::make_shared<DeviceMemory>()) {}
  // A device whose pointers are valid on others too: they have one memory.
  explicit Device(std::shared_ptr<DeviceMemory> shared) : memory(*shared), shared_(std::move(shared)) {}

  DeviceMemory& memory;
  TextureTable textures;

  LoadedModule& load(ptx::Module module);
  LoadedModule& load(ptx::Module module, sass::Cubin cubin);
  LoadedModule& load(sass::Cubin cubin);
  // Runs a kernel to its end. Throws KernelFault, BadLaunch or Stopped.
  LaunchResult launch(LoadedModule& module, std::uint32_t kernel, const LaunchRequest& request);
  // Checks a request and makes everything ready to run it. Throws BadLaunch.
  Launch prepare(LoadedModule& module, std::uint32_t kernel, const LaunchRequest& request);
  // Its memory, to be given to another device.
  const std::shared_ptr<DeviceMemory>& shared_memory() const { return shared_; }
  // From another thread: ends the kernel that runs.
  void interrupt() { stop_.store(true, std::memory_order_relaxed); }

 private:
  std::shared_ptr<DeviceMemory> shared_;  // before the modules, which free their variables when they go
  std::vector<std::unique_ptr<LoadedModule>> modules_;
  std::uint64_t launches_ = 0;
  std::atomic<bool> stop_{false};
};

}  // namespace manyscale::gpu
