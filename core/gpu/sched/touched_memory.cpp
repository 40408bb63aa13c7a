// SPDX-License-Identifier: Apache-2.0
#include "gpu/sched/touched_memory.hpp"

#include <algorithm>
#include <cstring>

namespace manyscale::gpu {

void TouchedMemory::add_kernel(CommandId id, std::uint32_t stream, const DeviceMemory& memory,
                               LoadedModule& module, std::span<const std::byte> parameters) {
  auto [variables, is_new] = variables_.try_emplace(&module);
  if (is_new)
    for (const std::string& name : module.variables())
      if (const auto placed = module.variable(name))
        variables->second.push_back({placed->address, placed->bytes});
  Touched touched{stream, variables->second};
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= parameters.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t value = 0;
    std::memcpy(&value, parameters.data() + at, sizeof value);
    if (const Range range = memory.find(value); range.size != 0) touched.ranges.push_back(range);
  }
  touched_.emplace(id, std::move(touched));
}

void TouchedMemory::add_copy(CommandId id, std::uint32_t stream, const Copy& copy) {
  Touched touched{stream, {{copy.address, copy.shape.extent(0, copy.bytes)}}};
  const std::uint64_t other = copy.kind == CopyKind::within ? copy.source : copy.pinned;
  if (other != 0) touched.ranges.push_back({other, copy.shape.extent(1, copy.bytes)});
  touched_.emplace(id, std::move(touched));
}

bool TouchedMemory::shared_between_streams() const {
  struct Piece {
    Range range;
    std::uint32_t stream;
  };
  std::vector<Piece> pieces;
  for (const auto& [id, touched] : touched_)
    for (const Range& range : touched.ranges)
      if (range.size != 0) pieces.push_back({range, touched.stream});
  std::ranges::sort(pieces, {}, [](const Piece& piece) { return piece.range.begin; });
  // The pieces so far that reach furthest, of two streams: one of them is of another stream than the next.
  Piece furthest{}, other{};
  for (const Piece& piece : pieces) {
    const auto end = [](const Piece& of) { return of.range.begin + of.range.size; };
    const Piece& rival = furthest.stream == piece.stream ? other : furthest;
    if (end(rival) > piece.range.begin) return true;
    if (furthest.stream == piece.stream) {
      if (end(piece) > end(furthest)) furthest = piece;
    } else if (end(piece) > end(furthest)) {
      other = furthest;
      furthest = piece;
    } else if (end(piece) > end(other)) {
      other = piece;
    }
  }
  return false;
}

}  // namespace manyscale::gpu
