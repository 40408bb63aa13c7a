// SPDX-License-Identifier: Apache-2.0
#include "cpu/trace/packed_node.hpp"

namespace manyscale::cpu {

namespace {

// Bits of flags.
constexpr std::uint8_t sleeps = 1;           // of sync nodes
constexpr std::uint8_t mispredicted = 0x80;  // of control
constexpr std::uint8_t waiters = 0x87;       // of ALU instructions and memory accesses: WaiterCounts::index

constexpr std::uint8_t misfetch = 1;  // format of control

bool has_waiters(const TraceNode& node) {
  return node.kind <= InstructionClass::atomic;
}
// Whether `size` has something else than compacted branches.
bool uses_size(const TraceNode& node) {
  return node.touches_memory() || node.is_sync();
}

std::uint8_t pack_branches(CompactedBranches branches) {
  return static_cast<std::uint8_t>(branches.after << 4 | branches.count);
}
CompactedBranches unpack_branches(std::uint8_t bits) {
  CompactedBranches branches;
  branches.count = static_cast<std::uint8_t>(bits & 15);
  branches.after = bits >> 4 & 15;
  return branches;
}

}  // namespace

PackedNode PackedNode::pack(const TraceNode& node) {
  PackedNode packed{node.flags, node.size, node.format};
  if (node.kind == InstructionClass::marker) return packed;
  if (has_waiters(node)) {
    const std::uint8_t index = WaiterCounts::index(node.timing.waiters);
    packed.flags = static_cast<std::uint8_t>((node.flags & ~waiters) | (index & 7) | (index >> 3 << 7));
  } else if (node.is_control()) {
    if (node.timing.prediction == Prediction::mispredict) packed.flags |= mispredicted;
    if (node.timing.prediction == Prediction::misfetch) packed.format = misfetch;
  } else if (node.is_sync()) {
    if (node.sleeps) packed.flags |= sleeps;
    packed.size = static_cast<std::uint8_t>(node.sync);
  }
  (uses_size(node) ? packed.format : packed.size) = pack_branches(node.timing.branches);
  return packed;
}

void PackedNode::unpack(TraceNode& node) const {
  node.flags = flags;
  node.size = size;
  node.format = format;
  if (node.kind == InstructionClass::marker) return;
  if (has_waiters(node)) {
    node.timing.waiters = WaiterCounts::counts[(flags & 7) | (flags >> 7 << 3)];
    node.flags &= static_cast<std::uint8_t>(~waiters);
  } else if (node.is_control()) {
    if ((flags & mispredicted) != 0) {
      node.timing.prediction = Prediction::mispredict;
      node.flags &= static_cast<std::uint8_t>(~mispredicted);
    } else if (format == misfetch) {
      node.timing.prediction = Prediction::misfetch;
      node.format = 0;
    }
  } else if (node.is_sync()) {
    node.sleeps = (flags & sleeps) != 0;
    node.flags &= static_cast<std::uint8_t>(~sleeps);
    node.sync = static_cast<SyncKind>(size);
    node.size = 0;
  }
  node.timing.branches = unpack_branches(uses_size(node) ? format : size);
  (uses_size(node) ? node.format : node.size) = 0;
}

}  // namespace manyscale::cpu
