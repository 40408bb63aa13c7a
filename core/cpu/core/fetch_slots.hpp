// SPDX-License-Identifier: Apache-2.0
// Fetch slots: the cycle in which the next instruction is fetched, and what is left of that cycle's width.
// The instructions compacted into a replayed node take slots before it; leaves out their bytes.
#pragma once
#include <algorithm>
#include <cstdint>

#include "cpu/stream/elastic_timing.hpp"
#include "cpu/stream/record.hpp"
#include "engine/time.hpp"

namespace manyscale::cpu {

class FetchSlots {
 public:
  FetchSlots(std::int64_t width, std::int64_t bytes) : width_(width), bytes_(bytes) {}

  Cycle cycle() const { return cycle_; }
  // Fetch goes on in this cycle, with its whole width.
  void restart(Cycle cycle) {
    cycle_ = cycle;
    left_ = width_;
    bytes_left_ = bytes_;
  }
  // The instruction fetched last is the last of its cycle: a taken branch, or one after which fetch stops.
  void end_cycle() { left_ = 0; }
  void stall(Cycle cycles) { cycle_ += cycles; }

  // Moves on to the cycle that has a slot for the record. It may be called again before the record is taken.
  void find_slot(const Record& record, const ElasticTiming& timing) {
    if (timing.weight > 0 && !compacted_taken_) {
      take_compacted(timing);
      compacted_taken_ = true;
    }
    if (left_ > 0 && bytes_left_ >= bytes_of(record)) return;
    ++cycle_;
    left_ = std::min<std::int64_t>(left_, 0) + width_;
    bytes_left_ = bytes_;
  }
  void take(const Record& record) {
    --left_;
    bytes_left_ -= bytes_of(record);
    compacted_taken_ = false;
  }

 private:
  static std::int64_t bytes_of(const Record& record) { return record.has(Trait::compressed) ? 2 : 4; }

  void take_slots(std::int64_t instructions) {
    // They are few: counting is faster than dividing.
    for (; instructions >= width_; instructions -= width_) ++cycle_;
    left_ -= instructions;
  }
  // A taken branch among the compacted instructions ends its cycle. Most are those of one loop, so the
  // instructions between them are taken to be equally many.
  void take_compacted(const ElasticTiming& timing) {
    const CompactedBranches branches = timing.branches;
    const std::int64_t after = std::min<std::int64_t>(branches.after, timing.weight);
    std::int64_t before = timing.weight - after;
    for (std::int64_t left = branches.count; left > 0; --left) {
      const std::int64_t part = left == 1 ? before : before / left;
      before -= part;
      take_slots(part);
      if (left_ < 0) ++cycle_;
      left_ = 0;
    }
    take_slots(before + after);
  }

  const std::int64_t width_, bytes_;
  Cycle cycle_ = 0;
  std::int64_t left_ = 0, bytes_left_ = 0;  // of the cycle; below 0: of the next one, too
  bool compacted_taken_ = false;            // those of the next record
};

}  // namespace manyscale::cpu
