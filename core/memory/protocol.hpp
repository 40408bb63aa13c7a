// SPDX-License-Identifier: Apache-2.0
// What travels between requesters (cores, SMs, caches), interconnects, shared caches and memory controllers.
#pragma once
#include <bit>
#include <cstdint>

#include "engine/port.hpp"

namespace manyscale::memory {

// Data moves in sectors of 32 bytes; a line has one to eight of them.
inline constexpr std::uint32_t sector_bytes = 32;
// What a message takes on a link besides its data.
inline constexpr std::uint32_t header_bytes = 8;

// What stands for the data of a line, or a number of the requester's own.
using Value = std::uint32_t;

// On whose behalf something moves: a number that whoever runs the system gives to a kernel, a copy or the
// like. It changes nothing but what is counted for whom (see attribution.hpp).
using Origin = std::uint32_t;
inline constexpr Origin nobody = 0;

enum class Op : std::uint8_t {
  // From requester to responder.
  read,            // answered by data
  write,           // carries data; answered by write_ack where `wants_ack` is set
  atomic,          // read-modify-write at the responder; answered by atomic_result
  get_shared,      // coherent read; answered by data
  get_modified,    // coherent write permission; answered by data, or by upgrade_ack where `has_data` was set
  put,             // gives an owned line back, with data where `dirty` is set; answered by put_ack
  invalidate_ack,  // answers invalidate and downgrade; carries data where `dirty` is set
  done,            // the answer to a get_ has arrived: the home may go on with this line

  // From responder to requester.
  data,  // `exclusive` and `modified` say with which permission
  write_ack,
  atomic_result,  // `value` is what was there before
  upgrade_ack,    // write permission without data
  put_ack,
  invalidate,  // give the line up
  downgrade,   // keep the line, but shared
};

// Where the data of an access was found, from near to far.
enum class Served : std::uint8_t {
  l1,
  l2,      // second private level
  l3,      // third private level
  shared,  // a slice of a shared cache
  peer,    // a shared cache that had to ask other cores' caches first
  dram,
};

struct Flag {
  static constexpr std::uint8_t wants_ack = 1;  // of write
  static constexpr std::uint8_t has_data = 2;   // of get_modified: the requester holds the line shared
  static constexpr std::uint8_t dirty = 4;      // the message's data is newer than memory
  static constexpr std::uint8_t exclusive = 8;  // of data: nobody else holds the line
  static constexpr std::uint8_t modified = 16;  // of data: the line may be written
  static constexpr std::uint8_t rounds = 32;    // of atomic: `tag` says how many rounds it takes
  static constexpr std::uint8_t fetch = 64;     // of get_shared: for instructions, never to be written
  static constexpr std::uint8_t partial = 128;  // of write: `tag` says which sectors are written in part
};

struct Message {
  std::uint64_t address = 0;  // of the line
  // Stands for the data, where a test wants to see that the right data arrives; otherwise an answer gives
  // back what the request had.
  Value value = 0;
  Op op = Op::read;
  std::uint8_t flags = 0;
  std::uint8_t sectors = 0;  // which sectors of the line are wanted or carried
  // Of atomic: the requester's number, given back in the answer; or see Flag::rounds. Of write: see
  // Flag::partial. Of data and upgrade_ack: where it was found (Served).
  std::uint8_t tag = 0;
  // An interconnect writes the source when a message enters it; answers go back there. Requests say which
  // responder they are for, counted from 0 in the order of connection.
  std::uint16_t source = 0;
  std::uint16_t destination = 0;
  Origin origin = nobody;  // an answer has that of its request

  bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
  Served served() const { return static_cast<Served>(tag); }

  bool carries_data() const {
    switch (op) {
      case Op::write:
      case Op::atomic:
      case Op::atomic_result:
      case Op::data:
        return true;
      case Op::put:
      case Op::invalidate_ack:
        return has(Flag::dirty);
      default:
        return false;
    }
  }
  // What the message takes on a link.
  std::uint32_t bytes() const {
    return header_bytes +
           (carries_data() ? sector_bytes * static_cast<std::uint32_t>(std::popcount(sectors)) : 0);
  }
};
static_assert(sizeof(Message) == 24);

struct MemoryProtocol {
  static constexpr std::string_view name = "memory";
  static constexpr std::array<std::string_view, 2> roles{"requester", "responder"};
  using First = Message;
  using Second = Message;
};

using RequesterPort = Port<MemoryProtocol, 0>;
using ResponderPort = Port<MemoryProtocol, 1>;

}  // namespace manyscale::memory

namespace manyscale {

template <>
struct describe<memory::Message> {
  using M = memory::Message;
  static constexpr auto fields = std::tuple{
      Field<M, std::uint64_t>{"address", &M::address, Unit::none, "byte address of the line"},
      Field<M, memory::Value>{"value", &M::value, Unit::none, "stands for the data"},
      Field<M, memory::Op>{"op", &M::op, Unit::none, "what is wanted or answered; the order of memory::Op"},
      Field<M, std::uint8_t>{"flags", &M::flags, Unit::none, "see memory::Flag"},
      Field<M, std::uint8_t>{"sectors", &M::sectors, Unit::none,
                             "sectors of the line wanted or carried, a bit each"},
      Field<M, std::uint8_t>{
          "tag", &M::tag, Unit::none,
          "number of an atomic operation; of data, where it was found, in the order of memory::Served"},
      Field<M, std::uint16_t>{"source", &M::source, Unit::none, "where the answer goes"},
      Field<M, std::uint16_t>{"destination", &M::destination, Unit::none,
                              "which responder or requester it is for"},
      Field<M, memory::Origin>{"origin", &M::origin, Unit::none,
                               "on whose behalf; 0: nobody's in particular"}};
};

}  // namespace manyscale
