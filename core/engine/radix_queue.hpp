// SPDX-License-Identifier: Apache-2.0
// A queue for simulation: events wait unsorted in buckets by the first digit of their time that differs from
// a moving base, and only the few that are due next are sorted. Each event moves down a few levels, whatever
// the spread of times, so the cost does not grow with the number pending as a heap's does.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <memory>

#include "engine/heap_queue.hpp"
#include "engine/queue.hpp"

namespace manyscale {

class RadixQueue final : public EventQueue {
 public:
  void push(const Event& event) override {
    if (event.time < limit_) {
      if (run_.size() < insert_at_most) {
        insert(event);
      } else {
        late_.push(event);
      }
    } else {
      append(event);
      ++waiting_;
    }
  }

  const Event* pop_before(Time end) override {
    if (run_.empty() && late_.size() == 0 && !refill()) return nullptr;
    if (!run_.empty()) {
      const Event& event = run_.back();
      if (late_.size() == 0 || earlier(event, late_.front())) {
        if (event.time >= end) return nullptr;
        current_ = event;
        run_.pop_back();
        return &current_;
      }
    }
    return late_.pop_before(end);
  }

  Time next_time() override {
    if (run_.empty() && late_.size() == 0 && !refill()) return never;
    const Time due = run_.empty() ? never : run_.back().time;
    return std::min(due, late_.next_time());
  }

  std::size_t size() const override { return waiting_ + late_.size() + run_.size(); }

  void drain(std::vector<Event>& events) override {
    events.reserve(events.size() + size());  // nothing can fail behind this
    events.insert(events.end(), run_.begin(), run_.end());
    run_.clear();
    late_.drain(events);
    for (int level = 0; level < levels; ++level) {
      for (int digit = 0; digit < fan_out; ++digit) take(level, digit, events);
    }
    waiting_ = 0;
    base_ = limit_ = 0;
  }

  std::size_t bytes() const override {
    return chunks_.size() * sizeof(Chunk) + run_.capacity() * sizeof(Event) + late_.bytes() + sizeof(*this);
  }

 private:
  static constexpr int digit_bits = 6;
  static constexpr int fan_out = 1 << digit_bits;
  static constexpr int levels = (63 + digit_bits - 1) / digit_bits;
  static constexpr std::size_t chunk_events = 16;
  static constexpr std::size_t sort_at_most = 16;  // a bucket this small is sorted at once, not split further
  static constexpr std::size_t insert_at_most = 96;  // a run this short takes late events in

  struct Chunk {
    std::array<Event, chunk_events> events;
    Chunk* next;
    std::uint32_t used;
  };
  struct Bucket {
    Chunk* head = nullptr;
    std::size_t size = 0;
  };

  // Puts a late event where it belongs in the run. Most are due soon, so few have to make way.
  void insert(const Event& event) {
    run_.push_back(event);
    auto at = run_.size() - 1;
    for (; at > 0 && earlier(run_[at - 1], event); --at) run_[at] = run_[at - 1];
    run_[at] = event;
  }

  // Puts an event that is not before the limit into its bucket.
  void append(const Event& event) {
    const auto differing = static_cast<std::uint64_t>(event.time ^ base_);
    const int level = differing == 0 ? 0 : (63 - std::countl_zero(differing)) / digit_bits;
    const int digit = static_cast<int>(event.time >> (level * digit_bits)) & (fan_out - 1);
    Bucket& bucket = buckets_[static_cast<std::size_t>(level)][static_cast<std::size_t>(digit)];
    Chunk* head = bucket.head;
    if (head == nullptr || head->used == chunk_events) {
      head = new_chunk();
      head->next = bucket.head;
      bucket.head = head;
      occupied_[static_cast<std::size_t>(level)] |= std::uint64_t{1} << digit;
    }
    head->events[head->used++] = event;
    ++bucket.size;
  }

  // Sorts the bucket that is due next into the run; false when nothing waits.
  bool refill() {
    if (waiting_ == 0) return false;
    for (;;) {
      int level = 0;
      while (occupied_[static_cast<std::size_t>(level)] == 0) ++level;
      const int digit = std::countr_zero(occupied_[static_cast<std::size_t>(level)]);
      const int shift = level * digit_bits;
      const std::size_t size =
          buckets_[static_cast<std::size_t>(level)][static_cast<std::size_t>(digit)].size;
      // The bucket holds the times that agree with the base above this level and have this digit here.
      const Time above = (base_ >> shift >> digit_bits) << digit_bits << shift;
      base_ = above | static_cast<Time>(digit) << shift;
      if (level == 0 || size <= sort_at_most) {
        run_.reserve(run_.size() + size);
        take(level, digit, run_);
        waiting_ -= size;
        limit_ = add_saturating(base_, Time{1} << shift);
        std::sort(run_.begin(), run_.end(), [](const Event& a, const Event& b) { return earlier(b, a); });
        return true;
      }
      Chunk* chunk = detach(level, digit);
      limit_ = base_;
      std::size_t appended = 0;
      try {
        while (chunk != nullptr) {
          for (std::uint32_t i = 0; i < chunk->used; ++i, ++appended) append(chunk->events[i]);
          chunk = release(chunk);
        }
      } catch (...) {  // without memory the rest is lost, and the run fails; what waits is counted right
        while (chunk != nullptr) chunk = release(chunk);
        waiting_ -= size - appended;
        throw;
      }
    }
  }

  Chunk* detach(int level, int digit) {
    Bucket& bucket = buckets_[static_cast<std::size_t>(level)][static_cast<std::size_t>(digit)];
    Chunk* head = bucket.head;
    bucket = Bucket{};
    occupied_[static_cast<std::size_t>(level)] &= ~(std::uint64_t{1} << digit);
    return head;
  }

  void take(int level, int digit, std::vector<Event>& events) {
    for (Chunk* chunk = detach(level, digit); chunk != nullptr; chunk = release(chunk)) {
      events.insert(events.end(), chunk->events.begin(), chunk->events.begin() + chunk->used);
    }
  }

  Chunk* new_chunk() {
    if (free_ == nullptr) {
      chunks_.push_back(std::make_unique_for_overwrite<Chunk>());
      free_ = chunks_.back().get();
      free_->next = nullptr;
    }
    Chunk* chunk = free_;
    free_ = chunk->next;
    chunk->used = 0;
    return chunk;
  }

  Chunk* release(Chunk* chunk) {
    Chunk* next = chunk->next;
    chunk->next = free_;
    free_ = chunk;
    return next;
  }

  Time base_ = 0;           // every waiting event is in the bucket of its first digit that differs from this
  Time limit_ = 0;          // the run and the late ones hold all events before this time
  std::vector<Event> run_;  // those due next, the first of them last
  HeapQueue late_;          // pushed after their bucket was sorted, when the run was long
  Event current_{};
  std::size_t waiting_ = 0;
  std::array<std::array<Bucket, fan_out>, levels> buckets_{};
  std::array<std::uint64_t, levels> occupied_{};
  std::vector<std::unique_ptr<Chunk>> chunks_;
  Chunk* free_ = nullptr;
};

}  // namespace manyscale
