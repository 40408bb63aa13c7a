// SPDX-License-Identifier: Apache-2.0
// The streams of a trace that is being recorded: each is compacted (compactor.hpp), and leaves as blocks
// (block.hpp).
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/trace/compactor.hpp"
#include "cpu/trace/latencies.hpp"
#include "cpu/trace/recorder.hpp"

namespace manyscale::cpu {

class RecordedStreams {
 public:
  // What leaves is counted in `statistics`.
  RecordedStreams(const CoreSpec& core, const CompactionTuning& tuning, RecorderStatistics& statistics,
                  Recorder::BlockSink sink);

  const Latencies& latencies() const { return latencies_; }
  const std::vector<StreamInfo>& infos() const { return infos_; }

  // Begins a stream; gives its number.
  std::uint32_t open(StreamInfo info);
  // The next instruction, sync node or marker of a stream.
  void add(std::uint32_t stream, const TraceNode& record, const FilterResult& filter = {});
  // The stream ends: all of it leaves.
  void close(std::uint32_t stream);
  // How many were added to a stream that has not ended.
  std::uint64_t instructions(std::uint32_t stream) const { return compactors_[stream]->instructions(); }

 private:
  void write_block(std::uint32_t stream);

  const CompactionLimits limits_;
  const Latencies latencies_;
  RecorderStatistics& statistics_;
  Recorder::BlockSink sink_;
  std::vector<StreamInfo> infos_;
  std::vector<std::unique_ptr<TraceCompactor>> compactors_;  // of streams that have not ended
  std::vector<std::unique_ptr<TraceCompactor>> spare_;
};

}  // namespace manyscale::cpu
