// SPDX-License-Identifier: Apache-2.0
// Devices: count, attributes, the current device of a thread, and peer access.
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>

#include "device_properties.hpp"
#include "memory.hpp"
#include "process.hpp"
#include "streams.hpp"

namespace manyscale::cudart {

namespace {

constexpr int kDriverVersion = 13000;

// Peers that may be accessed: (device, peer).
struct Peers {
  std::mutex mutex;
  std::set<std::pair<int, int>> enabled;
};

Peers& peers() {
  static Peers& only = *new Peers;
  return only;
}

bool is_device(int device) {
  return device >= 0 && device < device_count();
}

// Tells something of one device.
template <class Read>
Error of_device(int device, Read read) {
  Error error = Error::success;
  const DeviceDescription* description = describe_device(device, error);
  return description == nullptr ? error : read(*description);
}

Error select(int device) {
  if (const Error error = connect_thread(); error != Error::success) return error;
  if (!is_device(device)) return Error::invalid_device;
  set_current_device(device);
  return Error::success;
}

Error set_peer_access(int peer, bool on) {
  if (const Error error = connect_thread(); error != Error::success) return error;
  if (!is_device(peer) || peer == current_device()) return Error::invalid_device;
  Peers& known = peers();
  const std::lock_guard lock(known.mutex);
  const std::pair<int, int> pair{current_device(), peer};
  if (known.enabled.contains(pair) == on)
    return on ? Error::peer_access_already_enabled : Error::peer_access_not_enabled;
  const Error error = call<wire::PeerAccess>({static_cast<std::uint32_t>(peer), on ? 1u : 0u});
  if (error != Error::success) return error;
  if (on) {
    known.enabled.insert(pair);
  } else {
    known.enabled.erase(pair);
  }
  return Error::success;
}

Error reset() {
  if (const Error error = connect_thread(); error != Error::success) return error;
  const int device = current_device();
  const Error error = call<wire::DeviceReset>({});
  forget_allocations(device);
  forget_streams_and_events(device);
  {
    Peers& known = peers();
    const std::lock_guard lock(known.mutex);
    std::erase_if(known.enabled, [&](const auto& pair) { return pair.first == device; });
  }
  if (error == Error::success) forget_sticky_error();
  return error;
}

// The device whose number of an attribute and the like comes nearest to what the program wants: as all
// simulated devices are alike, the first.
Error choose(int* device) {
  if (device == nullptr) return Error::invalid_value;
  if (const Error error = connect_thread(); error != Error::success) return error;
  *device = 0;
  return Error::success;
}

Error bus_id(char* text, int length, int device) {
  if (text == nullptr || length < 13) return Error::invalid_value;
  return of_device(device, [&](const DeviceDescription& description) {
    std::snprintf(text, static_cast<std::size_t>(length), "%04x:%02x:%02x.0",
                  static_cast<unsigned>(description.attribute(50)),
                  static_cast<unsigned>(description.attribute(33)),
                  static_cast<unsigned>(description.attribute(34)));
    return Error::success;
  });
}

Error by_bus_id(int* device, const char* text) {
  if (device == nullptr || text == nullptr) return Error::invalid_value;
  if (const Error error = connect_thread(); error != Error::success) return error;
  unsigned wanted[3] = {};
  if (std::sscanf(text, "%x:%x:%x", &wanted[0], &wanted[1], &wanted[2]) != 3) {
    wanted[0] = 0;
    if (std::sscanf(text, "%x:%x", &wanted[1], &wanted[2]) != 2) return Error::invalid_value;
  }
  for (int candidate = 0; candidate < device_count(); ++candidate) {
    Error error = Error::success;
    const DeviceDescription* known = describe_device(candidate, error);
    if (known == nullptr) return error;
    if (static_cast<unsigned>(known->attribute(50)) == wanted[0] &&
        static_cast<unsigned>(known->attribute(33)) == wanted[1] &&
        static_cast<unsigned>(known->attribute(34)) == wanted[2]) {
      *device = candidate;
      return Error::success;
    }
  }
  return Error::invalid_value;
}

// Limits of contexts for graphics (CU_LIMIT_*): those can only be read, and no context here is such a one.
constexpr unsigned kLimitShared = 7, kLimitGraphics = 8, kLimitGraphicsFallback = 9;

// Numbers that programs set and read again; the server knows of limits too.
struct Settings {
  std::mutex mutex;
  std::size_t limits[7] = {1024, 1 << 20, 8 << 20, 2, 2048, 64, 0};
  int cache = 0;
  int shared_banks = 0;
  unsigned flags = 0;
};

Settings& settings() {
  static Settings& only = *new Settings;
  return only;
}

Error read_limit(unsigned limit, std::size_t& value) {
  if (limit == kLimitShared) {
    constexpr int shared_optin = 97;
    Error error = Error::success;
    if (const DeviceDescription* device = describe_device(current_device(), error); device != nullptr)
      value = static_cast<std::size_t>(device->attribute(shared_optin));
    return error;
  }
  if (limit == kLimitGraphics || limit == kLimitGraphicsFallback) {
    value = 0;
    return Error::success;
  }
  if (limit >= std::size(settings().limits)) return Error::unsupported_limit;
  const std::lock_guard lock(settings().mutex);
  value = settings().limits[limit];
  return Error::success;
}

Error set_limit(unsigned limit, std::size_t value) {
  if (limit >= std::size(settings().limits)) return Error::unsupported_limit;
  if (const Error error = call<wire::Limit>({limit, value}); error != Error::success) return error;
  const std::lock_guard lock(settings().mutex);
  settings().limits[limit] = value;
  return Error::success;
}

}  // namespace

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

extern "C" {

Error cudaGetDeviceCount(int* count) {
  if (count == nullptr) return finish(Error::invalid_value);
  const Error error = connect_thread();
  *count = error == Error::success ? device_count() : 0;
  return finish(error);
}

Error cudaSetDevice(int device) {
  return finish(select(device));
}

Error cudaGetDevice(int* device) {
  if (device == nullptr) return finish(Error::invalid_value);
  *device = current_device();
  return finish(connect_thread());
}

Error cudaInitDevice(int device, unsigned, unsigned) {
  return finish(of_device(device, [](const DeviceDescription&) { return Error::success; }));
}

Error cudaSetValidDevices(int* devices, int count) {
  if (const Error error = connect_thread(); error != Error::success) return finish(error);
  for (int i = 0; i < count; ++i)
    if (!is_device(devices[i])) return finish(Error::invalid_device);
  if (count > 0) set_current_device(devices[0]);
  return finish(Error::success);
}

Error cudaChooseDevice(int* device, const void*) {
  return finish(choose(device));
}

Error cudaDeviceGetAttribute(int* value, int attribute, int device) {
  if (value == nullptr || attribute <= 0) return finish(Error::invalid_value);
  return finish(of_device(device, [&](const DeviceDescription& description) {
    *value = description.attribute(attribute);
    return Error::success;
  }));
}

Error cudaDeviceSynchronize() {
  return finish(call<wire::DeviceSynchronize>({}));
}

Error cudaDeviceReset() {
  return finish(reset());
}

Error cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return finish(bus_id(text, length, device));
}

Error cudaDeviceGetByPCIBusId(int* device, const char* text) {
  return finish(by_bus_id(device, text));
}

Error cudaDriverGetVersion(int* version) {
  if (version == nullptr) return finish(Error::invalid_value);
  *version = kDriverVersion;
  return finish(Error::success);
}

Error cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return finish(Error::invalid_value);
  *version = kRuntimeVersion;
  return finish(Error::success);
}

