// SPDX-License-Identifier: Apache-2.0
// Pending events of one partition, taken out in the order of `earlier`. Queues can be swapped; all give the
// same order.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/event.hpp"

namespace manyscale {

class EventQueue {
 public:
  virtual ~EventQueue() = default;

  virtual void push(const Event& event) = 0;
  // The first event if its time is before `end`, else nullptr. It is no longer pending, and the pointer holds
  // until the next pop; pushes in between leave it alone.
  virtual const Event* pop_before(Time end) = 0;
  // The time of the first event, `never` when there is none.
  virtual Time next_time() = 0;
  virtual std::size_t size() const = 0;
  // Moves all pending events to the end of `events`, in no particular order.
  virtual void drain(std::vector<Event>& events) = 0;
  // Host memory held, for reporting.
  virtual std::size_t bytes() const = 0;
};

// The queue of components that are not in a run: refuses every event.
class ClosedQueue final : public EventQueue {
 public:
  void push(const Event&) override;
  const Event* pop_before(Time) override { return nullptr; }
  Time next_time() override { return never; }
  std::size_t size() const override { return 0; }
  void drain(std::vector<Event>&) override {}
  std::size_t bytes() const override { return 0; }
};

// Makes the queue of that name; throws std::invalid_argument for an unknown one.
std::unique_ptr<EventQueue> make_queue(std::string_view name);
std::vector<std::string> queue_names();

}  // namespace manyscale
