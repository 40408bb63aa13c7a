// SPDX-License-Identifier: Apache-2.0
#include "cpu/mpi/rank_rings.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace manyscale::cpu {

RankRings::RankRings(std::shared_ptr<SharedSegment> segment, std::uint32_t ranks, std::uint32_t first,
                     std::uint32_t local)
    : segment_(std::move(segment)), layout_{ranks}, first_(first), local_(local) {
  if (first + local > ranks) throw std::invalid_argument("a node has ranks that the job does not have");
  pairs_.resize(std::size_t{local} * ranks);
  segment_->resize(layout_.total());
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    if (!is_local(rank)) set_word(layout_.bell(rank) + RingLayout::sleeps_at, 1);
}

std::optional<std::uint32_t> RankRings::bell_at(std::uint64_t offset) const {
  if (offset < RingLayout::job_bytes || offset >= layout_.ring(0, 0)) return {};
  const std::uint64_t within = offset - RingLayout::job_bytes;
  if (within % RingLayout::mailbox_bytes != 0) return {};
  return static_cast<std::uint32_t>(within / RingLayout::mailbox_bytes);
}

std::uint32_t RankRings::word(std::uint64_t offset) const {
  std::uint32_t value = 0;
  std::memcpy(&value, segment_->page(offset) + offset % page_bytes, sizeof value);
  return value;
}

void RankRings::set_word(std::uint64_t offset, std::uint32_t value) {
  std::memcpy(segment_->page(offset) + offset % page_bytes, &value, sizeof value);
}

// Calls action(host bytes, offset in the run, bytes) for each page that a run of bytes lies in.
template <class Action>
void RankRings::for_pages(std::uint64_t offset, std::uint64_t bytes, Action action) const {
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t at = offset + done;
    const std::uint64_t piece = std::min(bytes - done, page_bytes - at % page_bytes);
    action(segment_->page(at) + at % page_bytes, done, piece);
    done += piece;
  }
}

std::vector<RingPiece> RankRings::collect(std::uint32_t remote) {
  std::vector<RingPiece> pieces;
  for (std::uint32_t rank = first_; rank < first_ + local_; ++rank) {
    Pair& of = pair(rank, remote);
    const std::uint64_t ring = layout_.ring(rank, remote);
    const std::uint32_t written = word(ring);
    const std::uint32_t taken = word(layout_.ring(remote, rank) + RingLayout::taken_at);
    if (written == of.sent && taken == of.known_taken) continue;
    RingPiece piece{rank, remote, of.sent, taken, {}};
    const std::uint32_t bytes = written - of.sent;
    if (bytes > RingLayout::ring_bytes) throw std::runtime_error("a ring of the MPI library was overrun");
    piece.bytes.resize(bytes);
    RingLayout::for_pieces(of.sent, bytes, [&](std::uint32_t at, std::uint32_t to, std::uint32_t count) {
      for_pages(ring + RingLayout::bytes_at + at, count,
                [&](const std::uint8_t* host, std::uint64_t done, std::uint64_t size) {
                  std::memcpy(piece.bytes.data() + to + done, host, size);
                });
    });
    of.sent = written;
    of.known_taken = taken;
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

bool RankRings::deliver(RingPiece piece) {
  Pair& of = pair(piece.to, piece.from);
  const std::uint64_t ring = layout_.ring(piece.from, piece.to);
  if (piece.position != word(ring)) {
    of.too_early.push_back(std::move(piece));
    return false;
  }
  show(piece);
  // Those that waited for this one.
  for (auto next = of.too_early.begin(); next != of.too_early.end();) {
    if (next->position != word(ring)) {
      ++next;
      continue;
    }
    show(*next);
    of.too_early.erase(next);
    next = of.too_early.begin();
  }
  ring_bell(piece.to);
  return true;
}

void RankRings::show(const RingPiece& piece) {
  const std::uint64_t ring = layout_.ring(piece.from, piece.to);
  const auto bytes = static_cast<std::uint32_t>(piece.bytes.size());
  RingLayout::for_pieces(piece.position, bytes,
                         [&](std::uint32_t at, std::uint32_t from, std::uint32_t count) {
                           for_pages(ring + RingLayout::bytes_at + at, count,
                                     [&](std::uint8_t* host, std::uint64_t done, std::uint64_t size) {
                                       std::memcpy(host, piece.bytes.data() + from + done, size);
                                     });
                         });
  set_word(ring, piece.position + bytes);
  // The receiver rings when it has freed bytes: the sender's node cannot see it otherwise.
  set_word(ring + RingLayout::sender_waits_at, 1);
  const std::uint64_t back = layout_.ring(piece.to, piece.from);
  // What the remote rank has taken only grows; an older piece may hold less.
  const std::uint32_t taken = word(back + RingLayout::taken_at);
  if (static_cast<std::int32_t>(piece.taken - taken) > 0) set_word(back + RingLayout::taken_at, piece.taken);
}

void RankRings::ring_bell(std::uint32_t rank) {
  const std::uint64_t bell = layout_.bell(rank);
  set_word(bell, word(bell) + 1);
}

}  // namespace manyscale::cpu
