// SPDX-License-Identifier: Apache-2.0
// libcuda.so.1: devices of the driver's interface, answered by the runtime.
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <span>

#include "contexts.hpp"
#include "runtime_calls.hpp"

using namespace manyscale::cuda_driver;

namespace {

Result attribute(int& value, int number, int device) {
  return runtime("cudaDeviceGetAttribute", &value, number, device);
}

// The name of a device stands first in its properties, which are less than 2 KiB in all versions; its UUID
// follows.
constexpr std::size_t kNameBytes = 256, kUuidBytes = 16;

Result describe(std::span<char, 2048> properties, int device) {
  return runtime("cudaGetDeviceProperties", static_cast<void*>(properties.data()), device);
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  int count = 0;
  return runtime("cudaGetDeviceCount", &count);
}

int cuDriverGetVersion(int* version) {
  return runtime("cudaDriverGetVersion", version);
}

int cuDeviceGetCount(int* count) {
  return runtime("cudaGetDeviceCount", count);
}

int cuDeviceGet(int* device, int ordinal) {
  int count = 0;
  if (const Result error = runtime("cudaGetDeviceCount", &count); error != success) return error;
  if (device == nullptr) return invalid_value;
  if (ordinal < 0 || ordinal >= count) return invalid_device;
  *device = ordinal;
  return success;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  return runtime("cudaDeviceGetAttribute", value, attribute, device);
}

int cuDeviceGetName(char* name, int length, int device) {
  alignas(8) char properties[2048] = {};
  if (name == nullptr || length <= 0) return invalid_value;
  if (const Result error = describe(properties, device); error != success) return error;
  std::snprintf(name, static_cast<std::size_t>(length), "%s", properties);
  return success;
}

int cuDeviceGetUuid_v2(void* uuid, int device) {
  alignas(8) char properties[2048] = {};
  if (uuid == nullptr) return invalid_value;
  if (const Result error = describe(properties, device); error != success) return error;
  std::memcpy(uuid, properties + kNameBytes, kUuidBytes);
  return success;
}

int cuDeviceGetUuid(void* uuid, int device) {
  return cuDeviceGetUuid_v2(uuid, device);
}

// CUdevprop, from before there were attributes; they are numbered in its order.
int cuDeviceGetProperties(int* properties, int device) {
  if (properties == nullptr) return invalid_value;
  for (int number = 1; number <= 14; ++number)
    if (const Result error = attribute(properties[number - 1], number, device); error != success)
      return error;
  return success;
}

int cuModuleGetLoadingMode(int* mode) {
  constexpr int lazy = 2;
  if (mode == nullptr) return invalid_value;
  *mode = lazy;
  return success;
}

int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  std::size_t free = 0;
  if (bytes == nullptr) return invalid_value;
  return on_device(device, [&] { return runtime("cudaMemGetInfo", &free, bytes); });
}

int cuDeviceComputeCapability(int* major, int* minor, int device) {
  constexpr int of_major = 75, of_minor = 76;
  if (major == nullptr || minor == nullptr) return invalid_value;
  const Result error = attribute(*major, of_major, device);
  return error == success ? attribute(*minor, of_minor, device) : error;
}

int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return runtime("cudaMemGetInfo", free, total);
}

int cuGetErrorName(int error, const char** name) {
  using Function = const char* (*)(int);
  const auto function = reinterpret_cast<Function>(runtime_function("cudaGetErrorName"));
  if (name == nullptr || function == nullptr) return invalid_value;
  *name = function(error);
  return success;
}

int cuGetErrorString(int error, const char** text) {
  using Function = const char* (*)(int);
  const auto function = reinterpret_cast<Function>(runtime_function("cudaGetErrorString"));
  if (text == nullptr || function == nullptr) return invalid_value;
  *text = function(error);
  return success;
}

}  // extern "C"
