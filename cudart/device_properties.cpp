// SPDX-License-Identifier: Apache-2.0
#include "device_properties.hpp"

#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace manyscale::cudart {

namespace {

enum class PropertyKind { name, uuid, luid, number, size, total_memory };

constexpr unsigned k11 = 1;
constexpr unsigned k12 = 2;
constexpr unsigned k13 = 4;
constexpr unsigned kOld = k11 | k12;
constexpr unsigned kNew = k12 | k13;
constexpr unsigned kAll = k11 | k12 | k13;

// A field of the struct, or several of one type in a row: the numbers of the attributes that they hold (0:
// nothing), and the versions that have it. The order is that of the struct, gaps come from the alignment of
// the types.
struct Field {
  PropertyKind kind;
  std::initializer_list<int> attributes;
  unsigned versions;
};

const Field kFields[] = {
    {PropertyKind::name, {}, kAll},
    {PropertyKind::uuid, {}, kAll},
    {PropertyKind::luid, {}, kAll},
    {PropertyKind::number, {0}, kAll},  // mask of the device's nodes
    {PropertyKind::total_memory, {}, kAll},
    {PropertyKind::size, {8}, kAll},                   // shared memory of a block
    {PropertyKind::number, {12, 10}, kAll},            // registers of a block, warp size
    {PropertyKind::size, {11}, kAll},                  // pitch
    {PropertyKind::number, {1}, kAll},                 // threads of a block
    {PropertyKind::number, {2, 3, 4, 5, 6, 7}, kAll},  // block and grid
    {PropertyKind::number, {13}, kOld},                // clock
    {PropertyKind::size, {9}, kAll},                   // constant memory
    {PropertyKind::number, {75, 76}, kAll},            // compute capability
    {PropertyKind::size, {14, 51}, kAll},              // alignment of textures and of their pitch
    {PropertyKind::number, {15}, kOld},                // overlap
    {PropertyKind::number, {16}, kAll},                // multiprocessors
    {PropertyKind::number, {17}, kOld},                // time limit of kernels
    {PropertyKind::number, {18, 19}, kAll},            // integrated, maps the host's memory
    {PropertyKind::number, {20}, kOld},                // compute mode
    {PropertyKind::number, {21, 77}, kAll},            // textures: 1D, mipmapped
    {PropertyKind::number, {69}, kOld},                // 1D linear
    {PropertyKind::number, {22, 23, 73, 74, 70, 71, 72, 45, 46, 24, 25, 26, 47, 48, 49}, kAll},  // 2D and 3D
    {PropertyKind::number, {52, 42, 43, 27, 28, 29, 53, 54}, kAll},                          // cube, layered
    {PropertyKind::number, {55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68}, kAll},  // surfaces
    {PropertyKind::size, {30}, kAll},  // alignment of surfaces
    {PropertyKind::number,
     {31, 32, 33, 34, 50, 35, 40, 41},
     kAll},                              // concurrent kernels, ECC, PCI, engines, addressing
    {PropertyKind::number, {36}, kOld},  // clock of the memory
    {PropertyKind::number, {37, 38, 108, 39, 78, 79, 80}, kAll},  // bus, L2, threads of an SM, priorities, L1
    {PropertyKind::size, {81}, kAll},                             // shared memory of an SM
    {PropertyKind::number, {82, 83, 84, 85, 86}, kAll},           // registers of an SM, managed memory, board
    {PropertyKind::number, {87}, kOld},                           // single to double precision
    {PropertyKind::number, {88, 89, 90, 91, 95}, kAll},           // pageable access, preemption, cooperative
    {PropertyKind::number, {96}, kOld},                           // cooperative on several devices
    {PropertyKind::size, {97}, kAll},                             // shared memory of a block, on request
    {PropertyKind::number, {100, 101, 106, 109}, kAll},  // page tables, blocks of an SM, access policy
    {PropertyKind::size, {111}, kAll},                   // reserved shared memory
    {PropertyKind::number, {99, 112, 113, 114, 115, 116, 117, 118, 119, 121, 125, 120, 0}, kNew},
    {PropertyKind::number, {130, 131, 133, 134, 139, 140, 143}, k13},
};

// Room at the end for fields of later minor versions.
constexpr std::size_t kReserved12 = 63 * sizeof(int);
constexpr std::size_t kReserved13 = 56 * sizeof(int);

unsigned mask_of(PropertyVersion version) {
  return version == PropertyVersion::cuda11 ? k11 : version == PropertyVersion::cuda12 ? k12 : k13;
}

// Goes through the struct; calls `put(offset, bytes of the value)` for each value and returns the struct's
// size.
template <class Put>
std::size_t lay_out(const DeviceDescription* device, PropertyVersion version, Put put) {
  std::size_t offset = 0;
  auto add = [&](const void* value, std::size_t bytes, std::size_t alignment) {
    offset = (offset + alignment - 1) / alignment * alignment;
    if (value != nullptr) put(offset, value, bytes);
    offset += bytes;
  };
  auto attribute = [&](int number) {
    return device != nullptr && number != 0 ? device->attribute(number) : 0;
  };
  for (const Field& field : kFields) {
    if ((field.versions & mask_of(version)) == 0) continue;
    switch (field.kind) {
      case PropertyKind::name:
        add(device != nullptr ? device->fields.name : nullptr, sizeof device->fields.name, 1);
        break;
      case PropertyKind::uuid:
        add(device != nullptr ? device->fields.uuid : nullptr, sizeof device->fields.uuid, 1);
        break;
      case PropertyKind::luid:
        add(nullptr, 8, 1);
        break;
      case PropertyKind::total_memory: {
        const std::uint64_t memory = device != nullptr ? device->fields.memory : 0;
        add(&memory, sizeof memory, alignof(std::uint64_t));
        break;
      }
      case PropertyKind::number:
        for (const int number : field.attributes) {
          const int value = attribute(number);
          add(&value, sizeof value, alignof(int));
        }
        break;
      case PropertyKind::size:
        for (const int number : field.attributes) {
          const auto value = static_cast<std::uint64_t>(static_cast<unsigned>(attribute(number)));
          add(&value, sizeof value, alignof(std::uint64_t));
        }
        break;
    }
  }
  if (version == PropertyVersion::cuda12) offset += kReserved12;
  if (version == PropertyVersion::cuda13) offset += kReserved13;
  return (offset + alignof(std::uint64_t) - 1) / alignof(std::uint64_t) * alignof(std::uint64_t);
}

}  // namespace

std::size_t properties_bytes(PropertyVersion version) {
  return lay_out(nullptr, version, [](std::size_t, const void*, std::size_t) {});
}

void write_properties(const DeviceDescription& device, PropertyVersion version, std::byte* to) {
  std::memset(to, 0, properties_bytes(version));
  lay_out(&device, version, [&](std::size_t offset, const void* value, std::size_t bytes) {
    std::memcpy(to + offset, value, bytes);
  });
}

}  // namespace manyscale::cudart
