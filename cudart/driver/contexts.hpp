// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime_calls.hpp"

namespace manyscale::cuda_driver {

// A context is its device: the runtime has one for each.
struct Context {
  int device;
};

// The context of a device; null if there can be no such device.
Context* context_of(int device);
// The device of a context, or the current one.
int device_of(const Context* context);

// Does something while another device is the current one.
template <class Action>
Result on_device(int device, Action action) {
  int before = 0;
  if (const Result error = runtime("cudaGetDevice", &before); error != success) return error;
  Result error = runtime("cudaSetDevice", device);
  if (error == success) error = action();
  runtime("cudaSetDevice", before);
  return error;
}

}  // namespace manyscale::cuda_driver
