// SPDX-License-Identifier: Apache-2.0
// Attributes of kernels, and their occupancy.
#include <algorithm>
#include <cstring>

#include "process.hpp"
#include "registry.hpp"

namespace manyscale::cudart {

namespace {

constexpr int kDynamicShared = 8;
constexpr int kCarveout = 9;

// Does something with a function on the current device.
template <class Action>
Error with_function(const void* handle, Action action) {
  Function* function = find_function(handle);
  if (function == nullptr) return Error::invalid_device_function;
  const FunctionLayout* layout = nullptr;
  if (const Error error = lay_out(*function, layout); error != Error::success) return error;
  return action(*function, *layout);
}

Error set_attribute(const void* handle, int attribute, int value) {
  if (attribute < kDynamicShared || attribute > 15) return Error::invalid_value;
  return with_function(handle, [&](Function& function, const FunctionLayout& layout) {
    const Error error = call<wire::FunctionAttribute>({function.number, attribute, value});
    if (error != Error::success) return error;
    {
      const std::lock_guard lock(function.mutex);
      function.accepted = {};  // the server may think otherwise from now on
    }
    auto& fields = const_cast<wire::Function::Answer&>(layout.fields);
    if (attribute == kDynamicShared) fields.dynamic_shared = value;
    if (attribute == kCarveout) fields.carveout = value;
    return Error::success;
  });
}

Error occupancy(int* blocks, const void* handle, int threads, std::size_t shared) {
  if (blocks == nullptr || threads <= 0) return Error::invalid_value;
  return with_function(handle, [&](Function& function, const FunctionLayout&) {
    wire::Occupancy::Answer answer{};
    const Error error =
        call<wire::Occupancy>({function.number, static_cast<std::uint32_t>(threads), shared}, &answer);
    if (error == Error::success) *blocks = static_cast<int>(answer.blocks);
    return error;
  });
}

// The most dynamic shared memory with which so many blocks still fit.
Error available_shared(std::size_t* bytes, const void* handle, int blocks, int threads) {
  if (bytes == nullptr || blocks <= 0) return Error::invalid_value;
  constexpr std::size_t step = 128;
  std::size_t fits = 0;
  std::size_t too_much = (std::size_t{1} << 18) / step;
  while (too_much - fits > 1) {
    const std::size_t middle = (fits + too_much) / 2;
    int found = 0;
    if (const Error error = occupancy(&found, handle, threads, middle * step); error != Error::success)
      return error;
    (found >= blocks ? fits : too_much) = middle;
  }
  *bytes = fits * step;
  return Error::success;
}

}  // namespace

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

extern "C" {

Error cudaFuncGetAttributes(FunctionAttributes* attributes, const void* handle) {
  if (attributes == nullptr) return finish(Error::invalid_value);
  return finish(with_function(handle, [&](Function&, const FunctionLayout& layout) {
    const auto& fields = layout.fields;
    if (kRuntimeVersion >= 12000) std::memset(static_cast<void*>(attributes), 0, kFunctionAttributesBytes);
    *attributes = {fields.shared,
                   fields.constant,
                   fields.local,
                   static_cast<int>(fields.threads),
                   static_cast<int>(fields.registers),
                   static_cast<int>(fields.ptx_version),
                   static_cast<int>(fields.binary_version),
                   static_cast<int>(fields.cache_mode),
                   fields.dynamic_shared,
                   fields.carveout};
    return Error::success;
  }));
}

Error cudaFuncSetAttribute(const void* handle, int attribute, int value) {
  return finish(set_attribute(handle, attribute, value));
}

Error cudaKernelSetAttributeForDevice(Function* kernel, int attribute, int value, int device) {
  const int before = current_device();
  set_current_device(device);
  const Error error = set_attribute(kernel, attribute, value);
  set_current_device(before);
  return finish(error);
}

Error cudaFuncSetCacheConfig(const void* handle, int) {
  // A preference, which the simulated devices take from the shared memory that a kernel uses.
  return finish(with_function(handle, [](Function&, const FunctionLayout&) { return Error::success; }));
}

Error cudaFuncSetSharedMemConfig(const void* handle, int) {
  return finish(with_function(handle, [](Function&, const FunctionLayout&) { return Error::success; }));
}

Error cudaFuncGetName(const char** name, const void* handle) {
  const Function* function = find_function(handle);
  if (name == nullptr) return finish(Error::invalid_value);
  if (function == nullptr) return finish(Error::invalid_device_function);
  *name = function->name.c_str();
  return finish(Error::success);
}

Error cudaFuncGetParamInfo(const void* handle, std::size_t number, std::size_t* offset, std::size_t* bytes) {
  return finish(with_function(handle, [&](Function&, const FunctionLayout& layout) {
    if (number >= layout.parameters.size()) return Error::invalid_value;
    if (offset != nullptr) *offset = layout.parameters[number].offset;
    if (bytes != nullptr) *bytes = layout.parameters[number].bytes;
    return Error::success;
  }));
}

Error cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* handle, int threads,
                                                    std::size_t shared) {
  return finish(occupancy(blocks, handle, threads, shared));
}

Error cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* handle, int threads,
                                                             std::size_t shared, unsigned) {
  return finish(occupancy(blocks, handle, threads, shared));
}

Error cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, const void* handle, int blocks,
                                                int threads) {
  return finish(available_shared(bytes, handle, blocks, threads));
}

}  // extern "C"
