// SPDX-License-Identifier: Apache-2.0
// Blocks of a trace: what is read is what was written, in few bytes, and bytes that are no block are named.
#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "cpu/trace/block.hpp"
#include "cpu/trace/sync_node.hpp"
#include "test_checks.hpp"

using namespace manyscale;
using namespace manyscale::cpu;
using namespace manyscale::test;

namespace {

bool equal(const std::vector<Record>& left, const std::vector<Record>& right) {
  return std::ranges::equal(
      left, right, [](const Record& a, const Record& b) { return std::memcmp(&a, &b, sizeof(Record)) == 0; });
}

// Nodes without any order, with values at the edges of their fields.
std::vector<Record> random_nodes(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  const std::uint64_t places = 1 + random() % 200;
  std::vector<Record> nodes;
  for (std::size_t i = 0; i < count; ++i) {
    Record node;
    const std::uint64_t place = random() % places;
    node.pc = random() % 20 == 0 ? random() : 0x10000000000 + 4 * place;
    node.kind = static_cast<Kind>(place % kinds);
    node.flags = static_cast<std::uint8_t>(random() % 7 == 0 ? random() : place);
    node.size = static_cast<std::uint8_t>(node.kind == Kind::system ? random() % sync_kinds : place % 9);
    node.format = static_cast<std::uint8_t>(random() % 9 == 0 ? random() : 8);
    node.thread = static_cast<std::uint16_t>(random() % 30 == 0 ? random() : 3);
    if (node.kind >= Kind::load) node.address = random() % 5 == 0 ? random() : 0x10000000000 + 8 * i;
    for (std::size_t k = 0; k < 3; ++k) {
      const std::uint64_t choice = random() % 8;
      node.producers[k] = static_cast<std::uint16_t>(choice == 0 ? random() : choice < 4 ? 0 : choice);
      node.delays[k] = static_cast<std::uint8_t>(random() % 8 == 0 ? random() : 0);
    }
    node.weight = static_cast<std::uint8_t>(random() % 10 == 0 ? random() : 2);
    nodes.push_back(node);
  }
  return nodes;
}

TEST(blocks_give_back_what_they_were_given) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const std::vector<Record> nodes = random_nodes(seed, seed == 0 ? 0 : seed < 30 ? seed : 3000);
    check(equal(decode_block(encode_block(nodes)), nodes), "random nodes, seed " + std::to_string(seed));
  }
  const std::vector<Record> most = random_nodes(99, block_nodes);
  check(equal(decode_block(encode_block(most)), most), "as many nodes as a block can have");
  check_refused([&] { encode_block(random_nodes(1, block_nodes + 1)); }, "at most");
}

// A loop over two arrays: a byte for each node, and little else.
TEST(loops_take_few_bytes) {
  std::vector<Record> nodes;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    for (std::uint64_t array = 0; array < 3; ++array) {
      Record node;
      node.pc = 0x10000010000 + 4 * array;
      node.kind = array == 2 ? Kind::store : Kind::load;
      node.address = 0x10000100000 + (array << 20) + 8 * (i % 500);
      node.size = 8;
      node.weight = 1;
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
      check(error.offset() <= length, "the place is within the block");
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
