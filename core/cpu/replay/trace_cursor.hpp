// SPDX-License-Identifier: Apache-2.0
// Trace cursors: the streams of a recorded trace read node by node, several copies of them at once.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "cpu/replay/recorded_trace.hpp"
#include "cpu/trace/trace_node.hpp"

namespace manyscale::cpu {

// The decoded blocks that cursors are in, and some that were left lately: copies of a thread follow each
// other closely.
class TraceBlocks {
 public:
  using Block = std::shared_ptr<const std::vector<TraceNode>>;

  explicit TraceBlocks(const RecordedTrace& trace) : trace_(trace) {}

  // Throws SimulationError if the block's bytes are not right.
  Block get(std::uint32_t stream, std::uint32_t number);
  std::uint64_t decoded() const { return decoded_; }

 private:
  static constexpr std::size_t most_kept = 32;

  const RecordedTrace& trace_;
  std::unordered_map<std::uint64_t, std::weak_ptr<const std::vector<TraceNode>>> blocks_;
  std::deque<Block> kept_;
  std::uint64_t decoded_ = 0;
};

// Where one replica is in its stream.
class TraceCursor {
 public:
  explicit TraceCursor(std::uint32_t stream) : stream_(stream) {}

  // The next node or marker; nullptr at the end. Valid until the next call.
  const TraceNode* next(TraceBlocks& blocks, const RecordedTrace& trace) {
    const TraceNode* node = peek(blocks, trace);
    at_ += node != nullptr;
    return node;
  }
  // The same, without going on.
  const TraceNode* peek(TraceBlocks& blocks, const RecordedTrace& trace) {
    while (at_ == end_) {
      if (!load(blocks, trace)) return nullptr;
    }
    return at_;
  }

 private:
  bool load(TraceBlocks& blocks, const RecordedTrace& trace);

  std::uint32_t stream_;
  std::uint32_t block_ = 0;  // the next one
  TraceBlocks::Block nodes_;
  const TraceNode* at_ = nullptr;
  const TraceNode* end_ = nullptr;
};

// Moves the data of copies of a program apart: each copy's private data to address spaces of their own;
// what threads share stays where it is.
class CopyOffset {
 public:
  // Throws SimulationError if the addresses have no room for that many copies.
  CopyOffset(const RecordedTrace& trace, std::uint32_t copies);

  std::uint64_t move(std::uint64_t address, std::uint32_t copy) {
    if (address < begin_ || address >= end_) find(address);
    return shared_ ? address : address + copy * step_;
  }

 private:
  void find(std::uint64_t address);

  std::vector<SharedRange> ranges_;  // sorted, apart from each other
  std::uint64_t step_;
  // The last address was in a range that is shared, or in one between those.
  std::uint64_t begin_ = 0, end_ = 0;
  bool shared_ = false;
};

}  // namespace manyscale::cpu
