// SPDX-License-Identifier: Apache-2.0
#include "engine/queue.hpp"

#include <stdexcept>

#include "engine/heap_queue.hpp"
#include "engine/radix_queue.hpp"

namespace manyscale {

std::unique_ptr<EventQueue> make_queue(std::string_view name) {
  if (name == "radix") return std::make_unique<RadixQueue>();
  if (name == "heap") return std::make_unique<HeapQueue>();
  throw std::invalid_argument("no event queue named '" + std::string(name) + "'; known: heap, radix");
}

void ClosedQueue::push(const Event&) {
  throw std::logic_error("a model sends or sets a timer before the run: do that in start() or later");
}

std::vector<std::string> queue_names() {
  return {"heap", "radix"};
}

}  // namespace manyscale
