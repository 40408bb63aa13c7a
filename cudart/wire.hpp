// SPDX-License-Identifier: Apache-2.0
// The protocol between this library and the server of the simulated GPUs; src/manyscale/cuda/wire.py defines
// the same. Each call is a struct with the number of the call, the fields of its request and those of its
// answer; numbers are little endian and not padded.
#pragma once
#include <cstdint>

namespace manyscale::cudart::wire {

inline constexpr std::uint32_t kVersion = 4;

#pragma pack(push, 1)

struct RequestHeader {
  std::uint32_t bytes;  // after the header
  std::uint16_t call;
  std::uint16_t device;       // the thread's current one
  std::uint64_t nanoseconds;  // of the host since the last reply
  std::uint64_t staged;       // bytes at the beginning of the staging memory that belong to the request
};

struct ReplyHeader {
  std::int32_t status;        // a cudaError_t, or kAgain
  std::uint32_t bytes;        // of the fields and their tail
  std::uint64_t nanoseconds;  // simulated time of the host
  std::uint32_t printed;      // bytes of text after them that kernels printed
  std::uint32_t flags;
};

// Marks the call of a request that nobody waits for: it has no reply, and if it fails, the next reply of the
// thread says so.
inline constexpr std::uint16_t kPosted = 0x8000;
// Marks the call of a request that is part of another: it costs the program no time.
inline constexpr std::uint16_t kUntimed = 0x4000;
// Data of a copy to the device of no more bytes than this follows its request instead of being staged.
inline constexpr std::uint64_t kLargestInline = 4096;
// The status of a reply that names a function of the host: when we have called it, we ask again. Without a
// function (0), a stream waits for a value, and we ask again after a while.
inline constexpr std::int32_t kAgain = -1;
// The flag of a reply whose error is the device's: all later calls give it again.
inline constexpr std::uint32_t kSticky = 1;
// Of the answer to Hello: the host's accesses to managed memory are to be reported.
inline constexpr std::uint64_t kWatchManaged = 1;
// The same: the time of the host goes on between calls, too.
inline constexpr std::uint64_t kMeasuredHost = 2;
inline constexpr std::uint32_t kAsync = 1;        // of a copy or a fill: the host does not wait
inline constexpr std::uint32_t kCooperative = 1;  // of a launch
inline constexpr std::uint32_t kNonBlocking = 1;  // of a stream: it does not wait for the default stream
inline constexpr std::uint32_t kPerThread = std::uint32_t{1}
                                            << 31;  // of a stream: default stream of one thread

enum class CopySide : std::uint32_t { staged, pinned, device, managed };

struct Nothing {};

struct Hello {
  static constexpr std::uint16_t kCall = 1;
  struct Request {
    std::uint32_t version, process, thread, runtime;
    std::uint32_t program;  // any number that another program in the same process would hardly choose
  };
  struct Answer {
    std::uint32_t devices;
    std::uint64_t heap, heap_bytes, flags;
  };
};

struct Staging {
  static constexpr std::uint16_t kCall = 2;
  struct Request {
    std::uint64_t bytes;
  };
  using Answer = Nothing;
};

// The answer is followed by attributes x {i32 number of cudaDeviceGetAttribute, i32 value}.
struct DeviceDescription {
  static constexpr std::uint16_t kCall = 3;
  struct Request {
    std::uint32_t device;
  };
  struct Answer {
    std::uint64_t memory;
    char name[256];
    char uuid[16];
    std::uint32_t attributes;
  };
};

// Request: then parts x u64 bytes.
struct LoadModule {
  static constexpr std::uint16_t kCall = 4;
  struct Request {
    std::uint32_t module, wrapper, parts;
  };
  using Answer = Nothing;
};

struct UnloadModule {
  static constexpr std::uint16_t kCall = 5;
  struct Request {
    std::uint32_t module;
  };
  using Answer = Nothing;
};

// Request: then the name in the module; the answer is followed by parameters x {u32 offset, u32 bytes}.
struct Function {
  static constexpr std::uint16_t kCall = 6;
  struct Request {
    std::uint32_t function, module;
  };
  struct Answer {
    std::uint32_t shared, constant, local, threads, registers, ptx_version;
    std::int32_t dynamic_shared, carveout;
    std::uint32_t binary_version, cache_mode, parameters;
  };
};

// Request: then the name in the module.
struct Symbol {
  static constexpr std::uint16_t kCall = 7;
  struct Request {
    std::uint32_t module;
  };
  struct Answer {
    std::uint64_t address, bytes;
  };
};

struct Malloc {
  static constexpr std::uint16_t kCall = 8;
  struct Request {
    std::uint32_t kind, flags;
    std::uint64_t bytes, alignment;
  };
  struct Answer {
    std::uint64_t address, bytes;
  };
};

struct Free {
  static constexpr std::uint16_t kCall = 9;
  struct Request {
    std::uint64_t address;
    std::uint32_t stream;
  };
  using Answer = Nothing;
};

// Request: then the data of a few bytes that come from pageable memory.
struct Copy {
  static constexpr std::uint16_t kCall = 10;
  struct Request {
    std::uint32_t stream, flags, source_kind, target_kind;
    std::uint64_t source, source_pitch, source_slice, target, target_pitch, target_slice, width, height,
        depth;
  };
  using Answer = Nothing;
};

struct Set {
  static constexpr std::uint16_t kCall = 11;
  struct Request {
    std::uint32_t stream, flags;
    std::uint64_t address, pitch, slice, width, height, depth, value;
    std::uint32_t element;
  };
  using Answer = Nothing;
};

// Request: then the parameters, as FUNCTION says they lie.
struct Launch {
  static constexpr std::uint16_t kCall = 12;
  struct Request {
    std::uint32_t function, stream, flags, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, bytes;
  };
  using Answer = Nothing;
};

struct StreamCreate {
  static constexpr std::uint16_t kCall = 13;
  struct Request {
    std::uint32_t flags;
    std::int32_t priority;
  };
  struct Answer {
    std::uint32_t stream;
  };
};

struct StreamDestroy {
  static constexpr std::uint16_t kCall = 14;
  struct Request {
    std::uint32_t stream;
  };
  using Answer = Nothing;
};

struct StreamSynchronize {
  static constexpr std::uint16_t kCall = 15;
  struct Request {
    std::uint32_t stream;
  };
  using Answer = Nothing;
};

struct StreamQuery {
  static constexpr std::uint16_t kCall = 16;
  struct Request {
    std::uint32_t stream;
  };
  using Answer = Nothing;
};

struct StreamWaitEvent {
  static constexpr std::uint16_t kCall = 17;
  struct Request {
    std::uint32_t stream, event;
  };
  using Answer = Nothing;
};

struct EventCreate {
  static constexpr std::uint16_t kCall = 18;
  struct Request {
    std::uint32_t flags;
  };
  struct Answer {
    std::uint32_t event;
  };
};

struct EventDestroy {
  static constexpr std::uint16_t kCall = 19;
  struct Request {
    std::uint32_t event;
  };
  using Answer = Nothing;
};

struct EventRecord {
  static constexpr std::uint16_t kCall = 20;
  struct Request {
    std::uint32_t event, stream;
  };
  using Answer = Nothing;
};

struct EventSynchronize {
  static constexpr std::uint16_t kCall = 21;
  struct Request {
    std::uint32_t event;
  };
  using Answer = Nothing;
};

struct EventQuery {
  static constexpr std::uint16_t kCall = 22;
  struct Request {
    std::uint32_t event;
  };
  using Answer = Nothing;
};

struct EventElapsed {
  static constexpr std::uint16_t kCall = 23;
  struct Request {
    std::uint32_t begin, end;
  };
  struct Answer {
    double milliseconds;
  };
};

struct DeviceSynchronize {
  static constexpr std::uint16_t kCall = 24;
  using Request = Nothing;
  using Answer = Nothing;
};

struct DeviceReset {
  static constexpr std::uint16_t kCall = 25;
  using Request = Nothing;
  using Answer = Nothing;
};

// The answer is followed by of AGAIN: u64 function.
struct HostFunction {
  static constexpr std::uint16_t kCall = 26;
  struct Request {
    std::uint32_t stream;
    std::uint64_t function;
  };
  using Answer = Nothing;
};

struct HostFunctionDone {
  static constexpr std::uint16_t kCall = 27;
  struct Request {
    std::uint64_t function;
  };
  using Answer = Nothing;
};

// The answer is followed by of AGAIN: u64 function.
struct HostFunctionWait {
  static constexpr std::uint16_t kCall = 28;
  struct Request {
    std::uint64_t function;
  };
  using Answer = Nothing;
};

struct MemoryInfo {
  static constexpr std::uint16_t kCall = 29;
  using Request = Nothing;
  struct Answer {
    std::uint64_t free, total;
  };
};

struct Prefetch {
  static constexpr std::uint16_t kCall = 30;
  struct Request {
    std::uint32_t stream;
    std::int32_t device;
    std::uint64_t address, bytes;
  };
  using Answer = Nothing;
};

struct Advise {
  static constexpr std::uint16_t kCall = 31;
  struct Request {
    std::uint32_t advice;
    std::int32_t device;
    std::uint64_t address, bytes;
  };
  using Answer = Nothing;
};

struct HostAccess {
  static constexpr std::uint16_t kCall = 32;
  struct Request {
    std::uint64_t address;
    std::uint32_t write, reserved;
  };
  struct Answer {
    std::uint64_t address, bytes;
  };
};

struct Occupancy {
  static constexpr std::uint16_t kCall = 33;
  struct Request {
    std::uint32_t function, threads;
    std::uint64_t shared;
  };
  struct Answer {
    std::uint32_t blocks;
  };
};

struct FunctionAttribute {
  static constexpr std::uint16_t kCall = 34;
  struct Request {
    std::uint32_t function;
    std::int32_t attribute, value;
  };
  using Answer = Nothing;
};

struct TextureCreate {
  static constexpr std::uint16_t kCall = 35;
  struct Request {
    std::uint32_t kind;
    std::uint64_t address, pitch, width, height, depth;
    std::uint32_t dimensions, layered, cube, surface, format, bits_x, bits_y, bits_z, bits_w, mode_x, mode_y,
        mode_z, filter, read, srgb, normalized;
    float mipmap_bias, border_x, border_y, border_z, border_w;
  };
  struct Answer {
    std::uint64_t texture;
  };
};

struct TextureDestroy {
  static constexpr std::uint16_t kCall = 36;
  struct Request {
    std::uint64_t texture;
  };
  using Answer = Nothing;
};

struct Limit {
  static constexpr std::uint16_t kCall = 37;
  struct Request {
    std::uint32_t limit;
    std::uint64_t value;
  };
  using Answer = Nothing;
};

struct Profiler {
  static constexpr std::uint16_t kCall = 38;
  struct Request {
    std::uint32_t on;
  };
  using Answer = Nothing;
};

struct Goodbye {
  static constexpr std::uint16_t kCall = 39;
  using Request = Nothing;
  using Answer = Nothing;
};

struct PeerAccess {
  static constexpr std::uint16_t kCall = 40;
  struct Request {
    std::uint32_t peer, enable;
  };
  using Answer = Nothing;
};

// Request: then text.
struct Note {
  static constexpr std::uint16_t kCall = 41;
  using Request = Nothing;
  using Answer = Nothing;
};

// Virtual memory management. Device -1 is the host; access is by the numbers of CUmemAccess_flags.

struct AddressReserve {
  static constexpr std::uint16_t kCall = 42;
  struct Request {
    std::uint64_t bytes, alignment;
  };
  struct Answer {
    std::uint64_t address;
  };
};

struct AddressFree {
  static constexpr std::uint16_t kCall = 43;
  struct Request {
    std::uint64_t address, bytes;
  };
  using Answer = Nothing;
};

struct PhysicalCreate {
  static constexpr std::uint16_t kCall = 44;
  struct Request {
    std::uint64_t bytes;
    std::int32_t device;
    std::uint32_t shareable;
  };
  struct Answer {
    std::uint64_t handle;
  };
};

// The memory of a handle, or that at a mapped address if the handle is 0.
struct PhysicalRetain {
  static constexpr std::uint16_t kCall = 45;
  struct Request {
    std::uint64_t handle, address;
    std::uint32_t references;
  };
  struct Answer {
    std::uint64_t handle, bytes;
    std::int32_t device;
    std::uint32_t shareable;
  };
};

struct PhysicalRelease {
  static constexpr std::uint16_t kCall = 46;
  struct Request {
    std::uint64_t handle;
  };
  using Answer = Nothing;
};

// The answer says where the heap's file has the memory.
struct MemoryMap {
  static constexpr std::uint16_t kCall = 47;
  struct Request {
    std::uint64_t address, bytes, offset, handle;
  };
  struct Answer {
    std::uint64_t memory;
    std::int32_t device;
  };
};

struct MemoryUnmap {
  static constexpr std::uint16_t kCall = 48;
  struct Request {
    std::uint64_t address, bytes;
  };
  using Answer = Nothing;
};

struct MemorySetAccess {
  static constexpr std::uint16_t kCall = 49;
  struct Request {
    std::uint64_t address, bytes;
    std::int32_t device;
    std::uint32_t access;
  };
  using Answer = Nothing;
};

struct MemoryGetAccess {
  static constexpr std::uint16_t kCall = 50;
  struct Request {
    std::uint64_t address;
    std::int32_t device;
  };
  struct Answer {
    std::uint32_t access;
  };
};

// Comparison is by the numbers of CUstreamWaitValue_flags.
struct StreamWaitValue {
  static constexpr std::uint16_t kCall = 51;
  struct Request {
    std::uint32_t stream, bits;
    std::uint64_t address, value;
    std::uint32_t comparison;
  };
  using Answer = Nothing;
};

// Request: then parts x {u64 kind, u64 bytes}; the kind is by the numbers of CUjitInputType.
struct Link {
  static constexpr std::uint16_t kCall = 52;
  struct Request {
    std::uint32_t parts;
  };
  struct Answer {
    std::uint64_t bytes;
  };
};

// What NVML tells of a GPU; it needs no handshake. Clocks in kHz. The answer is followed by
// processes x {u32 process, u64 bytes}.
struct DeviceStatus {
  static constexpr std::uint16_t kCall = 53;
  struct Request {
    std::uint32_t device;
  };
  struct Answer {
    std::uint32_t devices;
    std::uint64_t memory, used;
    char name[96];
    char uuid[16];
    std::uint32_t capability, bus, clock, memory_clock, bus_width;
  };
};

// The answer is followed by the names of the kernels, each with a zero behind it.
struct Kernels {
  static constexpr std::uint16_t kCall = 55;
  struct Request {
    std::uint32_t module;
  };
  using Answer = Nothing;
};

// The simulated time of the host is in the header of the reply, as in every one.
struct HostTime {
  static constexpr std::uint16_t kCall = 54;
  using Request = Nothing;
  using Answer = Nothing;
};

// The NVTX ranges that the thread is in from now on. Request: then levels x {u64 instance, u32 bytes, the
// name}, the outermost first. An instance is the number of a range among those of the process.
struct Ranges {
  static constexpr std::uint16_t kCall = 56;
  struct Request {
    std::uint32_t levels;
  };
  using Answer = Nothing;
};

#pragma pack(pop)

}  // namespace manyscale::cudart::wire
