// SPDX-License-Identifier: Apache-2.0
// The shared memory of the MPI library (runtime/mpi/segment.c) as the gateway between nodes sees it: a
// ring of bytes from each rank to each, and a bell (a futex) for each rank. Ranks of this node write to the
// rings of remote ranks as to any. The bells of remote ranks are set up so that ringing one always enters the
// kernel, which notifies the gateway.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cpu/virtual_memory/address_space.hpp"

namespace manyscale::cpu {

// Where things lie; the same as in runtime/mpi (a test compares them).
struct RingLayout {
  static constexpr std::uint64_t line_bytes = 64;
  static constexpr std::uint64_t job_bytes = line_bytes;
  static constexpr std::uint64_t mailbox_bytes = 2 * line_bytes;  // the bell, then whether its owner sleeps
  static constexpr std::uint64_t sleeps_at = line_bytes;
  static constexpr std::uint64_t sender_waits_at = 4;  // behind the count of bytes written
  static constexpr std::uint64_t taken_at = line_bytes;
  static constexpr std::uint64_t bytes_at = 2 * line_bytes;
  static constexpr std::uint32_t ring_bytes = 1 << 15;
  static constexpr std::uint64_t ring_stride = bytes_at + ring_bytes;

  std::uint32_t ranks = 0;

  std::uint64_t bell(std::uint32_t rank) const { return job_bytes + rank * mailbox_bytes; }
  std::uint64_t ring(std::uint32_t from, std::uint32_t to) const {
    return job_bytes + ranks * mailbox_bytes + (std::uint64_t{to} * ranks + from) * ring_stride;
  }
  std::uint64_t total() const { return ring(0, ranks); }

  // Calls copy(offset in the ring, offset in the run, bytes) for each of the pieces, none to two, that
  // a run of bytes from a position is in a ring.
  template <class Copy>
  static void for_pieces(std::uint32_t position, std::uint32_t bytes, Copy copy) {
    const std::uint32_t begin = position % ring_bytes;
    const std::uint32_t before_end = bytes < ring_bytes - begin ? bytes : ring_bytes - begin;
    if (before_end != 0) copy(begin, std::uint32_t{0}, before_end);
    if (before_end != bytes) copy(std::uint32_t{0}, before_end, bytes - before_end);
  }
};

// Bytes that were written to a ring and are to be sent to the same ring on another node.
struct RingPiece {
  std::uint32_t from = 0, to = 0;  // ranks
  std::uint32_t position = 0;      // bytes ever written before it, modulo 2^32
  std::uint32_t taken = 0;         // of the ring in the other direction: what may be written again
  std::vector<std::uint8_t> bytes;
};

// The rings of one node: ranks first to first + local - 1 of all run here.
class RankRings {
 public:
  RankRings(std::shared_ptr<SharedSegment> segment, std::uint32_t ranks, std::uint32_t first,
            std::uint32_t local);

  std::uint32_t first() const { return first_; }
  std::uint32_t local() const { return local_; }
  bool is_local(std::uint32_t rank) const { return rank - first_ < local_; }
  const RingLayout& layout() const { return layout_; }
  // Where a byte of the segment is for the caches of the node.
  std::uint64_t physical(std::uint64_t offset) const { return segment_->physical() + offset; }
  // The rank whose bell is at this offset of the segment; none if there is no bell.
  std::optional<std::uint32_t> bell_at(std::uint64_t offset) const;

  // What local ranks have written to a remote one, or taken from it, since the last call.
  std::vector<RingPiece> collect(std::uint32_t remote);
  // A piece comes in that a remote rank wrote to a local one. Pieces of a ring may come in any order; they
  // become visible in the order in which they were written. False if nothing has changed for the local rank.
  bool deliver(RingPiece piece);
  // Counts a ring of a local rank's bell.
  void ring_bell(std::uint32_t rank);

 private:
  // What was sent between a pair of a local and a remote rank.
  struct Pair {
    std::uint32_t sent = 0;            // bytes of the ring to the remote rank
    std::uint32_t known_taken = 0;     // bytes of the ring from it that it knows to be taken
    std::vector<RingPiece> too_early;  // pieces that came before those in front of them
  };
  Pair& pair(std::uint32_t local, std::uint32_t remote) {
    return pairs_[std::size_t{local - first_} * layout_.ranks + remote];
  }
  std::uint32_t word(std::uint64_t offset) const;
  void set_word(std::uint64_t offset, std::uint32_t value);
  template <class Action>
  void for_pages(std::uint64_t offset, std::uint64_t bytes, Action action) const;
  void show(const RingPiece& piece);

  std::shared_ptr<SharedSegment> segment_;
  RingLayout layout_;
  std::uint32_t first_;
  std::uint32_t local_;
  std::vector<Pair> pairs_;
};

}  // namespace manyscale::cpu
