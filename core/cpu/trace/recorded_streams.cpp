// SPDX-License-Identifier: Apache-2.0
#include "cpu/trace/recorded_streams.hpp"

#include <algorithm>
#include <utility>

#include "cpu/trace/block.hpp"

namespace manyscale::cpu {

namespace {

CompactionLimits compaction_limits(const CoreSpec& core, const CompactionTuning& tuning) {
  // So few are compacted into one node that they are much less than the reorder buffer holds.
  return {.width = static_cast<std::uint64_t>(core.dispatch_width),
          .reorder_buffer = static_cast<std::uint64_t>(core.reorder_buffer),
          .max_compacted = static_cast<std::uint32_t>(
              std::clamp(static_cast<double>(core.reorder_buffer) * tuning.reorder_buffer_share, 8.0, 255.0)),
          .tuning = tuning};
}

}  // namespace

RecordedStreams::RecordedStreams(const CoreSpec& core, const CompactionTuning& tuning,
                                 RecorderStatistics& statistics, Recorder::BlockSink sink)
    : limits_(compaction_limits(core, tuning)),
      latencies_(core),
      statistics_(statistics),
      sink_(std::move(sink)) {}

std::uint32_t RecordedStreams::open(StreamInfo info) {
  const auto number = static_cast<std::uint32_t>(infos_.size());
  infos_.push_back(std::move(info));
  if (spare_.empty()) spare_.push_back(std::make_unique<TraceCompactor>(latencies_, limits_));
  compactors_.push_back(std::move(spare_.back()));
  spare_.pop_back();
  return number;
}

void RecordedStreams::close(std::uint32_t stream) {
  TraceCompactor& compactor = *compactors_[stream];
  compactor.flush();
  while (!compactor.nodes().empty()) write_block(stream);
  compactor.reset();
  spare_.push_back(std::move(compactors_[stream]));
}

void RecordedStreams::add(std::uint32_t stream, const TraceNode& record, const FilterResult& filter) {
  TraceCompactor& compactor = *compactors_[stream];
  compactor.take(record, filter);
  if (compactor.nodes().size() >= block_nodes) write_block(stream);
}

void RecordedStreams::write_block(std::uint32_t stream) {
  std::vector<TraceNode>& nodes = compactors_[stream]->nodes();
  std::vector<L1Hits>& hits = compactors_[stream]->l1_hits();
  const std::size_t count = std::min(nodes.size(), block_nodes);
  const std::span<const TraceNode> written(nodes.data(), count);
  StreamInfo& info = infos_[stream];
  RecordedBlock block{.stream = stream, .number = info.blocks++, .nodes = static_cast<std::uint32_t>(count)};
  std::uint64_t without_markers = 0;
  for (const TraceNode& node : written) {
    if (node.kind == InstructionClass::marker) continue;
    ++without_markers;
    block.instructions += node.timing.instructions();
    statistics_.mispredicted += node.timing.prediction == Prediction::mispredict;
  }
  block.bytes = encode_block(written, {hits.data(), count});
  info.nodes += without_markers;
  info.instructions += block.instructions;
  info.bytes += block.bytes.size();
  statistics_.nodes += without_markers;
  statistics_.instructions += block.instructions;
  statistics_.bytes += block.bytes.size();
  nodes.erase(nodes.begin(), nodes.begin() + static_cast<long>(count));
  hits.erase(hits.begin(), hits.begin() + static_cast<long>(count));
  sink_(std::move(block));
}

}  // namespace manyscale::cpu
