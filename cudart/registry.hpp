// SPDX-License-Identifier: Apache-2.0
// The device code of a program: its modules (fat binaries), functions and variables as the compiler's
// start-up code registers them. A module goes to the server when something of it is first used.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "abi.hpp"
#include "wire.hpp"

namespace manyscale::cudart {

// A function as one device sees it.
struct FunctionLayout {
  wire::Function::Answer fields{};
  struct Parameter {
    std::uint32_t offset = 0;
    std::uint32_t bytes = 0;
  };
  std::vector<Parameter> parameters;
  std::uint32_t parameter_bytes = 0;
};

struct Module {
  explicit Module(std::uint32_t number) : number(number) {}

  std::uint32_t number;
  std::uint32_t wrapper =
      1;  // 2: the parts are linked together; 3: the first is the SASS of the others, linked
  std::vector<std::span<const std::byte>> parts;
  std::vector<const void*> stubs, functions, variables;  // keys of what belongs to it
  std::mutex mutex;
  bool loaded = false;
  Error failure = Error::success;
};

// What a launch asks for beside the size of the grid, and on which device.
struct LaunchShape {
  int device = -1;
  Dim3 block;
  std::size_t shared = 0;

  bool operator==(const LaunchShape&) const = default;
};

// A kernel; its address is the handle that programs get (cudaKernel_t, cudaFunction_t).
struct Function {
  Module* module = nullptr;
  std::string name;
  std::uint32_t number = 0;
  std::mutex mutex;
  std::map<int, FunctionLayout> layouts;  // by device
  LaunchShape accepted;                   // of the last launch that the server took
};

struct Variable {
  Module* module = nullptr;
  std::string name;
  std::uint64_t bytes = 0;
  void** managed_pointer = nullptr;               // where the program keeps the address of a managed variable
  std::map<int, wire::Symbol::Answer> addresses;  // by device
};

// A new module from containers that stay where they are.
Module& add_module(std::uint32_t wrapper, std::vector<std::span<const std::byte>> parts);
Function& add_function(Module& module, std::string name, const void* host);
void add_variable(Module& module, std::string name, const void* host, std::uint64_t bytes,
                  void** managed_pointer);
// Forgets a module and what belongs to it, here and at the server.
void remove_module(Module& module);

// The container that begins at an address; empty if there is none.
std::span<const std::byte> container_at(const void* data);

// By the address of the host's stub, or by the handle. Null if there is none.
Function* find_function(const void* function);
// What a function needs on the current device.
Error lay_out(Function& function, const FunctionLayout*& layout);
// Where a variable is on the current device, by its address on the host.
Error find_symbol(const void* host, wire::Symbol::Answer& variable);
// A variable of a module by name.
Error find_symbol(Module& module, const std::string& name, wire::Symbol::Answer& variable);
// Sends a module to the server, if it is not there yet, and tells the program where its managed variables
// are.
Error load_module(Module& module);

}  // namespace manyscale::cudart
