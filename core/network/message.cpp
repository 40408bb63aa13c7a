// SPDX-License-Identifier: Apache-2.0
#include "network/message.hpp"

#include "engine/component.hpp"

namespace manyscale::network {

void MessagePool::prepare(std::uint32_t partitions) {
  while (lists_.size() < partitions) lists_.push_back(std::make_unique<FreeList>());
}

void MessagePool::divide(std::uint32_t process, std::uint32_t processes) {
  process_ = process;
  processes_ = processes;
  to_return_.resize(processes);
}

MessageSlot& MessagePool::visit(std::uint32_t slot) {
  const std::size_t chunk = slot >> chunk_bits;
  if (chunks_[chunk].load(std::memory_order_relaxed) == nullptr) make_chunk(chunk);
  return (*this)[slot];
}

MessageSlot* MessagePool::make_chunk(std::size_t number) {
  owned_.push_back(std::make_unique<MessageSlot[]>(chunk_slots));
  MessageSlot* slots = owned_.back().get();
  chunks_[number].store(slots, std::memory_order_release);
  return slots;
}

void MessagePool::refill(FreeList& list) {
  const std::lock_guard lock(mutex_);
  if (!batches_.empty()) {
    list.head = batches_.back();
    list.count = batch;
    batches_.pop_back();
    return;
  }
  const std::size_t chunk = used_chunks_++ * processes_ + process_;
  if (chunk >= most_chunks) throw SimulationError("more than 268 million messages are in flight");
  MessageSlot* slots = make_chunk(chunk);
  const auto first = static_cast<std::uint32_t>(chunk << chunk_bits);
  for (std::uint32_t i = 0; i < chunk_slots; ++i)
    slots[i].next = i + 1 < chunk_slots ? first + i + 1 : no_slot;
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
