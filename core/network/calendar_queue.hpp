// SPDX-License-Identifier: Apache-2.0
// What a group of switches has to do, by windows of time. What falls into one window is sorted when the
// window is opened; ties are broken by what is to be done, not by when that was noted.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/time.hpp"

namespace manyscale::network {

// What is to be done: let the first packet of a lane leave, or a certain packet, or those that wait for room
// in a lane.
enum class Task : std::uint32_t { serve_lane, serve_packet, wake };

// Something to do at a time, for a lane or packet of that number.
struct CalendarEntry {
  Time time = 0;
  std::uint32_t number = 0;
  Task task = Task::serve_lane;

  friend bool operator<(const CalendarEntry& a, const CalendarEntry& b) {
    if (a.time != b.time) return a.time < b.time;
    return a.number != b.number ? a.number < b.number : a.task < b.task;
  }
};

class CalendarQueue {
 public:
  static constexpr std::int64_t reach = 2048;  // windows that can be noted ahead

  explicit CalendarQueue(Time window) : window_(window) {}

  Time window() const { return window_; }
  std::int64_t window_of(Time time) const { return time / window_; }

  // Notes something for a window not yet opened; true if it is the first of that window.
  bool add(const CalendarEntry& entry) {
    Bucket& bucket = buckets_[static_cast<std::size_t>(window_of(entry.time) % reach)];
    const bool first = bucket.last == nullptr;
    if (first || bucket.last->used == chunk_size) {
      Chunk* chunk = take_chunk();
      chunk->before = bucket.last;
      bucket.last = chunk;
    }
    bucket.last->items[bucket.last->used++] = entry;
    return first;
  }
  // Notes something for the window that is open.
  void add_late(const CalendarEntry& entry) {
    late_.push_back(entry);
    std::push_heap(late_.begin(), late_.end(), later);
  }

  // Opens the window of a time: sorts what is due in it.
  void open(Time time) {
    Bucket& bucket = buckets_[static_cast<std::size_t>(window_of(time) % reach)];
    items_.clear();
    next_ = 0;
    for (Chunk* chunk = bucket.last; chunk != nullptr; chunk = give_back(chunk))
      items_.insert(items_.end(), chunk->items.begin(), chunk->items.begin() + chunk->used);
    bucket.last = nullptr;
    std::sort(items_.begin(), items_.end());
  }
  // The next thing of the open window, or false.
  bool take(CalendarEntry& entry) {
    if (late_.empty()) {
      if (next_ == items_.size()) return false;
      entry = items_[next_++];
      return true;
    }
    if (next_ < items_.size() && items_[next_] < late_.front()) {
      entry = items_[next_++];
      return true;
    }
    std::pop_heap(late_.begin(), late_.end(), later);
    entry = late_.back();
    late_.pop_back();
    return true;
  }
  // What comes up a few entries later, for the processor to fetch it ahead.
  const CalendarEntry* ahead(std::size_t entries) const {
    return next_ + entries < items_.size() ? &items_[next_ + entries] : nullptr;
  }

 private:
  static constexpr std::uint32_t chunk_size = 30;

  struct Chunk {
    Chunk* before;
    std::uint32_t used;
    std::array<CalendarEntry, chunk_size> items;
  };
  struct Bucket {
    Chunk* last = nullptr;
  };

  static bool later(const CalendarEntry& a, const CalendarEntry& b) { return b < a; }

  Chunk* take_chunk() {
    if (free_ == nullptr) {
      chunks_.push_back(std::make_unique_for_overwrite<Chunk>());
      free_ = chunks_.back().get();
      free_->before = nullptr;
    }
    Chunk* chunk = free_;
    free_ = chunk->before;
    chunk->used = 0;
    return chunk;
  }
  Chunk* give_back(Chunk* chunk) {
    Chunk* before = chunk->before;
    chunk->before = free_;
    free_ = chunk;
    return before;
  }

  Time window_;
  std::array<Bucket, reach> buckets_{};
  std::vector<CalendarEntry> items_;
  std::size_t next_ = 0;
  std::vector<CalendarEntry> late_;  // a heap
  std::vector<std::unique_ptr<Chunk>> chunks_;
  Chunk* free_ = nullptr;
};

}  // namespace manyscale::network
