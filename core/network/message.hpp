// SPDX-License-Identifier: Apache-2.0
// Messages: what hosts hand to their NIC, and where messages stay while they are in flight.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/time.hpp"

namespace manyscale::network {

// What a NIC is given and what arrives at the other end.
struct Message {
  std::uint32_t source = 0, destination = 0;  // nodes
  std::uint64_t bytes = 0;
  std::array<std::uint64_t, 4> header{};  // the sender's business; travels along unread
  bool tell_sent = false;                 // whether the sender wants to know when its last byte has left
};

// A message in flight, with what the network notes about it. Bytes on the wire include headers.
struct MessageSlot {
  Message message;
  // Written by the sender's side.
  Time entered = 0;                // when it entered the NIC's queue
  Time last_sent = 0;              // when the last byte so far leaves the NIC
  std::uint64_t handed_out = 0;    // bytes that have been made into packets
  std::uint64_t wire_to_send = 0;  // bytes on the wire
  std::uint32_t next = 0;          // in the NIC's queue, or in the pool
  // Written by the receiver's side.
  std::uint64_t wire_to_arrive = 0;
  Time last_arrival = 0;  // of the last byte so far
};

inline constexpr std::uint32_t no_slot = ~std::uint32_t{0};

// All messages of a network that are in flight. Slots are taken by the sender's thread and given back by the
// receiver's, so each partition has a list of free ones and only now and then exchanges some with the others.
// A slot's number never influences results.
class MessagePool {
 public:
  // To be called before a run, with the number of partitions.
  void prepare(std::uint32_t partitions);
  // Where several processes run a network together, each has its own numbers of slots, so that a message
  // keeps its number when it comes to another process. There it has a slot of the same number, to be made by
  // `visit`.
  void divide(std::uint32_t process, std::uint32_t processes);
  bool is_foreign(std::uint32_t slot) const {
    return processes_ > 1 && (slot >> chunk_bits) % processes_ != process_;
  }
  MessageSlot& visit(std::uint32_t slot);
  // Slots of another process that were given back here; to be sent to it.
  std::vector<std::uint32_t>& to_return(std::uint32_t process) { return to_return_[process]; }

  MessageSlot& operator[](std::uint32_t slot) {
    return chunks_[slot >> chunk_bits].load(std::memory_order_relaxed)[slot & (chunk_slots - 1)];
  }
  std::uint32_t take(std::uint32_t partition) {
    FreeList& list = *lists_[partition];
    if (list.head == no_slot) refill(list);
    const std::uint32_t slot = list.head;
    list.head = (*this)[slot].next;
    --list.count;
    return slot;
  }
  void give_back(std::uint32_t partition, std::uint32_t slot) {
    if (is_foreign(slot)) [[unlikely]] {
      to_return_[(slot >> chunk_bits) % processes_].push_back(slot);
      return;
    }
    FreeList& list = *lists_[partition];
    (*this)[slot].next = list.head;
    list.head = slot;
    if (++list.count >= 2 * batch) spill(list);
  }
  std::size_t bytes() const { return owned_.size() * chunk_slots * sizeof(MessageSlot); }

 private:
  static constexpr std::uint32_t chunk_bits = 12;
  static constexpr std::uint32_t chunk_slots = 1u << chunk_bits;
  static constexpr std::uint32_t most_chunks = 1u << 16;  // 268 million messages in flight
  static constexpr std::uint32_t batch = 1024;

  struct alignas(128) FreeList {
    std::uint32_t head = no_slot;
    std::uint32_t count = 0;
  };

  MessageSlot* make_chunk(std::size_t number);
  void refill(FreeList& list);
  void spill(FreeList& list);

  std::vector<std::unique_ptr<FreeList>> lists_;
  std::mutex mutex_;                    // guards all below
  std::vector<std::uint32_t> batches_;  // heads of lists of `batch` free slots
  std::vector<std::unique_ptr<MessageSlot[]>> owned_;
  std::size_t used_chunks_ = 0;  // of this process's own
  std::uint32_t process_ = 0, processes_ = 1;
  std::vector<std::vector<std::uint32_t>> to_return_;
  std::unique_ptr<std::atomic<MessageSlot*>[]> chunks_{new std::atomic<MessageSlot*>[most_chunks]};
};

}  // namespace manyscale::network
