// SPDX-License-Identifier: Apache-2.0
// What a message says about itself besides its data: who sent it to whom, its tag and communicator, and which
// step of which protocol it is. Packed into the four words that the network carries along unread.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/time.hpp"

namespace manyscale::mpi {

enum class Step : std::uint8_t {
  eager,   // the data at once
  ask,     // rendezvous: the sender asks the receiver (request to send)
  answer,  // the receiver is ready (clear to send)
  data,    // what was asked for, or the last of it
  sent,    // not a message: the sender's data has left
  piece,   // data of which more follows when the receiver answers again
};

struct Envelope {
  std::uint32_t source = 0, destination = 0;  // ranks of the world
  Step step = Step::eager;
  std::int32_t tag = 0;
  std::uint32_t context = 0;  // communicator, and whether it is a collective's message
  std::uint32_t request = 0;  // of the sender (ask, answer, sent) or of the receiver (data)
  std::uint32_t number = 0;   // eager, ask: counted for each pair of ranks; answer, data: the other request
  std::uint32_t pages = 0;    // ask: how long the message is, in pages of 4 KiB; at most most_pages
  std::uint64_t word = 0;     // when sending began; in check mode what the message carries

  static constexpr std::uint32_t most_pages = (1u << 21) - 1;
  static std::uint32_t pages_of(std::uint64_t bytes) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>((bytes + 4095) / 4096, most_pages));
  }

  std::array<std::uint64_t, 4> pack() const {
    return {
        std::uint64_t{source} | std::uint64_t{destination} << 28 | std::uint64_t(step) << 56 |
            std::uint64_t{pages >> 16} << 59,
        static_cast<std::uint32_t>(tag) | std::uint64_t{context} << 32 | std::uint64_t{pages & 0xffffu} << 48,
        std::uint64_t{request} | std::uint64_t{number} << 32, word};
  }
  static Envelope unpack(const std::array<std::uint64_t, 4>& words) {
    constexpr std::uint64_t rank_mask = (1u << 28) - 1;
    Envelope envelope;
    envelope.source = static_cast<std::uint32_t>(words[0] & rank_mask);
    envelope.destination = static_cast<std::uint32_t>(words[0] >> 28 & rank_mask);
    envelope.step = static_cast<Step>(words[0] >> 56 & 7);
    envelope.tag = static_cast<std::int32_t>(static_cast<std::uint32_t>(words[1]));
    envelope.context = static_cast<std::uint32_t>(words[1] >> 32 & 0xffff);
    envelope.request = static_cast<std::uint32_t>(words[2]);
    envelope.number = static_cast<std::uint32_t>(words[2] >> 32);
    envelope.pages = static_cast<std::uint32_t>(words[0] >> 59 << 16 | words[1] >> 48);
    envelope.word = words[3];
    return envelope;
  }
};

// A communicator's messages and those of its collectives must not match each other.
constexpr std::uint32_t context_of(std::uint16_t communicator, bool collective) {
  return std::uint32_t{communicator} * 2 + collective;
}

}  // namespace manyscale::mpi
