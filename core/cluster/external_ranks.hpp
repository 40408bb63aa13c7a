// SPDX-License-Identifier: Apache-2.0
// Ranks that run natively on this machine and talk to those of a simulated node. The two sides take turns, so
// that results can be repeated: the node is simulated until all its ranks wait; what they have written is
// then carried to the memory that the native ranks share, these run until all of them wait, and what they
// have written is carried back. No simulated time passes in between.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cpu/live/live_source.hpp"
#include "memory/dma/dma.hpp"

namespace manyscale::cluster {

class ExternalRanks {
 public:
  // Of the job that the program is a part of: all ranks that the program does not have. `path` is the file
  // that they share (MANYSCALE_MPI_SEGMENT); it is made here. With an `engine`, what is carried is read from
  // and written to the simulated memory, too, as by the node's network interface.
  ExternalRanks(cpu::LiveSource& program, const std::string& path, memory::Dma* engine = nullptr);
  ~ExternalRanks();
  ExternalRanks(const ExternalRanks&) = delete;
  ExternalRanks& operator=(const ExternalRanks&) = delete;

  // Between two runs: carries what the simulated ranks have written. True if that was anything.
  bool send();
  // Whether all native ranks but those that have ended wait for something.
  bool all_wait(const std::vector<std::uint32_t>& ended) const;
  // Carries what the native ranks have written; the simulated ranks wake up in the next run. True if that was
  // anything.
  bool receive();
  // A native rank has ended the job: 1 + its exit code; 0 if none has.
  std::uint32_t aborted() const;

  std::int64_t bytes_out() const { return bytes_out_; }
  std::int64_t bytes_in() const { return bytes_in_; }

 private:
  std::uint32_t& word(std::uint64_t offset) const;
  void wake(std::uint32_t rank);
  void touch_memory(const cpu::RingPiece& piece, bool writes);

  cpu::LiveSource& program_;
  cpu::RankRings& rings_;
  memory::Dma* const engine_;
  std::uint8_t* memory_ = nullptr;
  std::uint64_t size_ = 0;
  std::vector<std::uint32_t> carried_;  // bytes of the ring from each rank to each that came in
  std::vector<std::uint32_t> taken_;    // the same, that each has taken from the ring to it
  std::int64_t bytes_out_ = 0;
  std::int64_t bytes_in_ = 0;
};

}  // namespace manyscale::cluster
