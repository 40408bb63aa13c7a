// SPDX-License-Identifier: Apache-2.0
#include "cpu/replay/trace_cursor.hpp"

#include <algorithm>

#include "cpu/trace/block.hpp"
#include "engine/component.hpp"

namespace manyscale::cpu {

TraceBlocks::Block TraceBlocks::get(std::uint32_t stream, std::uint32_t number) {
  auto& known = blocks_[std::uint64_t{stream} << 32 | number];
  if (Block block = known.lock()) return block;
  try {
    auto block = std::make_shared<const std::vector<TraceNode>>(
        decode_block(trace_.block(stream, number), trace_.slower_hits));
    ++decoded_;
    known = block;
    kept_.push_back(block);
    if (kept_.size() > most_kept) kept_.pop_front();
    if (blocks_.size() > 4096) std::erase_if(blocks_, [](const auto& each) { return each.second.expired(); });
    return block;
  } catch (const BlockError& error) {
    throw SimulationError("block " + std::to_string(number) + " of stream " + std::to_string(stream) +
                          " of the trace is damaged: " + error.what());
  }
}

bool TraceCursor::load(TraceBlocks& blocks, const RecordedTrace& trace) {
  if (block_ >= trace.streams[stream_].blocks) {
    nodes_.reset();
    at_ = end_ = nullptr;
    return false;
  }
  nodes_ = blocks.get(stream_, block_++);
  at_ = nodes_->data();
  end_ = at_ + nodes_->size();
  return true;
}

CopyOffset::CopyOffset(const RecordedTrace& trace, std::uint32_t copies) : ranges_(trace.shared) {
  // Bits 40 and up of an address are the number of its process + 1 (linux/address_space.hpp).
  std::uint64_t processes = 1;
  for (const StreamInfo& stream : trace.streams)
    processes = std::max<std::uint64_t>(processes, stream.process + std::uint64_t{1});
  step_ = processes << 40;
  if (processes * copies >= 1u << 23) {
    throw SimulationError("there is no room for " + std::to_string(copies) + " copies of " +
                          std::to_string(processes) + " processes");
  }
  std::erase_if(ranges_, [](const SharedRange& range) { return range.begin >= range.end; });
  std::sort(ranges_.begin(), ranges_.end(),
            [](const SharedRange& a, const SharedRange& b) { return a.begin < b.begin; });
  std::vector<SharedRange> apart;
  for (const SharedRange& range : ranges_) {
    if (!apart.empty() && range.begin <= apart.back().end) {
      apart.back().end = std::max(apart.back().end, range.end);
    } else {
      apart.push_back(range);
    }
  }
  ranges_ = std::move(apart);
}

void CopyOffset::find(std::uint64_t address) {
  const auto next =
      std::upper_bound(ranges_.begin(), ranges_.end(), address,
                       [](std::uint64_t value, const SharedRange& range) { return value < range.end; });
  shared_ = next != ranges_.end() && next->begin <= address;
  if (shared_) {
    begin_ = next->begin;
    end_ = next->end;
  } else {
    begin_ = next == ranges_.begin() ? 0 : std::prev(next)->end;
    end_ = next == ranges_.end() ? ~std::uint64_t{0} : next->begin;
  }
}

}  // namespace manyscale::cpu
