// SPDX-License-Identifier: Apache-2.0
// Order of messages: MPI keeps the order of the messages from one rank to another, a network need not.
// Messages that overtook others are held back until those have come.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "mpi/envelope.hpp"
#include "mpi/pair_numbers.hpp"

namespace manyscale::mpi {

class MessageOrder {
 public:
  struct Early {
    Envelope envelope;
    std::uint64_t bytes = 0;
  };

  // Whether a message to a rank of this node is the next of its sender; otherwise it is held back.
  bool is_next(std::uint32_t here, const Envelope& envelope, std::uint64_t bytes) {
    std::uint32_t& expected = expected_(here, envelope.source);
    if (envelope.number == expected) {
      ++expected;
      return true;
    }
    early_.insert({key(here, envelope.source, envelope.number), {envelope, bytes}});
    return false;
  }
  bool none_held() const { return early_.empty(); }
  // The message that is the next of its sender by now, if it was held back.
  std::optional<Early> release(std::uint32_t here, std::uint32_t source) {
    std::uint32_t& expected = expected_(here, source);
    const auto found = early_.find(key(here, source, expected));
    if (found == early_.end()) return std::nullopt;
    const Early early = found->second;
    early_.erase(found);
    ++expected;
    return early;
  }

 private:
  using Key = std::pair<std::uint64_t, std::uint32_t>;  // pair of ranks, number of the message
  static Key key(std::uint32_t here, std::uint32_t source, std::uint32_t number) {
    return {std::uint64_t{here} << 32 | source, number};
  }

  PairNumbers expected_;
  std::map<Key, Early> early_;
};

}  // namespace manyscale::mpi
