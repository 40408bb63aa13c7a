// SPDX-License-Identifier: Apache-2.0
// What a host notes about its ranks when asked to.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/statistics.hpp"
#include "engine/time.hpp"
#include "mpi/program/program.hpp"
#include "mpi/wait_log.hpp"

namespace manyscale::mpi {

// What the ranks of a node did. Not declared as statistics of the component: 100,000 nodes would spend most
// of their memory on the names; a job adds them up.
struct HostCounts {
  std::int64_t messages = 0, bytes = 0;              // over the network
  std::int64_t local_messages = 0, local_bytes = 0;  // to ranks of the same node
  std::int64_t eager = 0, rendezvous = 0;            // all messages by protocol
  std::int64_t unexpected = 0;                       // came before their receive was posted
  std::int64_t collectives = 0;                      // begun

  HostCounts& operator+=(const HostCounts& other) {
    messages += other.messages;
    bytes += other.bytes;
    local_messages += other.local_messages;
    local_bytes += other.local_bytes;
    eager += other.eager;
    rendezvous += other.rendezvous;
    unexpected += other.unexpected;
    collectives += other.collectives;
    return *this;
  }
};

// How long messages took, in the buckets of a Histogram, of which only those between the least and the
// greatest that were used take memory.
class Latencies {
 public:
  void record(Time latency) {
    const std::size_t bucket = Histogram::bucket_of(std::max<Time>(latency, 0));
    if (bucket - first_ >= counts_.size()) [[unlikely]]
      widen(bucket);
    ++counts_[bucket - first_];
  }
  // Adds the counts to those of all buckets.
  void add_to(std::vector<std::int64_t>& all) const {
    for (std::size_t i = 0; i < counts_.size(); ++i) all[first_ + i] += counts_[i];
  }

 private:
  void widen(std::size_t bucket) {
    if (counts_.empty()) first_ = bucket;
    if (bucket < first_) {
      counts_.insert(counts_.begin(), first_ - bucket, 0);
      first_ = bucket;
    }
    if (bucket - first_ >= counts_.size()) counts_.resize(bucket - first_ + 1);
  }

  std::size_t first_ = 0;
  std::vector<std::int64_t> counts_;
};

// Check mode: a receive or collective of a rank came to its end.
struct Completion {
  std::uint32_t rank;
  std::uint32_t operation;
  std::uint32_t source;  // rank of the world
  std::int32_t tag;
  std::uint64_t value;  // the message's number among those its sender sent, or a reduction's result
};

// An operation of a rank, from its beginning to its end.
struct Span {
  std::uint32_t rank;
  std::uint32_t operation;
  Time begin;
  Time end;
};

// What a host notes when asked to.
struct Notes {
  std::vector<Completion> completions;
  std::vector<Span> spans;
  WaitLog waits;
};

// What a rank waits for at the end of a run that deadlocked.
struct Missing {
  bool receive = true;     // else a send that nobody has answered
  std::uint32_t peer = 0;  // rank of the world, or any_rank
  std::int32_t tag = 0;    // or any_tag
  std::uint32_t context = 0;
};
struct Blocked {
  std::uint32_t rank = 0;
  std::uint32_t operation = 0;
  std::vector<Missing> missing;  // the first few
};

// A piece of the critical path, from its end backwards: a rank at work, or a message on its way to it.
struct PathPiece {
  std::uint32_t rank = 0;
  std::uint32_t peer = 0;  // of a message: who sent it
  std::uint32_t operation =
      0;  // of the rank: that which waited at the piece's beginning (work) or end (message)
  bool message = false;
  Time begin = 0;
  Time end = 0;
};

}  // namespace manyscale::mpi
