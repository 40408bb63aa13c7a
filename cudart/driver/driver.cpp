// SPDX-License-Identifier: Apache-2.0
// libcuda.so.1: the few functions of the driver that programs of the runtime call too, answered by the
// runtime that the program has loaded. A program that uses the driver alone cannot be simulated.
#include <dlfcn.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <iterator>
#include <string>

namespace {

// The numbers of CUresult, which for these are those of cudaError_t.
enum Result : int {
  success = 0,
  invalid_value = 1,
  not_initialized = 3,
  invalid_device = 101,
  invalid_context = 201
};

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

// A function of the runtime by name.
template <class... Arguments>
Result runtime(const char* name, Arguments... arguments) {
  using Function = int (*)(Arguments...);
  const auto function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  if (function == nullptr) {
    static bool said = false;
    const std::string text =
        "manyscale: this program uses the CUDA driver without the CUDA runtime, which cannot be simulated\n";
    if (!said && write(STDERR_FILENO, text.data(), text.size()) > 0) said = true;
    return not_initialized;
  }
  return static_cast<Result>(function(arguments...));
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
  const auto function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, "cudaGetErrorName"));
  if (name == nullptr || function == nullptr) return invalid_value;
  *name = function(error);
  return success;
}

int cuGetErrorString(int error, const char** text) {
  using Function = const char* (*)(int);
  const auto function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, "cudaGetErrorString"));
  if (text == nullptr || function == nullptr) return invalid_value;
  *text = function(error);
  return success;
}

}  // extern "C"
