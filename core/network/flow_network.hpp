// SPDX-License-Identifier: Apache-2.0
// A network as a fluid: each message is a flow along one way, and flows share channels by max-min fairness. A
// node's messages follow each other, or share its link where the NIC's order is round-robin. Messages of one
// packet pass between flows; they wait for others of their kind at the links of the two nodes. In an ideal
// network all messages are like that, and wait at the sender's link only. One component, so one thread. Not
// modelled: buffers, and what their being full does to others.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/component.hpp"
#include "engine/timer.hpp"
#include "network/fair_shares.hpp"
#include "network/link_history.hpp"
#include "network/message.hpp"
#include "network/notice_port.hpp"
#include "network/routing.hpp"

namespace manyscale::network {

struct FlowStatistics {
  Counter messages, bytes, packets, packet_hops, shared_out;
  Histogram latency;
};

class FlowNetwork final : public Component, public Fabric {
 public:
  FlowNetwork(const Routing& routing, MessagePool& pool, const NetworkSpec& spec);

  void resume() override { pool_.prepare(partition_index() + 1); }
  void submit(std::uint32_t slot, Time delay) override;

  NoticePort& nics() { return nics_; }
  // For the builder: by which link of that port a node is reached.
  void set_lane(std::uint32_t node, std::uint32_t lane) { nic_lanes_[node] = lane; }
  const FlowStatistics& totals() const { return statistics_; }

  // What went over a channel.
  struct Usage {
    std::int64_t bytes = 0, packets = 0;
    Time queueing = 0;
  };
  const std::vector<Usage>& usage() const { return usage_; }
  const std::vector<LinkHistory>& histories() const { return histories_; }

 private:
  // What a message sends by one rail: all of it, or its part where there are several.
  struct Flow {
    std::uint32_t slot = no_slot;
    std::uint32_t share = nowhere;     // its number there, while it flows
    std::uint32_t next = nowhere;      // in the pool
    std::uint32_t position = nowhere;  // among the ends
    std::uint64_t bytes = 0;           // with headers
    std::uint64_t packets = 0;
    double left = 0;  // bytes
    double rate = 0;  // bytes per femtosecond
    Time since = 0;   // when `left` was right
    Time began = 0;
    Time ends = never;
    Time alone = 0;    // how long it would take alone
    Time latency = 0;  // of its way
    std::vector<std::uint32_t> way;
  };
  void enter(const std::uint32_t& slot);
  void tick(const std::uint64_t& stamp);
  void pass_between(std::uint32_t slot, std::uint64_t packets);
  void head_arrives(const std::uint32_t& slot);
  void begin(std::uint32_t flow, std::uint32_t rail);
  void finish(std::uint32_t flow);
  void arrive(std::uint32_t slot);
  // Adds bytes to the load of the flow's links, spread evenly over a time of constant rate.
  void note_sent(const Flow& flow, Time begin, Time end, double bytes);
  void note_usage(const Flow& flow, Time begin, Time end);
  void set_ends(std::uint32_t flow);
  void want_tick(Time time);
  std::uint32_t take_flow();

  const Routing& routing_;
  const Topology& topology_;
  MessagePool& pool_;
  const bool ideal_;
  const std::uint64_t payload_, header_;
  const Time switch_latency_, gap_;
  FlowStatistics statistics_;
  std::vector<std::uint32_t> nic_lanes_;
  NoticePort nics_{*this, nic_lanes_};
  Timer<std::uint32_t> enter_{*this};
  Timer<std::uint64_t> tick_{*this};
  Timer<std::uint32_t> head_arrives_{*this};
  FairShares shares_;
  std::vector<std::uint32_t> flow_of_share_;
  std::vector<Flow> flows_;
  std::uint32_t free_flow_ = nowhere;
  std::vector<Time>
      sending_until_;  // per node and rail: messages that pass between flows occupy the link until then
  std::vector<Time> receiving_until_;  // per node
  std::vector<Time> gap_until_;        // per node
  std::vector<std::uint32_t> next_rail_;
  struct Ends {
    std::vector<Flow>& flows;
    std::vector<std::uint32_t> heap;

    void update(std::uint32_t flow);
    void remove(std::uint32_t flow);
    bool before(std::uint32_t a, std::uint32_t b) const;
    void put(std::size_t position, std::uint32_t flow);
    void settle(std::size_t position);
  } ends_{flows_, {}};
  std::uint64_t stamp_ = 0;  // of the tick that is wanted
  Time tick_at_ = never;
  std::vector<Usage> usage_;
  std::vector<LinkHistory> histories_;
};

}  // namespace manyscale::network

namespace manyscale {

template <>
struct describe<network::FlowStatistics> {
  using S = network::FlowStatistics;
  static constexpr auto fields = std::tuple{
      Statistic<S, Counter>{"messages", &S::messages, "message", "messages that arrived"},
      Statistic<S, Counter>{"bytes", &S::bytes, "B", "bytes of those messages"},
      Statistic<S, Counter>{"packets", &S::packets, "packet", "packets that messages would be sent in"},
      Statistic<S, Counter>{"packet_hops", &S::packet_hops, "packet",
                            "channels that those packets would take"},
      Statistic<S, Counter>{"shared_out", &S::shared_out, "channel",
                            "channels whose share was computed, in all"},
      Statistic<S, Histogram>{"message_latency", &S::latency, "fs",
                              "from a message's entry into the NIC's queue to the arrival of its last byte"}};
};

}  // namespace manyscale
