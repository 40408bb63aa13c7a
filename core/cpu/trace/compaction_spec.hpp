// SPDX-License-Identifier: Apache-2.0
// The limits of trace compaction.
#pragma once
#include <cstdint>

namespace manyscale::cpu {

// What was fitted to programs; a machine states it ([cpu.compaction]).
struct CompactionTuning {
  // Cycles of a delay after dispatch, which takes all before it as dispatched at full width. Longer chains
  // have nodes in between, which wait for what they really wait for.
  std::uint32_t max_dispatch_delay;
  // Cycles after its own dispatch; longer delays count from the dispatch of an older node.
  std::uint32_t max_own_dispatch_delay;
  // Cycles that a compacted instruction may complete after the node behind it, which then commits too early.
  std::uint64_t max_hidden_completion;
  // Instructions after which it is looked up again which ports limit the rate; loops are shorter, or repeat
  // themselves.
  std::uint64_t port_sample_period;
  // Instructions of such ports that one node stands for.
  std::uint32_t port_node_period;
  // Ports limit the rate if they need so many times what the instructions take at least: a core is seldom as
  // fast as its width.
  double port_slack;
  // Instructions compacted into a node, as a share of the reorder buffer.
  double reorder_buffer_share;
};

struct CompactionLimits {
  std::uint64_t width = 4;     // instructions dispatched in a cycle; 0: any number
  std::uint64_t window = 512;  // instructions in flight, at least
  // … and of the machine recorded on: where a node has more than three dependences, older ones are left out.
  std::uint64_t reorder_buffer = 512;
  bool model_ports = true;  // whether nodes stay for ALU instructions whose issue ports limit the rate
  std::uint32_t max_compacted = 255;  // instructions compacted into a node; few, for small reorder buffers
  CompactionTuning tuning{};
};

}  // namespace manyscale::cpu
