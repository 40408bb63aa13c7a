// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "memory/interconnect/interconnect.hpp"
#include "memory/interconnect/wheel.hpp"

namespace manyscale::memory {

struct MeshSpec : InterconnectSpec {
  std::int64_t width = 4;
  std::int64_t height = 4;
  Cycle router = 2;
  Cycle link = 1;
  Cycle credit = 1;
  std::int64_t depth = 16;
  bool share_routers = true;
  std::string requester_positions;
  std::string responder_positions;
};

struct MeshStatistics {
  Histogram hops;
  Counter credit_stall;
  Counter east_busy;
  Counter west_busy;
  Counter south_busy;
  Counter north_busy;
};

// The mesh of routers of a manycore, with XY routing (along the row, then along the column; so no circle of
// waiting messages can form), a link between neighbours in each direction that requests and responses share,
// and an input buffer for each of both at each port of a router. A message goes on as a whole (virtual
// cut-through) when it is the first of its buffer, the link is free and the next buffer has credits for its
// flits as they come; buffers that are full hold up those before them, back to the queue of the source, which
// has no limit. Links are given to the buffers that want them in turn. Leaves out: further virtual channels,
// and the stages inside a router.
class Mesh final : public Interconnect<Mesh> {
 public:
  using Spec = MeshSpec;

  explicit Mesh(const Spec& spec);

 private:
  friend class Interconnect<Mesh>;

  static constexpr std::uint32_t none = ~0u;

  // What leaves a router, and by which link a message came to it: from its node or from a neighbour.
  enum Heading : std::uint32_t { local, east, west, south, north, headings };
  // The inputs of a router are its buffers, two for each heading, and the two queues of its nodes; its
  // outputs are the links to its nodes, those to its neighbours, and those by which its nodes send.
  static constexpr std::uint32_t inputs = 2 * headings + 2;
  static constexpr std::uint32_t first_queue = 2 * headings;
  static constexpr std::uint32_t outputs = headings + 3;
  static constexpr std::uint32_t response_exit = headings;
  static constexpr std::uint32_t first_entry = headings + 1;

  struct Packet {
    Message message;
    Time arrived;          // here
    Cycle ready;           // to enter
    Cycle ready_to_leave;  // the buffer it is in
    std::uint32_t to;      // router
    std::uint32_t flits;
    std::uint32_t hops;
    std::uint32_t next;  // in the same buffer
  };
  struct Input {
    std::uint32_t head = none;
    std::uint32_t tail = none;
    std::uint32_t before = 0;  // the output that sends to it
    std::uint32_t first = 0;   // the position of its first flit
    std::uint32_t next = 0;    // the position for the next flit to come
    Cycle left = 0;            // when the last message has left
    Cycle stalled = never;     // since when the head has waited for credits
  };
  struct Output {
    Cycle free = 0;
    std::uint32_t after = 0;     // the buffer for requests that it sends to; that for responses is the next
    std::uint16_t wanted = 0;    // by which inputs of the router, a bit each
    std::uint16_t turn = 0;      // the input that comes first next time
    bool out_of_credit = false;  // until a message leaves a buffer it sends to
  };

  void prepare();
  void position_nodes(std::uint32_t routers);
  void wire(std::uint32_t router);
  void accept(Direction direction, const Message& message, Cycle ready);
  Cycle tick(Cycle cycle);
  void look(std::uint32_t output, Cycle now);
  void move(std::uint32_t router, std::uint32_t side, std::uint32_t index, Cycle now);
  void push(std::uint32_t input, std::uint32_t packet, Cycle now);
  void set_head(std::uint32_t input, Cycle now);
  std::uint32_t route(std::uint32_t input, const Packet& packet) const;
  Cycle credits_at(std::uint32_t input, std::uint32_t flits) const;
  void take_credits(std::uint32_t input, std::uint32_t flits);
  void return_credits(std::uint32_t input, std::uint32_t flits, Cycle now);
  void deliver_packet(Direction direction, const Packet& packet, Cycle now);
  [[noreturn]] void refuse_length(Cycle flits) const;

  const Spec spec_;
  MeshStatistics statistics_;
  const std::uint32_t width_;
  const std::uint32_t depth_;
  std::array<std::vector<std::uint32_t>, 2> positions_;  // the routers of requesters and of responders
  std::vector<std::uint32_t> columns_;                   // of routers
  std::vector<Input> inputs_;                            // of all routers
  std::vector<Output> outputs_;
  std::vector<Cycle> credits_;  // `depth` for each input: when each is there, `never` while a flit is
  std::vector<Packet> packets_;
  std::uint32_t unused_ = none;  // the first of the unused packets
  Wheel wheel_;                  // of outputs
};

}  // namespace manyscale::memory

namespace manyscale {

template <>
struct describe<memory::MeshSpec> {
  using Spec = memory::MeshSpec;
  static constexpr auto fields = std::tuple_cat(
      memory::interconnect_fields<Spec>("what a link takes in a cycle"),
      std::tuple{
          Field<Spec, std::int64_t>{"width", &Spec::width, Unit::count, "routers in a row", 1, 1024},
          Field<Spec, std::int64_t>{"height", &Spec::height, Unit::count, "rows of routers", 1, 1024},
          Field<Spec, Cycle>{"router", &Spec::router, Unit::cycles, "from a router's input to its output", 0,
                             1e6},
          Field<Spec, Cycle>{"link", &Spec::link, Unit::cycles, "from router to router, or to or from a node",
                             1, 1e6},
          Field<Spec, Cycle>{"credit", &Spec::credit, Unit::cycles,
                             "from a flit's leaving a buffer to the next use of its position by the sender",
                             1, 1e6},
          Field<Spec, std::int64_t>{"depth", &Spec::depth, Unit::count,
                                    "flits that an input buffer holds; at least those of the longest message",
                                    1, 65536},
          Field<Spec, bool>{"share_routers", &Spec::share_routers, Unit::none,
                            "a requester and a responder may be at one router (tiles)"},
          Field<Spec, std::string>{"requester_positions", &Spec::requester_positions, Unit::none,
                                   "the router of each requester, such as 0,1,4, counted along the rows; "
                                   "empty: the first ones, or where routers are not shared the first ones "
                                   "without a responder"},
          Field<Spec, std::string>{"responder_positions", &Spec::responder_positions, Unit::none,
                                   "the router of each responder; empty: spread evenly over all"}});
};

template <>
struct describe<memory::MeshStatistics> {
  using S = memory::MeshStatistics;
  static constexpr auto fields = std::tuple{
      Statistic<S, Histogram>{"hops", &S::hops, "hop", "links between routers that a message goes over"},
      Statistic<S, Counter>{"credit_stall", &S::credit_stall, "fs",
                            "time from when only credits kept the first message of a buffer or queue "
                            "until it left"},
      Statistic<S, Counter>{"east_busy", &S::east_busy, "fs",
                            "time for which links eastward were taken, summed over them"},
      Statistic<S, Counter>{"west_busy", &S::west_busy, "fs",
                            "time for which links westward were taken, summed over them"},
      Statistic<S, Counter>{"south_busy", &S::south_busy, "fs",
                            "time for which links to the next row were taken, summed over them"},
      Statistic<S, Counter>{"north_busy", &S::north_busy, "fs",
                            "time for which links to the row before were taken, summed over them"}};
};

}  // namespace manyscale