Error cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return finish(Error::success);
}

Error cudaDeviceSetLimit(unsigned limit, std::size_t value) {
  return finish(set_limit(limit, value));
}

Error cudaDeviceGetLimit(std::size_t* value, unsigned limit) {
  if (value == nullptr) return finish(Error::invalid_value);
  return finish(read_limit(limit, *value));
}

Error cudaDeviceSetCacheConfig(int preference) {
  settings().cache = preference;
  return finish(Error::success);
}

Error cudaDeviceGetCacheConfig(int* preference) {
  if (preference == nullptr) return finish(Error::invalid_value);
  *preference = settings().cache;
  return finish(Error::success);
}

Error cudaDeviceSetSharedMemConfig(int banks) {
  settings().shared_banks = banks;
  return finish(Error::success);
}

Error cudaDeviceGetSharedMemConfig(int* banks) {
  if (banks == nullptr) return finish(Error::invalid_value);
  *banks = settings().shared_banks == 0 ? 1 : settings().shared_banks;
  return finish(Error::success);
}

Error cudaSetDeviceFlags(unsigned flags) {
  settings().flags = flags;
  return finish(Error::success);
}

Error cudaGetDeviceFlags(unsigned* flags) {
  if (flags == nullptr) return finish(Error::invalid_value);
  constexpr unsigned map_host = 8;
  *flags = settings().flags | map_host;
  return finish(Error::success);
}

