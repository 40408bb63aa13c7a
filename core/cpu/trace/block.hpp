// SPDX-License-Identifier: Apache-2.0
// A block of a recorded trace: some consecutive nodes of one stream as bytes, as few as can be had cheaply.
// A block can be read without those before it, and any bytes can be given to its reader.
//
// The bytes: a header (version, nodes), then for each node one control byte and what does not follow from the
// nodes before it. A template is what an instruction has in common each time it is executed; a node's
// template is guessed from what followed the last time, its shape (producers, delays, weight) is one of the
// last of its template, and its address goes on by the last stride.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "cpu/trace/trace_node.hpp"

namespace manyscale::cpu {

// Bytes that are no block: what is wrong, and where.
class BlockError : public std::runtime_error {
 public:
  BlockError(std::size_t offset, const std::string& what);
  std::size_t offset() const { return offset_; }

 private:
  std::size_t offset_;
};

inline constexpr std::size_t block_nodes = 16'384;  // most in a block, markers included

// How many L1 hits are in each delay of a node.
using L1Hits = std::array<std::uint8_t, 3>;

// `hits` are those of each node; or empty: there are none.
std::vector<std::uint8_t> encode_block(std::span<const TraceNode> nodes, std::span<const L1Hits> hits = {});

namespace block {

// Producers, delays and weight. Aligned, so that copies are one move: shapes are swapped all the time.
struct alignas(16) Shape {
  std::array<std::uint16_t, 3> producers{};  // as packed
  std::array<std::uint8_t, 3> delays{};
  L1Hits hits{};
  std::uint8_t weight = 0;
  bool operator==(const Shape&) const = default;
};

// What an instruction was like and did until now.
struct Template {
  static constexpr std::size_t shapes_kept = 8;

  TraceNode fixed{};  // all but address and shape
  std::uint64_t address = 0;
  std::uint64_t stride = 0;
  std::uint64_t last_difference = 0;        // between addresses, other than the stride
  std::uint32_t next = 0;                   // template that followed the last time
  std::array<Shape, shapes_kept> shapes{};  // the last used first
};

}  // namespace block

// Reads the nodes of a block one after the other; keeps the bytes.
class BlockReader {
 public:
  // Throws BlockError, as `next` does. Delays are given by `slower_hits` cycles longer for each L1 hit
  // in them.
  explicit BlockReader(std::vector<std::uint8_t> bytes, int slower_hits = 0);

  std::size_t nodes() const { return nodes_; }
  std::size_t left() const { return nodes_ - read_; }
  // The next node; not to be asked for when none are left.
  TraceNode next();

 private:
  std::uint8_t byte();
  std::uint64_t number();
  std::uint64_t number_below(std::uint64_t limit, const char* what);
  std::uint32_t read_template();
  block::Shape read_shape();
  [[noreturn]] void fail(const std::string& what) const;

  std::vector<std::uint8_t> bytes_;
  std::size_t at_ = 0;
  std::size_t nodes_ = 0, read_ = 0;
  std::vector<block::Template> templates_;
  std::uint32_t current_ = 0;
  std::uint64_t last_pc_ = 0;
  int slower_hits_;
};

// All nodes of a block.
std::vector<TraceNode> decode_block(std::vector<std::uint8_t> bytes, int slower_hits = 0);

}  // namespace manyscale::cpu
