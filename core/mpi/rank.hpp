// SPDX-License-Identifier: Apache-2.0
// A rank: one process of the job, as a row of its host's array. What few ranks need at a time (requests,
// messages, collectives in flight) is not here but in the host's pools.
#pragma once
#include <cstdint>

#include "engine/time.hpp"
#include "mpi/pool.hpp"

namespace manyscale::mpi {

// Where the time of a rank went; the four add up to its end.
struct RankTimes {
  Time compute = 0;
  Time overhead = 0;  // the processor at work for messages: sending, receiving, copying, combining
  Time waiting = 0;   // for partners that had not begun to send
  Time transfer = 0;  // for messages in flight
};

struct Rank {
  enum class State : std::uint8_t {
    running,    // in an event of this rank
    computing,  // its timer will call it
    waiting,    // in a blocking call
    done,
  };

  Time time = 0;        // its processor is busy until then; may be ahead of the simulation's time
  Time call_began = 0;  // of the operation in flight
  RankTimes times{};
  Time end = 0;
  Time channel_free = 0;  // when its copies to other ranks of the node are done
  std::uint32_t world = 0;
  std::uint32_t operation = 0;
  std::uint32_t needs = 0;                        // completions it still waits for
  std::uint32_t first_in = none, last_in = none;  // arrivals that its processor has not seen to
  std::uint32_t last_source = 0;                  // of the last completed receive or probe
  std::int32_t last_tag = 0;
  std::uint32_t sends = 0;
  std::uint32_t paused = none;  // the collective it is in the midst of, while others have their turn
  State state = State::running;
  bool probing = false;
  bool traced = false;
};

}  // namespace manyscale::mpi
