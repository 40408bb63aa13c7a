// SPDX-License-Identifier: Apache-2.0
// libnvidia-ml.so.1: the GPUs of the simulated node, as far as its machine states what NVML asks for: names,
// memory, PCI addresses, compute capability, clocks, processes. Power, temperature and utilisation are not
// modelled.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "status.hpp"

using manyscale::nvml::ask;
using manyscale::nvml::Outcome;
using manyscale::nvml::Status;

namespace {

// nvmlReturn_t
enum Result : int {
  success = 0,
  uninitialized = 1,
  invalid_argument = 2,
  not_supported = 3,
  not_found = 6,
  insufficient_size = 7,
  driver_not_loaded = 9,
  unknown_error = 999,
};

std::atomic<int> initializations{0};

// A handle is the address of an element, by which it is known.
constexpr unsigned kMostDevices = 64;
struct Device {
} devices[kMostDevices];

Result ask_checked(unsigned number, Status& status) {
  if (initializations == 0) return uninitialized;
  switch (ask(number, status)) {
    case Outcome::answered:
      return success;
    case Outcome::refused:
      return invalid_argument;
    case Outcome::no_server:
      break;
  }
  return unknown_error;
}

bool number_of(const Device* device, unsigned& number) {
  const std::ptrdiff_t at = device - devices;
  number = static_cast<unsigned>(at);
  return device != nullptr && at >= 0 && at < static_cast<std::ptrdiff_t>(kMostDevices);
}

// Does something with what is known of a device.
template <class Action>
Result with(const Device* device, Action action) {
  unsigned number = 0;
  if (initializations == 0) return uninitialized;
  if (!number_of(device, number)) return invalid_argument;
  Status status;
  if (const Result error = ask_checked(number, status); error != success) return error;
  return action(status);
}

template <class Value, class Get>
Result tell(const Device* device, Value* to, Get get) {
  if (to == nullptr) return invalid_argument;
  return with(device, [&](const Status& status) {
    *to = static_cast<Value>(get(status.fields));
    return success;
  });
}

Result copy_text(char* to, unsigned room, const std::string& text) {
  if (to == nullptr) return invalid_argument;
  if (text.size() >= room) return insufficient_size;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return success;
}

std::string uuid_of(const Status& status) {
  std::string text = "GPU-";
  char digits[3];
  for (unsigned i = 0; i < sizeof status.fields.uuid; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(status.fields.uuid[i]));
    text += digits;
  }
  return text;
}

// nvmlPciInfo_t
struct PciInfo {
  char short_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

PciInfo pci_of(const Status& status) {
  PciInfo info{};
  info.bus = status.fields.bus;
  std::snprintf(info.short_bus_id, sizeof info.short_bus_id, "%04X:%02X:%02X.0", info.domain, info.bus,
                info.device);
  std::snprintf(info.bus_id, sizeof info.bus_id, "%08X:%02X:%02X.0", info.domain, info.bus, info.device);
  return info;
}

// The device of which something holds.
template <class Condition>
Result find(Device** device, Condition condition) {
  if (device == nullptr) return invalid_argument;
  unsigned count = 1;
  for (unsigned number = 0; number < count && number < kMostDevices; ++number) {
    Status status;
    if (const Result error = ask_checked(number, status); error != success) return error;
    count = status.fields.devices;
    if (!condition(status)) continue;
    *device = &devices[number];
    return success;
  }
  return not_found;
}

// What nvmlDeviceGetHandleByPciBusId is given: "0000:01:00.0", with a domain of four or eight digits or none.
bool parse_bus(const char* text, unsigned& domain, unsigned& bus) {
  unsigned slot = 0;
  if (std::sscanf(text, "%x:%x:%x", &domain, &bus, &slot) == 3) return slot == 0;
  domain = 0;
  return std::sscanf(text, "%x:%x", &bus, &slot) == 2 && slot == 0;
}

struct Memory {
  unsigned long long total, free, used;
};

struct Memory2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};

struct ProcessInfo {
  unsigned process;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
};

struct ProcessInfo1 {
  unsigned process;
  unsigned long long bytes;
};

void set_process(ProcessInfo& to, const manyscale::nvml::RunningProcess& from) {
  to = {from.process, from.bytes, ~0u, ~0u};
}

