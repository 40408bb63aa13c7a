// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "memory/interconnect/reserving.hpp"
#include "memory/interconnect/timetable.hpp"

namespace manyscale::memory {

struct RingSpec : InterconnectSpec {
  std::int64_t stops = 0;
  Cycle hop = 1;
  Cycle stop_latency = 1;
  std::string requester_positions;
  std::string responder_positions;
};

struct RingStatistics {
  Histogram hops;
  Counter clockwise_busy;
  Counter counterclockwise_busy;
};

// The ring bus of a multicore or a memory die, with wires in both directions for requests and again for
// responses: a message goes the shorter way, gets on when it will find every segment of its way free as it
// comes by, and then never waits. Where both ways are equally long, even stops send clockwise and odd ones
// the other way. Leaves out: buffers, since nothing waits on the ring; limits of what a stop can take off;
// and flits that travel apart: a gap shorter than a message is of no use to it.
class Ring final : public ReservingInterconnect<Ring> {
 public:
  using Spec = RingSpec;

  explicit Ring(const Spec& spec);

 private:
  friend class ReservingInterconnect<Ring>;

  void prepare();
  Passage carry(Direction direction, std::uint32_t source, std::uint32_t destination, Cycle flits, Cycle now);
  Cycle first_passage(Timetable* segments, std::uint32_t first, std::uint32_t hops, Cycle flits,
                      Cycle now) const;

  const Spec spec_;
  RingStatistics statistics_;
  std::uint32_t stops_ = 0;
  std::array<std::vector<std::uint32_t>, 2> positions_;  // the stops of requesters and of responders
  // By direction, and by the way round. Segment k goes from the k-th stop of that way to the next; the stops
  // of the counterclockwise way are numbered backwards, so that both ways go up.
  std::array<std::array<std::vector<Timetable>, 2>, 2> segments_;
};

}  // namespace manyscale::memory

namespace manyscale {

template <>
struct describe<memory::RingSpec> {
  using Spec = memory::RingSpec;
  static constexpr auto fields = std::tuple_cat(
      memory::interconnect_fields<Spec>("what a segment takes in a cycle"),
      std::tuple{
          Field<Spec, std::int64_t>{"stops", &Spec::stops, Unit::count,
                                    "stops of the ring; 0 for one per requester and responder", 0, 131072},
          Field<Spec, Cycle>{"hop", &Spec::hop, Unit::cycles, "from one stop to the next", 1, 1e6},
          Field<Spec, Cycle>{"stop_latency", &Spec::stop_latency, Unit::cycles,
                             "for getting on and off together", 0, 1e6},
          Field<Spec, std::string>{
              "requester_positions", &Spec::requester_positions, Unit::none,
              "the stop of each requester, such as 0,2,4; empty: see responder_positions"},
          Field<Spec, std::string>{"responder_positions", &Spec::responder_positions, Unit::none,
                                   "the stop of each responder; empty: both kinds spread evenly, with stops "
                                   "of their own where there is one for each node"}});
};

template <>
struct describe<memory::RingStatistics> {
  using S = memory::RingStatistics;
  static constexpr auto fields = std::tuple{
      Statistic<S, Histogram>{"hops", &S::hops, "hop", "segments that a message goes over"},
      Statistic<S, Counter>{"clockwise_busy", &S::clockwise_busy, "fs",
                            "time for which clockwise segments were taken, summed over them"},
      Statistic<S, Counter>{"counterclockwise_busy", &S::counterclockwise_busy, "fs",
                            "time for which counterclockwise segments were taken, summed over them"}};
};

}  // namespace manyscale
