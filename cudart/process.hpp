// SPDX-License-Identifier: Apache-2.0
// The state of a process: the connection of each thread, the shared heap, the devices,
// and the errors that cudaGetLastError reports. Everything begins with the first call that needs a GPU;
// registering programs does not.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "abi.hpp"
#include "connection.hpp"
#include "wire.hpp"

namespace manyscale::cudart {

// The version of the runtime that the library stands for, e.g. 13000.
extern const int kRuntimeVersion;

struct Heap {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  int file = -1;
  bool watched = false;  // the host's accesses to managed memory are to be reported

  bool contains(const void* pointer) const {
    return reinterpret_cast<std::uint64_t>(pointer) - begin < bytes;
  }
};

// What the server tells of a device.
struct DeviceDescription {
  wire::DeviceDescription::Answer fields{};
  std::map<int, int> attributes;  // by the numbers of cudaDeviceAttr

  int attribute(int number) const {
    const auto found = attributes.find(number);
    return found == attributes.end() ? 0 : found->second;
  }
};

// Connects this thread, and the process if it is the first: then `heap()` and `device_count()` are known.
Error connect_thread();
// The thread's connection; connect_thread() has succeeded.
Connection& connection();
const Heap& heap();
int device_count();
// Null, with the reason in `error`, if there is no such device.
const DeviceDescription* describe_device(int device, Error& error);

int current_device();
void set_current_device(int device);

// Notes what a call returns, for cudaGetLastError, and writes what kernels printed.
Error finish(Error error);
// What cudaGetLastError (which forgets it) and cudaPeekAtLastError give.
Error last_error(bool forget);
// Where the thread keeps the error that cudaGetLastError gives.
Error& last_error_of_thread();
// After cudaDeviceReset: errors of the device are gone.
void forget_sticky_error();

// Whether calls whose success is certain need not be waited for: no other thread talks to the server, which
// could overtake them, and no device has failed.
bool may_post();

// While it lives, calls of this thread are parts of another one, and cost the program no time of their own.
class UntimedCalls {
 public:
  UntimedCalls();
  ~UntimedCalls();
  UntimedCalls(const UntimedCalls&) = delete;
  UntimedCalls& operator=(const UntimedCalls&) = delete;
};

// One call to the server on the current device.
template <class Call>
Error call(const typename Call::Request& request, typename Call::Answer* answer = nullptr,
           std::span<const std::byte> tail = {}, std::vector<std::byte>* answer_tail = nullptr,
           std::uint64_t staged = 0) {
  if (const Error error = connect_thread(); error != Error::success) return error;
  return connection().call<Call>(current_device(), request, answer, tail, answer_tail, staged);
}

// The same, not waited for if that may be; its success is certain if that of the call is.
template <class Call>
Error call_or_post(bool certain, const typename Call::Request& request,
                   std::span<const std::byte> tail = {}) {
  if (const Error error = connect_thread(); error != Error::success) return error;
  if (certain && may_post()) return connection().post<Call>(current_device(), request, tail);
  return connection().call<Call>(current_device(), request, nullptr, tail);
}

}  // namespace manyscale::cudart
