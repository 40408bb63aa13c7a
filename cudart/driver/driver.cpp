// SPDX-License-Identifier: Apache-2.0
// libcuda.so.1: devices and contexts of the driver's interface, answered by the runtime.
#include "runtime_calls.hpp"

#include <cstddef>
#include <cstdio>
#include <iterator>

using namespace manyscale::cuda_driver;

namespace {

// A context is its device: the runtime has one for each.
struct Context {
  int device;
};

constexpr int kDevices = 64;

Context* context_of(int device) {
  static Context contexts[kDevices];
  if (device < 0 || device >= kDevices) return nullptr;
  contexts[device].device = device;
  return &contexts[device];
}

Result current_device(int& device) {
  return runtime("cudaGetDevice", &device);
}

thread_local int pushed[16];
thread_local int pushed_count = 0;

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
  // The name stands first in the properties, which are less than 2 KiB in all versions.
  alignas(8) char properties[2048] = {};
  if (name == nullptr || length <= 0) return invalid_value;
  if (const Result error = runtime("cudaGetDeviceProperties", static_cast<void*>(properties), device);
      error != success)
    return error;
  std::snprintf(name, static_cast<std::size_t>(length), "%s", properties);
  return success;
}

int cuDevicePrimaryCtxRetain(Context** context, int device) {
  if (context == nullptr || context_of(device) == nullptr) return invalid_value;
  *context = context_of(device);
  return success;
}

int cuDevicePrimaryCtxRelease_v2(int) {
  return success;
}

int cuCtxGetDevice(int* device) {
  return device == nullptr ? invalid_value : current_device(*device);
}

int cuCtxGetCurrent(Context** context) {
  int device = 0;
  const Result error = current_device(device);
  if (context == nullptr) return invalid_value;
  if (error == success) *context = context_of(device);
  return error;
}

int cuCtxSetCurrent(Context* context) {
  return context == nullptr ? success : runtime("cudaSetDevice", context->device);
}

int cuCtxPushCurrent_v2(Context* context) {
  int device = 0;
  if (context == nullptr || pushed_count == std::ssize(pushed)) return invalid_context;
  if (const Result error = current_device(device); error != success) return error;
  pushed[pushed_count++] = device;
  return runtime("cudaSetDevice", context->device);
}

int cuCtxPopCurrent_v2(Context** context) {
  int device = 0;
  if (pushed_count == 0) return invalid_context;
  if (const Result error = current_device(device); error != success) return error;
  if (context != nullptr) *context = context_of(device);
  return runtime("cudaSetDevice", pushed[--pushed_count]);
}

// A new context is the one that the device has.
int cuCtxCreate_v2(Context** context, unsigned, int device) {
  if (context == nullptr || context_of(device) == nullptr) return invalid_value;
  const Result error = runtime("cudaSetDevice", device);
  if (error == success) *context = context_of(device);
  return error;
}

int cuCtxDestroy_v2(Context* context) {
  return context == nullptr ? invalid_context : success;
}

int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  int before = 0;
  std::size_t free = 0;
  if (bytes == nullptr) return invalid_value;
  if (const Result error = current_device(before); error != success) return error;
  Result error = runtime("cudaSetDevice", device);
  if (error == success) error = runtime("cudaMemGetInfo", &free, bytes);
  runtime("cudaSetDevice", before);
  return error;
}

int cuDeviceComputeCapability(int* major, int* minor, int device) {
  constexpr int of_major = 75, of_minor = 76;
  const Result error = runtime("cudaDeviceGetAttribute", major, of_major, device);
  return error == success ? runtime("cudaDeviceGetAttribute", minor, of_minor, device) : error;
}

int cuCtxSynchronize() {
  return runtime("cudaDeviceSynchronize");
}

int cuStreamGetCtx(void* stream, Context** context) {
  int device = 0;
  if (context == nullptr) return invalid_value;
  const Result error = runtime("cudaStreamGetDevice", stream, &device);
  if (error == success) *context = context_of(device);
  return error;
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
