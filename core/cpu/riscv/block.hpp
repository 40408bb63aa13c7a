// SPDX-License-Identifier: Apache-2.0
// Decoded code: blocks of operations that call each other directly. A block is entered at its first
// operation only, follows unconditional jumps and branches that are not taken, and is left by branches that
// are taken. There are two sorts of operations, with and without what is needed to write records.
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <memory_resource>
#include <unordered_map>

#include "cpu/riscv/hart.hpp"
#include "cpu/stream/record.hpp"

namespace manyscale::cpu::riscv {

struct Machine;
template <class Op>
struct Block;

// Executes an operation and those after it. Returns the operation to go on with, or nullptr to stop (the
// machine knows why). Going on may mean a call in tail position or a return to the caller's loop.
template <class Op>
using Run = const Op* (*)(const Op* operation, Hart* hart, Machine* machine);

// One decoded instruction, ready to execute.
template <class Op>
struct OperationOf {
  Run<Op> run = nullptr;
  union {
    mutable const Block<Op>* link;  // of branches: the block at the target, once it is known
    std::uint64_t value;            // of others: a constant known when decoding
  };
  std::uint64_t pc = 0;
  std::int32_t immediate = 0;
  std::uint8_t rd = 0, rs1 = 0, rs2 = 0;
  std::uint8_t done = 0;  // instructions of the block executed when it is left behind this operation

  OperationOf() : value(0) {}
};

struct PlainOperation : OperationOf<PlainOperation> {
  static constexpr bool records = false;
};

// What is known of a record when its instruction is decoded.
struct Note {
  InstructionClass kind = InstructionClass::integer;
  std::uint8_t flags = 0, size = 0, format = 0;
  std::array<std::uint8_t, 3> sources{};  // x0 to x31, then f0 to f31; 0: none
  std::uint8_t destination = 0;
};

struct RecordingOperation : OperationOf<RecordingOperation> {
  static constexpr bool records = true;
  Note note;
};

template <class Op>
struct Block {
  std::uint64_t pc = 1;  // odd: no block
  // Instructions from its first to its last operation. A block that is not there has more than any budget.
  std::int64_t length = std::numeric_limits<std::int64_t>::max();
  bool marked = false;  // its first operation stops at a marker; the second is the one behind the marker
  const Op* operations = nullptr;
};

// All blocks of one sort, found by their pc.
template <class Op>
class BlockCache {
 public:
  BlockCache() { forget(); }

  const Block<Op>* find(std::uint64_t pc) const {
    const auto found = blocks_.find(pc);
    return found != blocks_.end() ? found->second : nullptr;
  }
  void add(const Block<Op>* block) { blocks_[block->pc] = block; }
  void remember_jump(const Block<Op>* block) { jumps_[jump_index(block->pc)] = block; }
  // The block that an indirect jump goes to, if it went there lately; else one with another pc.
  const Block<Op>* jump(std::uint64_t pc) const { return jumps_[jump_index(pc)]; }

  void forget() {
    blocks_.clear();
    memory_.release();
    jumps_.fill(&nowhere);
    bytes_ = 0;
  }
  // Memory for a block with so many operations.
  void* allocate(std::size_t bytes) {
    bytes_ += bytes;
    return memory_.allocate(bytes, 64);
  }
  std::size_t bytes() const { return bytes_; }

  static const Block<Op> nowhere;

 private:
  static constexpr std::size_t jumps = 4096;
  static std::size_t jump_index(std::uint64_t pc) { return pc >> 1 & (jumps - 1); }

  std::array<const Block<Op>*, jumps> jumps_;
  std::unordered_map<std::uint64_t, const Block<Op>*> blocks_;
  std::pmr::monotonic_buffer_resource memory_{1 << 16};
  std::size_t bytes_ = 0;
};

template <class Op>
inline constexpr Block<Op> BlockCache<Op>::nowhere{};

}  // namespace manyscale::cpu::riscv
