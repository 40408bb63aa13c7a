// SPDX-License-Identifier: Apache-2.0
// A binary heap: small and plain, the reference that other queues are compared with.
#pragma once
#include <algorithm>

#include "engine/queue.hpp"

namespace manyscale {

class HeapQueue final : public EventQueue {
 public:
  void push(const Event& event) override {
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end(), Later{});
  }

  const Event* pop_before(Time end) override {
    if (heap_.empty() || heap_.front().time >= end) return nullptr;
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    current_ = heap_.back();
    heap_.pop_back();
    return &current_;
  }

  const Event& front() const { return heap_.front(); }
  Time next_time() override { return heap_.empty() ? never : heap_.front().time; }
  std::size_t size() const override { return heap_.size(); }

  void drain(std::vector<Event>& events) override {
    events.insert(events.end(), heap_.begin(), heap_.end());
    heap_.clear();
  }

  std::size_t bytes() const override { return heap_.capacity() * sizeof(Event); }

 private:
  struct Later {
    bool operator()(const Event& a, const Event& b) const { return earlier(b, a); }
  };

  std::vector<Event> heap_;
  Event current_{};
};

}  // namespace manyscale
