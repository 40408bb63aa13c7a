// SPDX-License-Identifier: Apache-2.0
// Contexts. A device has one, its primary context, which all others that a program creates are too.
#include <cstddef>
#include <iterator>

#include "contexts.hpp"

using namespace manyscale::cuda_driver;

namespace {

Result current_device(int& device) {
  return runtime("cudaGetDevice", &device);
}

struct PushedContexts {
  int devices[16];
  int count = 0;
};
thread_local PushedContexts pushed;

}  // namespace

namespace manyscale::cuda_driver {

Context* context_of(int device) {
  constexpr int kDevices = 64;
  static Context contexts[kDevices];
  if (device < 0 || device >= kDevices) return nullptr;
  contexts[device].device = device;
  return &contexts[device];
}

int device_of(const Context* context) {
  int device = 0;
  if (context != nullptr) return context->device;
  return current_device(device) == success ? device : 0;
}

}  // namespace manyscale::cuda_driver

extern "C" {

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
  if (context == nullptr || pushed.count == std::ssize(pushed.devices)) return invalid_context;
  if (const Result error = current_device(device); error != success) return error;
  pushed.devices[pushed.count++] = device;
  return runtime("cudaSetDevice", context->device);
}

int cuCtxPopCurrent_v2(Context** context) {
  int device = 0;
  if (pushed.count == 0) return invalid_context;
  if (const Result error = current_device(device); error != success) return error;
  if (context != nullptr) *context = context_of(device);
  return runtime("cudaSetDevice", pushed.devices[--pushed.count]);
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

// Others than the first take what a context cannot be here: parts of a device.
int cuCtxCreate(Context** context, unsigned flags, int device) {
  return cuCtxCreate_v2(context, flags, device);
}

int cuCtxCreate_v3(Context** context, void*, int affinities, unsigned flags, int device) {
  return affinities != 0 ? not_supported : cuCtxCreate_v2(context, flags, device);
}

int cuCtxCreate_v4(Context** context, const void* parameters, unsigned flags, int device) {
  return parameters != nullptr ? not_supported : cuCtxCreate_v2(context, flags, device);
}

int cuCtxDestroy(Context* context) {
  return cuCtxDestroy_v2(context);
}

// A device has one context, however often it is used.
int cuCtxAttach(Context** context, unsigned flags) {
  return flags != 0 ? invalid_value : cuCtxGetCurrent(context);
}

int cuCtxDetach(Context* context) {
  return cuCtxDestroy_v2(context);
}

int cuCtxPushCurrent(Context* context) {
  return cuCtxPushCurrent_v2(context);
}

int cuCtxPopCurrent(Context** context) {
  return cuCtxPopCurrent_v2(context);
}

int cuCtxGetDevice_v2(int* device, Context* context) {
  if (device == nullptr) return invalid_value;
  *device = device_of(context);
  return success;
}

int cuCtxSynchronize_v2(Context* context) {
  return on_device(device_of(context), [] { return runtime("cudaDeviceSynchronize"); });
}

int cuCtxGetApiVersion(Context*, unsigned* version) {
  constexpr unsigned since_cuda_3_2 = 3020;
  if (version == nullptr) return invalid_value;
  *version = since_cuda_3_2;
  return success;
}

int cuCtxGetId(Context* context, unsigned long long* number) {
  if (number == nullptr) return invalid_value;
  *number = static_cast<unsigned long long>(device_of(context)) + 1;
  return success;
}

int cuCtxGetFlags(unsigned* flags) {
  return runtime("cudaGetDeviceFlags", flags);
}

int cuCtxSetFlags(unsigned flags) {
  return runtime("cudaSetDeviceFlags", flags);
}

int cuCtxEnablePeerAccess(Context* peer, unsigned flags) {
  return peer == nullptr ? invalid_context : runtime("cudaDeviceEnablePeerAccess", peer->device, flags);
}

int cuCtxDisablePeerAccess(Context* peer) {
  return peer == nullptr ? invalid_context : runtime("cudaDeviceDisablePeerAccess", peer->device);
}

int cuDevicePrimaryCtxRelease(int device) {
  return cuDevicePrimaryCtxRelease_v2(device);
}

int cuDevicePrimaryCtxReset_v2(int device) {
  return on_device(device, [] { return runtime("cudaDeviceReset"); });
}

int cuDevicePrimaryCtxReset(int device) {
  return cuDevicePrimaryCtxReset_v2(device);
}

int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) {
  return on_device(device, [&] { return runtime("cudaSetDeviceFlags", flags); });
}

int cuDevicePrimaryCtxSetFlags(int device, unsigned flags) {
  return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  if (flags == nullptr || active == nullptr || context_of(device) == nullptr) return invalid_value;
  *active = 1;
  return on_device(device, [&] { return runtime("cudaGetDeviceFlags", flags); });
}

}  // extern "C"
