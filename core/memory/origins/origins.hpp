// SPDX-License-Identifier: Apache-2.0
// Numbers for those on whose behalf a memory system works, and what it did for each of them.
#pragma once
#include <deque>
#include <span>
#include <vector>

#include "memory/dram/dram.hpp"
#include "memory/interconnect/crossbar.hpp"
#include "memory/shared/shared_cache.hpp"

namespace manyscale::memory {

// What shared caches, crossbars and channels of memory have counted, each kind together.
struct Traffic {
  CacheCounts cache;
  InterconnectCounts crossbar;
  DramCounts dram;

  void add(const Traffic& other);
};

// Gives numbers out and takes them back, between runs. Each part of the memory system has counters for every
// number that is in use, so numbers are used again: but not before the last write that is still on its way to
// memory has been counted. What is counted for a number that was given back belongs to nobody.
class Origins {
 public:
  // The parts that count; others are refused.
  explicit Origins(std::span<Component* const> parts);

  Origin open();
  // What was done on behalf of one, which has ended.
  Traffic close(Origin origin);
  // Numbers that were ever given out.
  Origin size() const { return next_ - 1; }
  // What was done on behalf of nobody, or of one that had ended.
  Traffic other() const;

 private:
  bool idle(Origin origin) const;
  Traffic of(Origin origin) const;
  Traffic take(Origin origin);

  std::vector<SharedCache*> caches_;
  std::vector<Crossbar*> crossbars_;
  std::vector<Dram*> channels_;
  std::deque<Origin> closed_;  // the first is used again first
  Origin next_ = nobody + 1;
  Traffic late_;  // counted for numbers that were given back, up to their next use
};

}  // namespace manyscale::memory