Error cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (can == nullptr) return finish(Error::invalid_value);
  if (const Error error = connect_thread(); error != Error::success) return finish(error);
  if (!is_device(device) || !is_device(peer)) return finish(Error::invalid_device);
  *can = device != peer ? 1 : 0;
  return finish(Error::success);
}

Error cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return finish(flags != 0 ? Error::invalid_value : set_peer_access(peer, true));
}

Error cudaDeviceDisablePeerAccess(int peer) {
  return finish(set_peer_access(peer, false));
}

Error cudaDeviceGetP2PAttribute(int* value, int attribute, int device, int peer) {
  if (value == nullptr) return finish(Error::invalid_value);
  if (const Error error = connect_thread(); error != Error::success) return finish(error);
  if (!is_device(device) || !is_device(peer) || device == peer) return finish(Error::invalid_device);
  constexpr int access = 2;
  *value = attribute == access ? 1 : 0;
  return finish(Error::success);
}

Error cudaDeviceGetTexture1DLinearMaxWidth(std::size_t* width, const ChannelFormat*, int device) {
  if (width == nullptr) return finish(Error::invalid_value);
  return finish(of_device(device, [&](const DeviceDescription& description) {
    *width = static_cast<std::size_t>(description.attribute(69));
    return Error::success;
  }));
}

Error cudaCtxResetPersistingL2Cache() {
  return finish(connect_thread());
}

Error cudaDeviceFlushGPUDirectRDMAWrites(int, int) {
  return finish(connect_thread());
}

Error cudaProfilerStart() {
  return finish(call<wire::Profiler>({1}));
}

Error cudaProfilerStop() {
  return finish(call<wire::Profiler>({0}));
}

Error cudaProfilerInitialize(const char*, const char*, int) {
  return finish(Error::success);
}

// Names of before CUDA 4, which later versions keep.

Error cudaThreadExit() {
  return cudaDeviceReset();
}

Error cudaThreadSynchronize() {
  return cudaDeviceSynchronize();
}

Error cudaThreadSetLimit(unsigned limit, std::size_t value) {
  return cudaDeviceSetLimit(limit, value);
}

Error cudaThreadGetLimit(std::size_t* value, unsigned limit) {
  return cudaDeviceGetLimit(value, limit);
}

Error cudaThreadSetCacheConfig(int preference) {
  return cudaDeviceSetCacheConfig(preference);
}

Error cudaThreadGetCacheConfig(int* preference) {
  return cudaDeviceGetCacheConfig(preference);
}

Error cudaSetDoubleForDevice(double*) {
  return finish(Error::success);
}

Error cudaSetDoubleForHost(double*) {
  return finish(Error::success);
}

}  // extern "C"
