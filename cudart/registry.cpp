// SPDX-License-Identifier: Apache-2.0
#include "registry.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "managed.hpp"
#include "memory.hpp"
#include "process.hpp"

namespace manyscale::cudart {

namespace {

struct Registry {
  std::recursive_mutex mutex;
  std::uint32_t modules_made = 0;
  std::uint32_t functions_made = 0;
  std::unordered_map<Module*, std::unique_ptr<Module>> modules;
  std::unordered_map<const void*, Function*> by_stub;
  std::unordered_map<const void*, std::unique_ptr<Function>> functions;  // by handle
  std::unordered_map<const void*, Variable> variables;
};

Registry& registry() {
  static Registry& only = *new Registry;
  return only;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

Error send_parts(const Module& module) {
  std::size_t total = 0;
  std::vector<std::uint64_t> sizes;
  for (const auto part : module.parts) {
    sizes.push_back(part.size());
    total += part.size();
  }
  if (const Error error = connect_thread(); error != Error::success) return error;
  std::byte* to = connection().staging(total);
  if (to == nullptr) return Error::memory_allocation;
  for (const auto part : module.parts) to = std::copy(part.begin(), part.end(), to);
  return call<wire::LoadModule>({module.number, module.wrapper, static_cast<std::uint32_t>(sizes.size())},
                                nullptr, std::as_bytes(std::span(sizes)), nullptr, total);
}

Error ask_symbol(Module& module, const std::string& name, wire::Symbol::Answer& found_variable) {
  return call<wire::Symbol>({module.number}, &found_variable, bytes_of(name));
}

// Variables are managed memory from the program's first use of the module on.
Error allocate_managed_variables(Module& module) {
  Registry& known = registry();
  std::vector<std::pair<std::string, void**>> wanted;
  {
    const std::lock_guard lock(known.mutex);
    for (auto& [host, variable] : known.variables)
      if (variable.module == &module && variable.managed_pointer != nullptr)
        wanted.emplace_back(variable.name, variable.managed_pointer);
  }
  for (auto& [name, pointer] : wanted) {
    wire::Symbol::Answer found_variable{};
    if (const Error error = ask_symbol(module, name, found_variable); error != Error::success) return error;
    enter_allocation({found_variable.address, found_variable.bytes, found_variable.bytes, MemoryKind::managed,
                      current_device(), 0, nullptr, nullptr});
    add_managed(found_variable.address, found_variable.bytes);
    *pointer = reinterpret_cast<void*>(found_variable.address);
  }
  return Error::success;
}

}  // namespace

std::span<const std::byte> container_at(const void* data) {
  struct {
    std::uint32_t magic;
    std::uint16_t version, header_bytes;
    std::uint64_t bytes;
  } header{};
  static_assert(sizeof header == 16);
  if (data == nullptr) return {};
  std::memcpy(&header, data, sizeof header);
  if (header.magic != 0xBA55ED50) return {};
  return {static_cast<const std::byte*>(data), header.header_bytes + header.bytes};
}

Module& add_module(std::uint32_t wrapper, std::vector<std::span<const std::byte>> parts) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  auto made = std::make_unique<Module>(++known.modules_made);
  made->wrapper = wrapper;
  made->parts = std::move(parts);
  Module* module = made.get();
  known.modules.emplace(module, std::move(made));
  return *module;
}

Function& add_function(Module& module, std::string name, const void* host) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  auto made = std::make_unique<Function>();
  made->module = &module;
  made->name = std::move(name);
  made->number = ++known.functions_made;
  Function* function = made.get();
  known.functions.emplace(function, std::move(made));
  module.functions.push_back(function);
  if (host != nullptr) {
    known.by_stub[host] = function;
    module.stubs.push_back(host);
  }
  return *function;
}

void add_variable(Module& module, std::string name, const void* host, std::uint64_t bytes,
                  void** managed_pointer) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  known.variables.insert_or_assign(host, Variable{&module, std::move(name), bytes, managed_pointer, {}});
  module.variables.push_back(host);
}

void remove_module(Module& module) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  if (module.loaded) call<wire::UnloadModule>({module.number});
  // A library such as PyTorch's has a thousand modules and some ten thousand kernels: nothing is searched.
  for (const void* stub : module.stubs)
    if (const auto found = known.by_stub.find(stub);
        found != known.by_stub.end() && found->second->module == &module)
      known.by_stub.erase(found);
  for (const void* host : module.variables)
    if (const auto found = known.variables.find(host);
        found != known.variables.end() && found->second.module == &module)
      known.variables.erase(found);
  for (const void* function : module.functions) known.functions.erase(function);
  known.modules.erase(&module);
}

Function* find_function(const void* function) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  if (const auto found = known.by_stub.find(function); found != known.by_stub.end()) return found->second;
  const auto found = known.functions.find(function);
  return found == known.functions.end() ? nullptr : found->second.get();
}

Error load_module(Module& module) {
  {
    const std::lock_guard lock(module.mutex);
    if (module.failure != Error::success) return module.failure;
    if (module.loaded) return Error::success;
    if (module.parts.empty()) {
      report_once(
          "a fat binary of the program could not be read: it was made by another compiler than nvcc 11 to "
          "13");
      return module.failure = Error::no_kernel_image;
    }
    if (const Error error = send_parts(module); error != Error::success) {
      if (connection().is_open()) module.failure = error;
      return error;
    }
    module.loaded = true;
  }
  return allocate_managed_variables(module);
}

