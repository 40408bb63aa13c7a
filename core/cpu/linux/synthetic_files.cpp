// SPDX-License-Identifier: Apache-2.0
#include "cpu/linux/synthetic_files.hpp"

#include <sys/stat.h>

#include <cstring>

#include "cpu/linux/load_program.hpp"

namespace manyscale::cpu {

namespace {

// /dev/null, /dev/zero, /dev/full and the sources of random bytes.
class DeviceFile final : public OpenFile {
 public:
  enum class Device { null, zero, full, random };
  DeviceFile(Device device, Random& random) : device_(device), random_(random) {}

  std::int64_t read(std::span<std::uint8_t> to) override {
    if (device_ == Device::null) return 0;
    for (std::uint8_t& byte : to) {
      byte = device_ == Device::random ? static_cast<std::uint8_t>(random_.next()) : std::uint8_t{0};
    }
    return static_cast<std::int64_t>(to.size());
  }
  std::int64_t write(std::span<const std::uint8_t> from) override {
    return device_ == Device::full ? -ENOSPC : static_cast<std::int64_t>(from.size());
  }
  std::int64_t read_at(std::span<std::uint8_t> to, std::uint64_t) override { return read(to); }
  std::int64_t seek(std::int64_t, int) override { return 0; }
  FileFacts facts() const override {
    return {S_IFCHR | 0666, 0, 16 + static_cast<std::uint64_t>(device_), 1};
  }

 private:
  Device device_;
  Random& random_;
};

std::string core_range(std::uint32_t cores) {
  return cores == 1 ? "0\n" : "0-" + std::to_string(cores - 1) + "\n";
}

std::string cpu_information(std::uint32_t cores) {
  std::string text;
  for (std::uint32_t core = 0; core < cores; ++core) {
    const std::string number = std::to_string(core);
    text += "processor\t: " + number + "\nhart\t\t: " + number + "\nisa\t\t: rv64imafdc\nmmu\t\t: sv39\n\n";
  }
  return text;
}

std::string processor_lines(std::uint32_t cores) {
  std::string text = "cpu  0 0 0 0 0 0 0 0 0 0\n";
  for (std::uint32_t core = 0; core < cores; ++core)
    text += "cpu" + std::to_string(core) + " 0 0 0 0 0 0 0 0 0 0\n";
  return text;
}

std::string memory_information(const Process& process) {
  const std::string total = std::to_string(process.memory.limit() / 1024);
  return "MemTotal:       " + total + " kB\nMemFree:        " + total + " kB\nMemAvailable:   " + total +
         " kB\n";
}

// Only the stack, which the C library looks for to know how far it reaches.
std::string stack_mapping() {
  const auto digits = [](std::uint64_t address) { return hexadecimal(address).substr(2); };
  return digits(Layout::stack_top - Layout::stack_bytes) + "-" + digits(Layout::stack_top) +
         " rw-p 00000000 00:00 0 [stack]\n";
}

std::unique_ptr<OpenFile> text_file(std::string text) {
  return std::make_unique<BytesFile>(std::move(text), S_IFREG | 0444, 8);
}

}  // namespace

bool is_synthetic_path(const std::string& path) {
  for (const std::string_view prefix : {"/proc", "/sys", "/dev"}) {
    if (path.starts_with(prefix) && (path.size() == prefix.size() || path[prefix.size()] == '/')) return true;
  }
  return false;
}

std::unique_ptr<OpenFile> open_synthetic(Kernel& kernel, Process& process, const std::string& path) {
  using Device = DeviceFile::Device;
  const auto device = [&](Device which) { return std::make_unique<DeviceFile>(which, kernel.random()); };
  if (path == "/dev/null") return device(Device::null);
  if (path == "/dev/zero") return device(Device::zero);
  if (path == "/dev/full") return device(Device::full);
  if (path == "/dev/random" || path == "/dev/urandom") return device(Device::random);
  if (path == "/proc/cpuinfo") return text_file(cpu_information(kernel.cores()));
  if (path == "/proc/stat") return text_file(processor_lines(kernel.cores()));
  if (path == "/proc/meminfo") return text_file(memory_information(process));
  if (path == "/proc/self/maps") return text_file(stack_mapping());
  if (path == "/proc/sys/vm/overcommit_memory") return text_file("0\n");
  for (const std::string_view name : {"online", "possible", "present"}) {
    if (path == "/sys/devices/system/cpu/" + std::string(name)) return text_file(core_range(kernel.cores()));
  }
  return {};
}

}  // namespace manyscale::cpu
