// SPDX-License-Identifier: Apache-2.0
// Packed node: the fields of a trace node as blocks hold them. What only nodes of some classes have shares a
// byte with what those classes have no use for.
#pragma once
#include <array>
#include <cstdint>

#include "cpu/trace/trace_node.hpp"

namespace manyscale::cpu {

struct PackedNode {
  // Added to the distance of a producer whose delay counts from its dispatch.
  static constexpr std::uint16_t from_dispatch = 0x8000;

  std::uint8_t flags = 0;   // traits; of ALU instructions and memory accesses also waiters
  std::uint8_t size = 0;    // bytes touched in memory; of sync nodes the SyncKind; else compacted branches
  std::uint8_t format = 0;  // compacted branches where `size` has something else; of control: is a misfetch

  static PackedNode pack(const TraceNode& node);
  // Writes the fields into a node whose class is set.
  void unpack(TraceNode& node) const;

  static std::uint16_t pack_producer(const TraceNode& node, std::size_t operand) {
    return static_cast<std::uint16_t>(node.producers[operand] |
                                      (node.timing.counts_from_dispatch(operand) ? from_dispatch : 0));
  }
  static std::array<std::uint16_t, 3> pack_producers(const TraceNode& node) {
    return {pack_producer(node, 0), pack_producer(node, 1), pack_producer(node, 2)};
  }
  static void unpack_producers(const std::array<std::uint16_t, 3>& packed, TraceNode& node) {
    constexpr std::uint16_t distance = Record::furthest_producer;
    node.producers = {static_cast<std::uint16_t>(packed[0] & distance),
                      static_cast<std::uint16_t>(packed[1] & distance),
                      static_cast<std::uint16_t>(packed[2] & distance)};
    node.timing.from_dispatch =
        static_cast<std::uint8_t>(packed[0] >> 15 | packed[1] >> 15 << 1 | packed[2] >> 15 << 2);
  }
};

}  // namespace manyscale::cpu