void set_process(ProcessInfo1& to, const manyscale::nvml::RunningProcess& from) {
  to = {from.process, from.bytes};
}

template <class Info>
Result tell_processes(const Device* device, unsigned* count, Info* infos) {
  if (count == nullptr) return invalid_argument;
  return with(device, [&](const Status& status) {
    const auto there = static_cast<unsigned>(status.processes.size());
    const unsigned room = *count;
    *count = there;
    if (there > room || (there != 0 && infos == nullptr)) return insufficient_size;
    for (unsigned i = 0; i < there; ++i) set_process(infos[i], status.processes[i]);
    return success;
  });
}

enum ClockType : int { graphics = 0, sm = 1, memory = 2, video = 3 };

// In MHz; what NVML calls the clock now, at most, and by default is the one that the machine states.
Result tell_clock(const Device* device, int type, unsigned* clock) {
  if (type < graphics || type > video) return invalid_argument;
  if (type == video) return not_supported;
  constexpr unsigned kilo = 1000;
  return tell(device, clock, [&](const auto& fields) {
    return (type == memory ? fields.memory_clock : fields.clock) / kilo;
  });
}

}  // namespace

extern "C" {

// --- The library ---

int nvmlInitWithFlags(unsigned) {
  Status status;
  if (ask(0, status) != Outcome::answered) return driver_not_loaded;
  ++initializations;
  return success;
}

int nvmlInit_v2() {
  return nvmlInitWithFlags(0);
}

int nvmlInit() {
  return nvmlInitWithFlags(0);
}

int nvmlShutdown() {
  int before = initializations;
  while (before > 0 && !initializations.compare_exchange_weak(before, before - 1)) {
  }
  return before > 0 ? success : uninitialized;
}

const char* nvmlErrorString(int result) {
  switch (result) {
    case success:
      return "Success";
    case uninitialized:
      return "Uninitialized";
    case invalid_argument:
      return "Invalid Argument";
    case not_supported:
      return "Not Supported";
    case not_found:
      return "Not Found";
    case insufficient_size:
      return "Insufficient Size";
    case driver_not_loaded:
      return "Driver Not Loaded";
    default:
      return "Unknown Error";
  }
}

int nvmlSystemGetDriverVersion(char* version, unsigned room) {
  return initializations == 0 ? uninitialized : copy_text(version, room, "580.0");
}

int nvmlSystemGetNVMLVersion(char* version, unsigned room) {
  return initializations == 0 ? uninitialized : copy_text(version, room, "13.580.0");
}

int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  if (initializations == 0) return uninitialized;
  if (version == nullptr) return invalid_argument;
  *version = 13000;
  return success;
}

int nvmlSystemGetCudaDriverVersion(int* version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}

// --- Finding devices ---

int nvmlDeviceGetCount_v2(unsigned* count) {
  if (count == nullptr) return initializations == 0 ? uninitialized : invalid_argument;
  return tell(devices, count, [](const auto& fields) { return fields.devices; });
}

int nvmlDeviceGetCount(unsigned* count) {
  return nvmlDeviceGetCount_v2(count);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned number, Device** device) {
  if (initializations == 0) return uninitialized;
  Status status;
  if (device == nullptr || number >= kMostDevices) return invalid_argument;
  if (const Result error = ask_checked(number, status); error != success) return error;
  *device = &devices[number];
  return success;
}

int nvmlDeviceGetHandleByIndex(unsigned number, Device** device) {
  return nvmlDeviceGetHandleByIndex_v2(number, device);
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* text, Device** device) {
  unsigned domain = 0, bus = 0;
  if (text == nullptr || !parse_bus(text, domain, bus)) return invalid_argument;
  return find(device, [&](const Status& status) { return domain == 0 && status.fields.bus == bus; });
}

int nvmlDeviceGetHandleByPciBusId(const char* text, Device** device) {
  return nvmlDeviceGetHandleByPciBusId_v2(text, device);
}

int nvmlDeviceGetHandleByUUID(const char* uuid, Device** device) {
  if (uuid == nullptr) return invalid_argument;
  return find(device, [&](const Status& status) { return uuid_of(status) == uuid; });
}