Error lay_out(Function& function, const FunctionLayout*& layout) {
  const int device = current_device();
  const std::lock_guard lock(function.mutex);
  if (const auto found = function.layouts.find(device); found != function.layouts.end()) {
    layout = &found->second;
    return Error::success;
  }
  if (const Error error = load_module(*function.module); error != Error::success) return error;
  FunctionLayout made;
  std::vector<std::byte> tail;
  const Error error = call<wire::Function>({function.number, function.module->number}, &made.fields,
                                           bytes_of(function.name), &tail);
  if (error != Error::success) return error;
  made.parameters.resize(std::min<std::size_t>(made.fields.parameters, tail.size() / 8));
  if (!made.parameters.empty()) std::memcpy(made.parameters.data(), tail.data(), made.parameters.size() * 8);
  for (const auto& parameter : made.parameters)
    made.parameter_bytes = std::max(made.parameter_bytes, parameter.offset + parameter.bytes);
  layout = &(function.layouts[device] = std::move(made));
  return Error::success;
}

Error find_symbol(const void* host, wire::Symbol::Answer& found_variable) {
  Registry& known = registry();
  Module* module = nullptr;
  std::string name;
  {
    const std::lock_guard lock(known.mutex);
    auto found = known.variables.find(host);
    if (found == known.variables.end()) {
      // A managed variable is also known by where it is.
      found = std::ranges::find_if(known.variables, [&](const auto& entry) {
        return entry.second.managed_pointer != nullptr && *entry.second.managed_pointer == host;
      });
    }
    if (found == known.variables.end()) return Error::invalid_symbol;
    const Variable& variable = found->second;
    if (const auto cached = variable.addresses.find(current_device()); cached != variable.addresses.end()) {
      found_variable = cached->second;
      return Error::success;
    }
    module = variable.module;
    name = variable.name;
  }
  if (const Error error = find_symbol(*module, name, found_variable); error != Error::success) return error;
  const std::lock_guard lock(known.mutex);
  if (const auto found = known.variables.find(host); found != known.variables.end())
    found->second.addresses[current_device()] = found_variable;
  return Error::success;
}

Error find_symbol(Module& module, const std::string& name, wire::Symbol::Answer& found_variable) {
  if (const Error error = load_module(module); error != Error::success) return error;
  return ask_symbol(module, name, found_variable);
}

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

namespace {

// What the compiler's start-up code hands over: where a fat binary is.
struct FatbinWrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const void* data;
  const void* const* linked;  // of version 2: containers of all translation units, ended by null
};

constexpr std::uint32_t kWrapperMagic = 0x466243b1;

Module& module_of(void** handle) {
  return *reinterpret_cast<Module*>(handle);
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* data) {
  const auto* wrapper = static_cast<const FatbinWrapper*>(data);
  std::vector<std::span<const std::byte>> parts;
  std::uint32_t version = 1;
  auto add = [&](const void* container) {
    // A container of 16 bytes holds nothing.
    if (const auto bytes = container_at(container); bytes.size() > 16) parts.push_back(bytes);
  };
  if (wrapper != nullptr && wrapper->magic == kWrapperMagic) {
    if (wrapper->version == 2 && wrapper->linked != nullptr) {
      add(wrapper->data);
      version = parts.empty() ? 2 : 3;
      for (const void* const* next = wrapper->linked; *next != nullptr; ++next) add(*next);
    }
    if (parts.empty()) {
      version = 1;
      add(wrapper->data);
    }
  }
  return reinterpret_cast<void**>(&add_module(version, std::move(parts)));
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** handle) {
  if (handle != nullptr) remove_module(module_of(handle));
}

void __cudaRegisterFunction(void** handle, const char* stub, char*, const char* name, int, void*, void*,
                            Dim3*, Dim3*, int*) {
  add_function(module_of(handle), name, stub);
}

void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, std::size_t bytes, int, int) {
  add_variable(module_of(handle), name, host, bytes, nullptr);
}

void __cudaRegisterManagedVar(void** handle, void** pointer, char*, const char* name, int, std::size_t bytes,
                              int, int) {
  add_variable(module_of(handle), name, pointer, bytes, pointer);
}

void __cudaRegisterHostVar(void**, const char*, char*, std::size_t) {}

char __cudaInitModule(void** handle) {
  return finish(load_module(module_of(handle))) == Error::success ? 1 : 0;
}

Error __cudaGetKernel(Function** kernel, const void* stub) {
  *kernel = find_function(stub);
  return finish(*kernel != nullptr ? Error::success : Error::invalid_device_function);
}

Error cudaGetKernel(Function** kernel, const void* stub) {
  if (kernel == nullptr) return finish(Error::invalid_value);
  return __cudaGetKernel(kernel, stub);
}

Error cudaGetFuncBySymbol(Function** function, const void* stub) {
  return cudaGetKernel(function, stub);
}

Error cudaGetSymbolAddress(void** pointer, const void* symbol) {
  wire::Symbol::Answer found_variable{};
  const Error error = find_symbol(symbol, found_variable);
  if (error == Error::success) *pointer = reinterpret_cast<void*>(found_variable.address);
  return finish(error);
}

Error cudaGetSymbolSize(std::size_t* bytes, const void* symbol) {
  wire::Symbol::Answer found_variable{};
  const Error error = find_symbol(symbol, found_variable);
  if (error == Error::success) *bytes = found_variable.bytes;
  return finish(error);
}

}  // extern "C"
