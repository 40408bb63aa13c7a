// SPDX-License-Identifier: Apache-2.0
// Pieces of rings on their way between nodes: who owns them, and which memory they are read from and written
// to.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "cpu/mpi/rank_rings.hpp"
#include "memory/dma/dma_protocol.hpp"

namespace manyscale::cluster {

// Owns the pieces that messages carry, which hold nothing but numbers, until they arrive; and those that
// never do, because the run ends before. Gateways of all partitions share it.
class PiecesInFlight {
 public:
  // The number that takes the piece out again.
  std::uint64_t add(cpu::RingPiece piece) {
    auto owned = std::make_unique<cpu::RingPiece>(std::move(piece));
    const auto number = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(owned.get()));
    const std::scoped_lock lock(mutex_);
    pieces_.emplace(number, std::move(owned));
    return number;
  }
  std::unique_ptr<cpu::RingPiece> take(std::uint64_t number) {
    const std::scoped_lock lock(mutex_);
    return std::move(pieces_.extract(number).mapped());
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::unique_ptr<cpu::RingPiece>> pieces_;
};

// Calls transfer(memory::Transfer) for all that is read on the node that a piece leaves, or written on the
// one it comes to: its bytes, the count of bytes written, and the count of those taken in the other
// direction.
template <class Action>
void for_transfers(const cpu::RankRings& rings, const cpu::RingPiece& piece, bool writes, Action transfer) {
  using cpu::RingLayout;
  const std::uint64_t ring = rings.physical(rings.layout().ring(piece.from, piece.to));
  const std::uint64_t other = rings.physical(rings.layout().ring(piece.to, piece.from));
  const auto bytes = static_cast<std::uint32_t>(piece.bytes.size());
  if (bytes > 0) {
    RingLayout::for_pieces(piece.position, bytes,
                           [&](std::uint32_t offset, std::uint32_t, std::uint32_t count) {
                             transfer(memory::Transfer{ring + RingLayout::bytes_at + offset, count, writes});
                           });
    transfer(memory::Transfer{ring, sizeof(std::uint32_t), writes});
  }
  transfer(memory::Transfer{other + RingLayout::taken_at, sizeof(std::uint32_t), writes});
}

}  // namespace manyscale::cluster
