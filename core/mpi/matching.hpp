// SPDX-License-Identifier: Apache-2.0
// Matching of messages with receives, for all ranks of a node. MPI's order holds: of several receives that a
// message fits the one posted first takes it, of several messages that a receive fits the one that came
// first. Receives without wildcards and all messages are found by hashing (rank, source, tag, context), so
// that thousands of pending ones cost no more than one; receives with wildcards are a list per rank.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/random.hpp"
#include "engine/time.hpp"
#include "mpi/envelope.hpp"
#include "mpi/pool.hpp"

namespace manyscale::mpi {

inline constexpr std::uint32_t any_rank = 0xfffffffeu;
inline constexpr std::int32_t any_tag = -2;

// Something a rank began and has to be told the end of: a send, a receive or a collective operation.
struct Request {
  enum class Type : std::uint8_t { send, receive, collective };

  Time began = 0;  // receive: when it was posted; send: when it began
  std::uint64_t bytes = 0;
  std::uint64_t value = 0;    // check mode: what a send carries
  std::uint64_t moved = 0;    // of a rendezvous in pieces: bytes that were sent
  std::uint32_t next = none;  // in a list of the matcher
  std::uint32_t order = 0;    // receives: in which order they were posted
  std::uint32_t rank = 0;     // of this node
  std::uint32_t peer = 0;     // rank of the world, or any_rank
  std::int32_t tag = 0;       // or any_tag
  std::uint32_t context = 0;
  std::uint32_t activity = none;  // the collective this belongs to, or is
  std::uint32_t operation = 0;    // that made it
  Type type = Type::send;
  bool in_slot = false;  // a slot names it; otherwise the rank waits for it
  bool awaited = false;  // the rank waits for it, now
  bool complete = false;
  bool persistent = false;
  bool active = true;  // persistent ones: between start and completion
  bool freed = false;  // to be forgotten when complete

  bool fits(const Envelope& envelope) const {
    return context == envelope.context && (peer == any_rank || peer == envelope.source) &&
           (tag == any_tag || tag == envelope.tag);
  }
};

// A message that has arrived and that its receive or its processor has not seen to.
struct Arrival {
  Envelope envelope;
  std::uint64_t bytes = 0;
  std::uint32_t next = none;                  // in a bucket
  std::uint32_t rank = 0;                     // of this node
  std::uint32_t request = none;               // the receive it belongs to
  std::uint32_t before = none, after = none;  // unexpected ones of the rank, in the order they came
  std::uint32_t inbox_next = none;
  bool seen = false;   // by the processor, which found no receive for it
  bool local = false;  // from this node
};

// Lists of pool objects by hash of their keys, each in the order of insertion.
template <class T>
class Buckets {
 public:
  explicit Buckets(Pool<T>& pool) : pool_(pool) {}

  void append(std::uint32_t number, std::uint64_t hash) {
    if (++size_ > last_.size()) grow();
    link(number, hash);
  }
  // Takes out and returns the first that fits, or none.
  template <class Fits>
  std::uint32_t take(std::uint64_t hash, Fits&& fits) {
    const std::uint32_t found = find(hash, fits);
    if (found != none) remove(found, hash);
    return found;
  }
  template <class Fits>
  std::uint32_t find(std::uint64_t hash, Fits&& fits) const {
    if (size_ == 0) return none;
    const std::uint32_t last = last_[hash & (last_.size() - 1)];
    if (last == none) return none;
    std::uint32_t at = last;
    do {
      at = pool_[at].next;
      if (fits(pool_[at])) return at;
    } while (at != last);
    return none;
  }
  void remove(std::uint32_t number, std::uint64_t hash) {
    std::uint32_t& last = last_[hash & (last_.size() - 1)];
    std::uint32_t before = last;
    while (pool_[before].next != number) before = pool_[before].next;
    if (before == number) {
      last = none;
    } else {
      pool_[before].next = pool_[number].next;
      if (last == number) last = before;
    }
    --size_;
  }

 private:
  void link(std::uint32_t number, std::uint64_t hash) {
    std::uint32_t& last = last_[hash & (last_.size() - 1)];
    if (last == none) {
      pool_[number].next = number;
    } else {
      pool_[number].next = pool_[last].next;
      pool_[last].next = number;
    }
    last = number;
  }
  void grow() {
    std::vector<std::uint32_t> old(std::max<std::size_t>(4, last_.size() * 2), none);
    old.swap(last_);
    for (const std::uint32_t last : old) {
      if (last == none) continue;
      std::uint32_t at = pool_[last].next;
      for (bool more = true; more;) {
        const std::uint32_t next = pool_[at].next;
        more = at != last;
        link(at, hash_of(pool_[at]));
        at = next;
      }
    }
  }

  Pool<T>& pool_;
  std::vector<std::uint32_t> last_;  // of each circular list, if any; its `next` is the first
  std::size_t size_ = 0;
};

inline std::uint64_t hash_key(std::uint32_t rank, std::uint32_t source, std::int32_t tag,
                              std::uint32_t context) {
  return mix64((std::uint64_t{source} << 32 | static_cast<std::uint32_t>(tag)) +
               (std::uint64_t{context} << 32 | rank) * 0x9e3779b97f4a7c15u);
}
inline std::uint64_t hash_of(const Request& request) {
  return hash_key(request.rank, request.peer, request.tag, request.context);
}
inline std::uint64_t hash_of(const Arrival& arrival) {
  return hash_key(arrival.rank, arrival.envelope.source, arrival.envelope.tag, arrival.envelope.context);
}

class Matcher {
 public:
  Matcher(Pool<Request>& requests, Pool<Arrival>& arrivals, std::uint32_t ranks)
      : requests_(requests), arrivals_(arrivals), posted_(requests), unexpected_(arrivals), lists_(ranks) {}

  // Posts a receive: returns the unexpected message it takes, or none, in which case it waits for one.
  std::uint32_t post(std::uint32_t request);
  // The posted receive that a message takes, or none.
  std::uint32_t match(std::uint32_t rank, const Envelope& envelope);
  // Keeps a message for which no receive was posted.
  void keep(std::uint32_t arrival);
  // The first kept message that a probe fits; it stays.
  std::uint32_t probe(std::uint32_t rank, const Request& wanted) const;

 private:
  struct Lists {
    std::uint32_t first_wild = none, last_wild = none;              // receives with wildcards
    std::uint32_t first_unexpected = none, last_unexpected = none;  // messages
  };

  static bool wild(const Request& request) { return request.peer == any_rank || request.tag == any_tag; }
  void unlink(std::uint32_t arrival);

  Pool<Request>& requests_;
  Pool<Arrival>& arrivals_;
  Buckets<Request> posted_;
  Buckets<Arrival> unexpected_;
  std::vector<Lists> lists_;
  std::uint32_t posts_ = 0;
};

}  // namespace manyscale::mpi
