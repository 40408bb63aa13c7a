// SPDX-License-Identifier: Apache-2.0
// A file of SASS on a device: its variables have addresses in memory, its functions in the code
// window, and addresses of both are known.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpu/exec/device_memory.hpp"
#include "gpu/exec/program.hpp"
#include "gpu/exec/sass/decoder.hpp"
#include "gpu/sass/cubin.hpp"

namespace manyscale::gpu {

struct Launch;

class SassModule {
 public:
  SassModule(sass::Cubin cubin, DeviceMemory& memory);
  ~SassModule();
  SassModule(const SassModule&) = delete;
  SassModule& operator=(const SassModule&) = delete;

  const sass::Cubin& cubin() const { return cubin_; }
  const sass::CubinFunction* kernel(std::string_view name) const;

  struct Variable {
    std::string name;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
  };
  const std::vector<Variable>& variables() const { return variables_; }
  // Runs of memory, without names, that have variables which host and device share.
  const std::vector<Variable>& managed() const { return managed_; }

  // What is known of a kernel without its code: parameters, shared memory, constant banks.
  Program outline(const sass::CubinFunction& kernel) const;
  // Why addresses in the code of a function are not known; empty if they are.
  const std::set<std::string>& unresolved(const sass::CubinFunction& function) const;
  // Decodes a kernel.
  Program program(const sass::CubinFunction& kernel) const;

 private:
  void allocate_sections();
  void allocate_functions();
  void relocate();
  void relocate_code(const sass::CubinRelocation& relocation, std::uint64_t address);
  std::uint64_t address_of(const sass::CubinSymbol& symbol) const;
  MachineText text_of(const sass::CubinFunction& function) const;
  void fill_banks(ConstantBanks& banks, const sass::CubinFunction& kernel) const;

  sass::Cubin cubin_;
  DeviceMemory& memory_;
  std::vector<std::uint64_t> allocations_;
  std::map<std::uint32_t, std::uint64_t> data_;                // addresses of sections in memory
  std::map<std::uint32_t, std::uint64_t> functions_;           // offsets of sections in the code window
  std::map<std::uint32_t, std::vector<std::byte>> constants_;  // sections of constants, relocated
  // By the names of kernels: which function they are, and their own sections of constants with the banks.
  std::unordered_map<std::string_view, const sass::CubinFunction*> kernels_;
  std::unordered_map<std::string_view, std::vector<std::pair<unsigned, std::uint32_t>>> banks_;
  std::map<std::uint32_t, std::vector<std::uint64_t>>
      begins_;  // of functions, by section of code, as symbols say
  std::map<std::uint32_t, std::set<std::string>> unresolved_;  // by section of code
  std::vector<Variable> variables_;
  std::vector<Variable> managed_;
};

// The parameters of a kernel as its SASS has them: sizes, but neither types nor names.
std::vector<KernelParameter> machine_parameters(const sass::CubinFunction& kernel);

// Puts into a launch where SASS finds its constant banks; their words are read when it begins.
void prepare_banks(Launch& launch);

}  // namespace manyscale::gpu