int nvmlDeviceGetIndex(const Device* device, unsigned* number) {
  unsigned at = 0;
  if (initializations == 0) return uninitialized;
  if (number == nullptr || !number_of(device, at)) return invalid_argument;
  *number = at;
  return success;
}

int nvmlDeviceGetMinorNumber(const Device* device, unsigned* number) {
  return nvmlDeviceGetIndex(device, number);
}

// --- What a device is ---

int nvmlDeviceGetName(const Device* device, char* name, unsigned room) {
  return with(device, [&](const Status& status) { return copy_text(name, room, status.fields.name); });
}

int nvmlDeviceGetUUID(const Device* device, char* uuid, unsigned room) {
  return with(device, [&](const Status& status) { return copy_text(uuid, room, uuid_of(status)); });
}

int nvmlDeviceGetPciInfo_v3(const Device* device, PciInfo* info) {
  if (info == nullptr) return invalid_argument;
  return with(device, [&](const Status& status) {
    *info = pci_of(status);
    return success;
  });
}

int nvmlDeviceGetPciInfo_v2(const Device* device, PciInfo* info) {
  return nvmlDeviceGetPciInfo_v3(device, info);
}

int nvmlDeviceGetPciInfo(const Device* device, PciInfo* info) {
  return nvmlDeviceGetPciInfo_v3(device, info);
}

int nvmlDeviceGetCudaComputeCapability(const Device* device, int* major, int* minor) {
  if (minor == nullptr) return invalid_argument;
  if (const Result error = tell(device, major, [](const auto& fields) { return fields.capability / 10; });
      error != success)
    return error;
  return tell(device, minor, [](const auto& fields) { return fields.capability % 10; });
}

int nvmlDeviceGetMemoryInfo(const Device* device, Memory* memory) {
  return tell(device, memory, [](const auto& fields) {
    return Memory{fields.memory, fields.memory - fields.used, fields.used};
  });
}

int nvmlDeviceGetMemoryInfo_v2(const Device* device, Memory2* memory) {
  if (memory == nullptr) return invalid_argument;
  return tell(device, memory, [&](const auto& fields) {
    return Memory2{memory->version, fields.memory, 0, fields.memory - fields.used, fields.used};
  });
}

int nvmlDeviceGetMemoryBusWidth(const Device* device, unsigned* bits) {
  return tell(device, bits, [](const auto& fields) { return fields.bus_width; });
}

int nvmlDeviceGetComputeRunningProcesses_v3(const Device* device, unsigned* count, ProcessInfo* infos) {
  return tell_processes(device, count, infos);
}

int nvmlDeviceGetComputeRunningProcesses_v2(const Device* device, unsigned* count, ProcessInfo* infos) {
  return tell_processes(device, count, infos);
}

int nvmlDeviceGetComputeRunningProcesses(const Device* device, unsigned* count, ProcessInfo1* infos) {
  return tell_processes(device, count, infos);
}

int nvmlDeviceGetClockInfo(const Device* device, int type, unsigned* clock) {
  return tell_clock(device, type, clock);
}

int nvmlDeviceGetMaxClockInfo(const Device* device, int type, unsigned* clock) {
  return tell_clock(device, type, clock);
}

int nvmlDeviceGetApplicationsClock(const Device* device, int type, unsigned* clock) {
  return tell_clock(device, type, clock);
}

int nvmlDeviceGetClock(const Device* device, int type, int, unsigned* clock) {
  return tell_clock(device, type, clock);
}

// GPUs read and write each other's memory over their links; there is no NVLink, and there are no atomics.
int nvmlDeviceGetP2PStatus(const Device* device, const Device* other, int index, int* status) {
  enum : int { reads = 0, writes = 1, last_index = 5 };
  enum : int { ok = 0, unsupported_between_them = 5 };
  unsigned number = 0;
  if (!number_of(other, number) || index < reads || index > last_index) return invalid_argument;
  return tell(device, status, [&](const auto&) { return index <= writes ? ok : unsupported_between_them; });
}

// The default: processes share the GPU.
int nvmlDeviceGetComputeMode(const Device* device, int* mode) {
  return tell(device, mode, [](const auto&) { return 0; });
}

}  // extern "C"
