// SPDX-License-Identifier: Apache-2.0
#include "network/message.hpp"

#include "engine/component.hpp"

namespace manyscale::network {

void MessagePool::prepare(std::uint32_t partitions) {
  while (lists_.size() < partitions) lists_.push_back(std::make_unique<FreeList>());
}

void MessagePool::refill(FreeList& list) {
  const std::lock_guard lock(mutex_);
  if (!batches_.empty()) {
    list.head = batches_.back();
    list.count = batch;
    batches_.pop_back();
    return;
  }
  if (used_chunks_ == most_chunks) throw SimulationError("more than 268 million messages are under way");
  owned_.push_back(std::make_unique<MessageSlot[]>(chunk_slots));
  MessageSlot* slots = owned_.back().get();
  const auto first = static_cast<std::uint32_t>(used_chunks_ << chunk_bits);
  for (std::uint32_t i = 0; i < chunk_slots; ++i)
    slots[i].next = i + 1 < chunk_slots ? first + i + 1 : no_slot;
  chunks_[used_chunks_++].store(slots, std::memory_order_release);
  list.head = first;
  list.count = chunk_slots;
}

void MessagePool::spill(FreeList& list) {
  const std::uint32_t head = list.head;
  std::uint32_t last = head;
  for (std::uint32_t i = 1; i < batch; ++i) last = (*this)[last].next;
  list.head = (*this)[last].next;
  (*this)[last].next = no_slot;
  list.count -= batch;
  const std::lock_guard lock(mutex_);
  batches_.push_back(head);
}

}  // namespace manyscale::network
