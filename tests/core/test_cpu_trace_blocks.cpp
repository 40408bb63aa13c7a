// SPDX-License-Identifier: Apache-2.0
// Blocks of a trace: what is read is what was written, in few bytes, and bytes that are no block are named.
#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include "cpu/trace/block.hpp"
#include "cpu/trace/packed_node.hpp"
#include "test_checks.hpp"

using namespace manyscale;
using namespace manyscale::cpu;
using namespace manyscale::test;

namespace {

auto fields(const TraceNode& node) {
  const ElasticTiming& timing = node.timing;
  return std::tuple(node.pc, node.address, node.producers, node.kind, node.flags, node.size, node.format,
                    node.thread, timing.delays, timing.weight, int{timing.branches.count},
                    int{timing.branches.after}, timing.waiters, timing.from_dispatch, timing.prediction,
                    node.sync, node.sleeps);
}

bool equal(const std::vector<TraceNode>& left, const std::vector<TraceNode>& right) {
  return std::ranges::equal(left, right, [](const auto& a, const auto& b) { return fields(a) == fields(b); });
}

// Nodes without any order, with values at the edges of their fields.
std::vector<TraceNode> random_nodes(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  const std::uint64_t instructions = 1 + random() % 200;
  std::vector<TraceNode> nodes;
  for (std::size_t i = 0; i < count; ++i) {
    TraceNode node;
    const std::uint64_t instruction = random() % instructions;
    node.pc = random() % 20 == 0 ? random() : 0x10000000000 + 4 * instruction;
    node.kind = static_cast<InstructionClass>(instruction % instruction_classes);
    PackedNode packed;
    packed.flags = static_cast<std::uint8_t>(random() % 7 == 0 ? random() : instruction);
    packed.size = static_cast<std::uint8_t>(node.is_sync() ? random() % sync_kinds : instruction % 9);
    packed.format = static_cast<std::uint8_t>(random() % 9 == 0 ? random() : 8);
    packed.unpack(node);
    node.thread = static_cast<std::uint16_t>(random() % 30 == 0 ? random() : 3);
    if (node.kind >= InstructionClass::load)
      node.address = random() % 5 == 0 ? random() : 0x10000000000 + 8 * i;
    std::array<std::uint16_t, 3> producers{};
    for (std::size_t k = 0; k < 3; ++k) {
      const std::uint64_t choice = random() % 8;
      producers[k] = static_cast<std::uint16_t>(choice == 0 ? random() : choice < 4 ? 0 : choice);
      node.timing.delays[k] = static_cast<std::uint8_t>(random() % 8 == 0 ? random() : 0);
    }
    PackedNode::unpack_producers(producers, node);
    node.timing.weight = static_cast<std::uint8_t>(random() % 10 == 0 ? random() : 2);
    nodes.push_back(node);
  }
  return nodes;
}

TEST(blocks_give_back_what_they_were_given) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const std::vector<TraceNode> nodes = random_nodes(seed, seed == 0 ? 0 : seed < 30 ? seed : 3000);
    check(equal(decode_block(encode_block(nodes)), nodes), "random nodes, seed " + std::to_string(seed));
  }
  const std::vector<TraceNode> most = random_nodes(99, block_nodes);
  check(equal(decode_block(encode_block(most)), most), "as many nodes as a block can have");
  check_refused([&] { encode_block(random_nodes(1, block_nodes + 1)); }, "at most");
}

// What shares a byte in a block is apart in a node, and comes back as it was.
TEST(packed_fields_do_not_mix) {
  const auto back = [](const TraceNode& node) {
    TraceNode read;
    read.kind = node.kind;
    PackedNode::pack(node).unpack(read);
    return read;
  };
  TraceNode add;
  add.flags = Trait::compressed | Trait::writes_integer;
  add.timing.waiters = 48;
  add.timing.branches = {3, 9};
  check(back(add).flags == add.flags && back(add).timing.waiters == 48, "flags and waiters");
  check(back(add).timing.branches.count == 3 && back(add).timing.branches.after == 9, "branches");
  TraceNode load = add;
  load.kind = InstructionClass::load;
  load.size = 8;
  check(back(load).size == 8 && back(load).timing.branches.after == 9, "bytes and branches of an access");
  TraceNode branch;
  branch.kind = InstructionClass::branch;
  branch.flags = Trait::taken;
  branch.timing.prediction = Prediction::misfetch;
  branch.timing.branches = {1, 2};
  check(back(branch).timing.prediction == Prediction::misfetch, "a misfetch");
  check(back(branch).flags == Trait::taken && back(branch).timing.branches.count == 1, "of a taken branch");
  branch.timing.prediction = Prediction::mispredict;
  check(back(branch).timing.prediction == Prediction::mispredict, "a misprediction");
  check(back(branch).flags == Trait::taken, "is no trait of the instruction");
  TraceNode wait = sync_node(SyncKind::acquire, 0x1000, 0);
  wait.sleeps = true;
  wait.timing.branches = {15, 15};
  check(back(wait).sync == SyncKind::acquire && back(wait).sleeps, "synchronisation");
  check(back(wait).timing.branches.count == 15 && back(wait).flags == wait.flags, "its branches and flags");
  check_equal(WaiterCounts::rounded(11), 10, "a number of waiters that is rounded");
  check_equal(WaiterCounts::rounded(1000), 48, "the most");
}

// A loop over two arrays: a byte for each node, and little else.
TEST(loops_take_few_bytes) {
  std::vector<TraceNode> nodes;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    for (std::uint64_t array = 0; array < 3; ++array) {
      TraceNode node;
      node.pc = 0x10000010000 + 4 * array;
      node.kind = array == 2 ? InstructionClass::store : InstructionClass::load;
      node.address = 0x10000100000 + (array << 20) + 8 * (i % 500);
      node.size = 8;
      node.timing.weight = 1;
      node.producers = {static_cast<std::uint16_t>(array == 2 ? 1 : 3), 0, 0};
      nodes.push_back(node);
    }
  }
  const std::vector<std::uint8_t> bytes = encode_block(nodes);
  check_between(static_cast<double>(bytes.size()), 12000, 12200, "bytes of a loop of 12000 nodes");
  check(equal(decode_block(bytes), nodes), "the loop");
}

// Any change of the bytes either gives other nodes or is refused where it is, and never anything else.
TEST(damaged_blocks_are_refused) {
  const std::vector<std::uint8_t> bytes = encode_block(random_nodes(5, 200));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    try {
      decode_block({bytes.begin(), bytes.begin() + static_cast<long>(length)});
      check(false, "a block that was cut off should be refused");
    } catch (const BlockError& error) {
      check(error.offset() <= length, "the offset is within the block");
    }
  }
  std::mt19937_64 random(1);
  std::size_t refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<std::uint8_t> damaged = bytes;
    damaged[random() % damaged.size()] ^= static_cast<std::uint8_t>(1 << random() % 8);
    try {
      check(decode_block(damaged).size() <= block_nodes, "no more nodes than a block can have");
    } catch (const BlockError&) {
      ++refused;
    }
  }
  check(refused > 1000, "damage is often seen");
  check_refused([] { decode_block({2, 0}); }, "version 2");
  check_refused([] { decode_block({1, 0xff, 0xff, 0x7f}); }, "number of nodes");
  check_refused([] { decode_block({1, 1, 0}); }, "no template");
  check_refused([] { decode_block({1, 0, 0}); }, "after its last node");
  check_refused([] { decode_block({1, 1, 0xff}); }, "begins with 255");
}

}  // namespace
