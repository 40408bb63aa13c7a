// SPDX-License-Identifier: Apache-2.0
// Types that cross the boundary to programs built with NVIDIA's compiler: sizes, orders and numbers are those
// of the public interface of the CUDA runtime, versions 11 to 13; names are ours where a program never sees
// them.
#pragma once
#include <cstddef>
#include <cstdint>

namespace manyscale::cudart {

// The numbers of cudaError_t that this library returns by itself.
enum class Error : int {
  again = -1,  // only on the wire: a function of the host is due
  success = 0,
  invalid_value = 1,
  memory_allocation = 2,
  initialization = 3,
  runtime_unloading = 4,
  invalid_configuration = 9,
  invalid_pitch = 12,
  invalid_symbol = 13,
  invalid_device_pointer = 17,
  invalid_texture = 18,
  invalid_channel_descriptor = 20,
  invalid_copy_direction = 21,
  missing_configuration = 52,
  invalid_device_function = 98,
  no_device = 100,
  invalid_device = 101,
  no_kernel_image = 209,
  already_mapped = 208,
  not_mapped = 211,
  unsupported_limit = 215,
  invalid_source = 300,
  file_not_found = 301,
  invalid_handle = 400,
  illegal_state = 401,
  symbol_not_found = 500,
  not_ready = 600,
  launch_failure = 719,
  peer_access_already_enabled = 704,
  peer_access_not_enabled = 705,
  set_on_active_process = 708,
  host_memory_already_registered = 712,
  host_memory_not_registered = 713,
  not_permitted = 800,
  not_supported = 801,
  capture_unsupported = 900,
  capture_invalidated = 901,
  capture_merge = 902,
  capture_unmatched = 903,
  capture_unjoined = 904,
  capture_isolation = 905,
  capture_implicit = 906,
  captured_event = 907,
  capture_wrong_thread = 908,
  graph_update_failure = 910,
  unknown = 999,
};

// Opaque handles of the interface.
struct Stream;
struct Event;
struct Array;
struct MipmappedArray;
struct Function;
struct Library;
struct MemoryPool;
struct Graph;
struct GraphNode;
struct GraphExecution;

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;

  bool operator==(const Dim3&) const = default;
};

struct Extent {
  std::size_t width, height, depth;
};

struct Position {
  std::size_t x, y, z;
};

struct PitchedPointer {
  void* pointer;
  std::size_t pitch, width, height;
};

struct ChannelFormat {
  int x, y, z, w;  // bits
  int kind;        // 0 signed, 1 unsigned, 2 float, 3 none
};

enum CopyKind : int { host_to_host, host_to_device, device_to_host, device_to_device, any_direction };

struct Copy3DParameters {
  Array* source_array;
  Position source_position;
  PitchedPointer source;
  Array* target_array;
  Position target_position;
  PitchedPointer target;
  Extent extent;
  CopyKind kind;
};

struct Copy3DPeerParameters {
  Array* source_array;
  Position source_position;
  PitchedPointer source;
  int source_device;
  Array* target_array;
  Position target_position;
  PitchedPointer target;
  int target_device;
  Extent extent;
};

enum class MemoryKind : int { unregistered, pinned, device, managed };

// As CUDA 13 has it; 11 and 12 end before `reserved`.
struct PointerAttributes {
  MemoryKind type;
  int device;
  void* device_pointer;
  void* host_pointer;
};

// As CUDA 11 has it; since 12 it has 88 more bytes, about clusters of blocks.
inline constexpr std::size_t kFunctionAttributesBytes = 144;
struct FunctionAttributes {
  std::size_t shared, constant, local;
  int threads, registers, ptx_version, binary_version, cache_mode, dynamic_shared, carveout;
};

struct LaunchAttribute {
  unsigned id;
  char padding[4];
  union {
    char bytes[64];
    int cooperative;
    unsigned cluster[3];
    int priority;
  } value;
};

struct LaunchConfiguration {
  Dim3 grid, block;
  std::size_t shared;
  Stream* stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

struct MemoryLocation {
  int type;  // 0 none, 1 device, 2 host, 3 a NUMA node of the host, 4 that of the thread
  int id;
};

struct MemoryPoolProperties {
  int allocation_type;
  int handle_types;
  MemoryLocation location;
  void* security_attributes;
  std::size_t maximum;
  unsigned short usage;
  unsigned char reserved[54];
};

struct ResourceDescription {
  int type;  // 0 array, 1 mipmapped array, 2 linear, 3 pitched
  union {
    Array* array;
    MipmappedArray* mipmap;
    struct {
      void* pointer;
      ChannelFormat format;
      std::size_t bytes;
    } linear;
    struct {
      void* pointer;
      ChannelFormat format;
      std::size_t width, height, pitch;
    } pitched;
  };
  // CUDA 13 has room and flags after this, all of which are 0.
};

// As CUDA 11 has it; later ones have one more number at the end.
struct TextureDescription {
  int address[3];
  int filter, read, srgb;
  float border[4];
  int normalized;
  unsigned anisotropy;
  int mipmap_filter;
  float mipmap_bias, mipmap_minimum, mipmap_maximum;
  int no_trilinear_optimization;
};

using HostFunction = void (*)(void*);
using StreamCallback = void (*)(Stream*, Error, void*);

}  // namespace manyscale::cudart
