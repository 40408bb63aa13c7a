// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "memory/flat_map.hpp"
#include "memory/interconnect/reserving.hpp"
#include "memory/interconnect/timetable.hpp"

namespace manyscale::memory {

struct SocketsSpec : InterconnectSpec {
  std::int64_t sockets = 2;
  std::string placement = "first_touch";
  std::int64_t page_size = 4096;
  Cycle traversal = 12;
  Time crossing_latency = 25 * nanosecond;
  std::int64_t crossing_bandwidth = 38'400'000'000;
};

struct SocketsStatistics {
  Counter remote, link_busy, pages;
  Histogram link_queueing;
};

// The networks of several sockets and the links between them. Requesters and responders are assigned to
// sockets in the order of connection, as many to each. In a socket every message takes the same time, and
// then a port of its destination; to another socket it takes the link there, one in each direction between
// any two sockets, and crosses the other socket's network too. Each page of memory belongs to a socket, that
// of the core whose request for it comes first or one in turn, and requests go to a responder of that socket:
// the requester's choice tells which. Leaves out: the positions of cores and slices within a socket, and
// copies of the other socket's lines in the cache of one's own.
class Sockets final : public ReservingInterconnect<Sockets> {
 public:
  using Spec = SocketsSpec;

  explicit Sockets(const Spec& spec);

 private:
  friend class ReservingInterconnect<Sockets>;

  void prepare();
  void readdress(Message& message);
  Passage carry(Direction direction, std::uint32_t source, std::uint32_t destination, Cycle flits, Cycle now);
  std::uint32_t socket_of(Direction side, std::uint32_t node) const { return node / per_socket_[side]; }

  const Spec spec_;
  const std::uint32_t sockets_;
  const bool first_touch_;
  int page_shift_ = 0;
  SocketsStatistics statistics_;
  FlatMap<std::uint32_t> pages_;               // the socket of each page touched
  std::array<std::uint32_t, 2> per_socket_{};  // requesters, and responders
  Cycle crossing_latency_ = 0;
  double link_cycles_per_flit_ = 0;
  std::array<std::vector<Timetable>, 2> outputs_;  // by direction, per destination
  std::array<std::vector<Timetable>, 2> links_;    // by direction, from socket to socket
};

}  // namespace manyscale::memory

namespace manyscale {

template <>
struct describe<memory::SocketsSpec> {
  using Spec = memory::SocketsSpec;
  static constexpr auto fields = std::tuple_cat(
      memory::interconnect_fields<Spec>("what a port takes in a cycle"),
      std::tuple{Field<Spec, std::int64_t>{"sockets", &Spec::sockets, Unit::count,
                                           "sockets, with as many requesters and responders each", 1, 64},
                 Field<Spec, std::string>{
                     "placement", &Spec::placement, Unit::none,
                     "whose memory a page is in: first_touch (that of the first core to ask for "
                     "it) or interleave (page by page in turn)"},
                 Field<Spec, std::int64_t>{"page_size", &Spec::page_size, Unit::bytes,
                                           "what is allocated in one socket's memory, a power of two", 64,
                                           1LL << 40},
                 Field<Spec, Cycle>{"traversal", &Spec::traversal, Unit::cycles,
                                    "through the network of a socket, for the first flit", 0, 1e6},
                 Field<Spec, Time>{"crossing_latency", &Spec::crossing_latency, Unit::time,
                                   "of a link from one socket to another", 0, 1e15},
                 Field<Spec, std::int64_t>{"crossing_bandwidth", &Spec::crossing_bandwidth, Unit::bandwidth,
                                           "of a link from one socket to another, each direction", 1, 1e15}});
};

template <>
struct describe<memory::SocketsStatistics> {
  using S = memory::SocketsStatistics;
  static constexpr auto fields = std::tuple{
      Statistic<S, Counter>{"remote", &S::remote, "message", "messages from one socket to another"},
      Statistic<S, Counter>{"link_busy", &S::link_busy, "fs",
                            "time for which links were taken, summed over them"},
      Statistic<S, Counter>{"pages", &S::pages, "page", "pages allocated by first touch"},
      Statistic<S, Histogram>{"link_queueing", &S::link_queueing, "fs", "time a message waited for a link"}};
};

}  // namespace manyscale
