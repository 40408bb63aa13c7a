// SPDX-License-Identifier: Apache-2.0
// Operations of a stream: launches, copies, fills, host functions. An operation is performed at once, or
// becomes a node of a graph while its stream is captured.
#pragma once
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "abi.hpp"
#include "streams.hpp"

namespace manyscale::cudart {

struct LaunchOperation {
  Function* function = nullptr;
  Dim3 grid, block;
  std::size_t shared = 0;
  std::uint32_t flags = 0;
  std::vector<std::byte> parameters;
};

// One side of a copy: rows `pitch` bytes apart, slices of them `slice` bytes apart.
struct Region {
  void* pointer = nullptr;
  std::uint64_t pitch = 0;
  std::uint64_t slice = 0;
};

struct CopyOperation {
  Region target, source;
  std::uint64_t width = 0;  // bytes
  std::uint64_t rows = 1;
  std::uint64_t slices = 1;
  CopyKind kind = any_direction;
};

struct FillOperation {
  Region target;
  std::uint64_t width = 0;  // elements
  std::uint64_t rows = 1;
  std::uint64_t slices = 1;
  std::uint64_t value = 0;
  std::uint32_t element = 1;  // bytes
};

struct HostOperation {
  HostFunction function = nullptr;
  void* data = nullptr;
};

struct RecordOperation {
  Event* event = nullptr;
};

struct WaitOperation {
  Event* event = nullptr;
};

struct PrefetchOperation {
  const void* pointer = nullptr;
  std::uint64_t bytes = 0;
  int device = -1;  // -1: the host
};

struct AllocateOperation {
  MemoryPoolProperties properties{};
  std::uint64_t bytes = 0;
  void* pointer = nullptr;
};

struct FreeOperation {
  void* pointer = nullptr;
};

struct ChildOperation {
  Graph* graph = nullptr;
};

struct EmptyOperation {};

using Operation = std::variant<EmptyOperation, LaunchOperation, CopyOperation, FillOperation, HostOperation,
                               RecordOperation, WaitOperation, PrefetchOperation, AllocateOperation,
                               FreeOperation, ChildOperation>;

enum class Wait { no, yes };

// Does it now: given to the server, and waited for if the call does so.
Error perform(Stream& stream, const Operation& operation, Wait wait);
// Does it now, or adds it to the graph that the stream is captured into.
Error enqueue(Stream& stream, Operation operation, Wait wait);

}  // namespace manyscale::cudart
