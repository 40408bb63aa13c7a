// SPDX-License-Identifier: Apache-2.0
// A memory controller that issues every command of a channel. It is independent of the event queue: its
// caller passes arrivals and cycles to it, and it returns the cycle at which it is to be called next.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "memory/attribution.hpp"
#include "memory/dram/address_map.hpp"
#include "memory/dram/burst_queue.hpp"
#include "memory/dram/command_log.hpp"
#include "memory/dram/gates.hpp"
#include "memory/dram/statistics.hpp"
#include "memory/protocol.hpp"

namespace manyscale::memory {

// Bursts of a request, a bit each, counted from the burst that holds its address.
inline std::uint32_t burst_mask(std::uint64_t address, std::uint8_t sectors, int burst_shift) {
  const std::uint32_t per_burst = 1u << (burst_shift - 5);
  std::uint32_t left = static_cast<std::uint32_t>(sectors) << ((address >> 5) & (per_burst - 1));
  std::uint32_t mask = 0;
  for (std::uint32_t bit = 1; left != 0; bit <<= 1, left >>= per_burst) {
    if ((left & ((1u << per_burst) - 1)) != 0) mask |= bit;
  }
  return mask;
}

// An answer that is due at the edge of a cycle; `at_once` is when the request arrived.
struct DramAnswer {
  static constexpr Cycle at_once = -1;

  Message message;
  std::uint32_t lane;
  Cycle cycle;
};

// The controller of one channel: FR-FCFS over a read and a write queue, write drain between two watermarks,
// refresh of all banks of a rank or of one at a time. Leaves out write merging, refresh postponement and the
// time of its own pipeline.
class DramController {
 public:
  DramController(const DramSpec& spec, DramStatistics& statistics, Attributed<DramCounts>& traffic);

  // A request arrived at `now`; `cycle` is the first edge not before. `answer` is what to send when done.
  // Returns the cycle of the tick it needs.
  Cycle arrive(std::uint64_t address, const Message& answer, bool write, bool wants_ack, std::uint32_t lane,
               Time now, Cycle cycle);
  // Issues what can be issued at this cycle. Returns the cycle of the next tick, or `never`.
  Cycle tick(Cycle now);
  // Accounts for refreshes that fell due while there was nothing to do.
  void catch_up(Cycle now);

  // Answers of the last call, for the caller to send and clear.
  std::vector<DramAnswer>& answers() { return answers_; }
  const CommandLog& log() const { return log_; }

 private:
  struct Request {
    Message answer;
    std::uint64_t burst;  // number of the first
    Time arrived;
    Cycle finish;  // of the data so far
    std::uint32_t lane;
    std::uint32_t entering;  // bursts that wait for room in the queue
    std::uint8_t left;       // bursts without data
    bool write;
    bool wants_ack;
    bool started;  // a command was issued for it
  };
  // The command to issue next: of those that can be issued first, the one with the lowest key.
  struct Plan {
    Cycle cycle = never;
    std::uint64_t key = 0;
    DramCommand command = DramCommand::refresh;
    std::uint16_t burst = BurstQueue::none;
    std::uint32_t bank_or_refresh = 0;  // index of the refresh that closes or refreshes banks

    bool before(const Plan& other) const {
      return cycle < other.cycle || (cycle == other.cycle && key < other.key);
    }
  };
  // Banks that are refreshed together: those of a rank, or one.
  struct Refresh {
    DramGates::BankRange banks;
    Cycle due;
    bool pending = false;
  };

  bool idle() const { return queues_[reading].empty() && queues_[writing].empty() && input_count_ == 0; }
  bool starving(const BurstQueue& queue, Cycle now) const {
    return queue.oldest() != BurstQueue::none && now - queue[queue.oldest()].entered > spec_.starvation_limit;
  }

  BusDirection wanted_direction(Cycle now) const;
  void admit(Cycle now);
  void enter(std::uint32_t index, Request& request, Cycle now);
  void insert(std::uint32_t index, const DramAddress& address, BusDirection direction, Cycle now);
  void finish(std::uint32_t index, Cycle cycle);
  void make_plan(Cycle now);
  void consider(std::uint32_t bank, Cycle now);
  Plan refresh_candidate(std::uint32_t index, Cycle now) const;
  void issue(const Plan& plan);
  void issue_column(const Plan& plan);
  void close_for(const Refresh& refresh, Cycle now);
  void refresh(Refresh& refresh, Cycle now);
  const Refresh& refresh_of(std::uint32_t bank) const { return refreshes_[bank / banks_per_refresh_]; }
  void mark_due(Cycle now);
  void find_next_due();
  DramCounts& counts_of(std::uint32_t request) { return traffic_[requests_[request].answer.origin]; }
  void start(Request& request, Cycle now);
  void occupy_bus(bool column, Cycle now);
  void record(Cycle now, DramCommand command, std::uint32_t bank, std::int32_t row, std::int32_t column);

  const DramSpec spec_;
  const AddressMap map_;
  const Time period_;
  DramStatistics& statistics_;
  Attributed<DramCounts>& traffic_;  // what belongs to origins
  DramGates gates_;
  std::array<BurstQueue, 2> queues_;  // of reads and of writes

  std::vector<Request> requests_;
  std::vector<std::uint32_t> free_requests_;
  std::vector<std::uint32_t> input_;  // a ring of requests with bursts that wait for room
  std::size_t input_first_ = 0;
  std::size_t input_count_ = 0;

  BusDirection direction_ = reading;
  bool forced_ = false;   // the drain goes on to the low watermark
  Cycle column_bus_ = 0;  // first cycle in which the bus is free
  Cycle row_bus_ = 0;
  Plan plan_;
  bool planned_ = false;
  std::uint16_t starving_ = BurstQueue::none;
  bool columns_held_ = false;  // for the starving burst's column command
  std::vector<Refresh> refreshes_;
  std::uint32_t banks_per_refresh_ = 1;
  std::uint32_t pending_refreshes_ = 0;
  Cycle next_due_ = never;
  std::uint64_t order_ = 0;

  std::vector<DramAnswer> answers_;
  CommandLog log_;
};

}  // namespace manyscale::memory
