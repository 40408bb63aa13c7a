// SPDX-License-Identifier: Apache-2.0
// Switches that are simulated by one component, with the sending sides of the nodes attached to them.
// Switches are input-queued: a packet stays in the buffer of the virtual channel it came by until its output
// takes it, first come first served, and it fits into the next buffer. Where packets of one buffer have to
// leave in order, one at a time, they also wait for those before them; outputs then serve inputs in turn. A
// packet leaves when its head has come, not its tail (cut-through). Not modelled: the receiving NIC, and
// where packets need not leave in order, limits of the crossbar.
//
// The work of a group is in a calendar queue of its own, one entry per packet and hop, plus one where a
// packet has to wait for room. All of a window of time is done at its beginning, which is safe because a
// window is no longer than any hop (a channel and the switch at its end): what nodes and other groups send
// within a window arrives after it. NICs live in the time of their hosts, so what they do are events of their
// own.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/component.hpp"
#include "engine/exchange.hpp"
#include "engine/port.hpp"
#include "engine/simulation.hpp"
#include "engine/timer.hpp"
#include "network/nic.hpp"
#include "network/notice_port.hpp"
#include "network/packet_network.hpp"

namespace manyscale::network {

// Room that comes back to another group.
struct PassingRoom {
  Time last = 0;
  std::uint32_t bytes = 0;
  std::uint32_t lane = nowhere;
};

// What a group sends another in one window. The two take turns with two of them: while the receiver reads
// one, the sender fills the other.
struct Mail {
  std::vector<Packet> packets;
  std::vector<PassingRoom> room;
};

// Says that mail is there.
struct MailNotice {
  Mail* mail = nullptr;
};

struct MailProtocol {
  static constexpr std::string_view name = "mail between switches";
  static constexpr std::array<std::string_view, 2> roles{"peer", "peer"};
  using First = MailNotice;
  using Second = MailNotice;
};

struct SwitchGroupStatistics {
  Counter messages, bytes, packets, packet_hops;
  Histogram latency;
};

class SwitchGroup final : public Component, public Fabric, public Distributable {
 public:
  SwitchGroup(PacketNetwork& network, std::uint32_t domain);

  void resume() override { network_.pool.prepare(partition_index() + 1); }
  std::vector<Wait> waits() const override;
  void submit(std::uint32_t slot, Time delay) override;

  // Mail between processes: packets with what their receiver has to know of their message, and room.
  void distribute(std::uint32_t process, std::uint32_t processes) override;
  bool has_payload() const override { return true; }
  void pack(const Event& event, Bytes& bytes) override;
  void unpack(Event& event, std::span<const std::byte> bytes) override;

  const SwitchGroupStatistics& totals() const { return statistics_; }

  // For the builder, which joins groups and nodes. Ports are made when there is something to join.
  NoticePort& nics();
  void join(Simulation& simulation, SwitchGroup& other);

 private:
  using MailPort = Port<MailProtocol, 0>;
  struct NicEntry {
    std::uint32_t lane;
    bool wake;
  };
  // Mail to a group, by turns.
  struct Peer {
    std::uint32_t port_lane = nowhere;
    std::array<std::unique_ptr<Mail>, 2> mail;
  };

  // Events.
  void advance(const std::int64_t& window);
  void schedule_later(const CalendarEntry& entry) { schedule(entry); }
  void serve_nic_entry(const NicEntry& entry);
  void enter(const std::uint32_t& slot);
  void receive_mail(const MailNotice& notice, std::uint32_t lane);

  // Nodes.
  void serve_nic(std::uint32_t lane);
  std::uint64_t unit_packets(const NodeQueue& node, std::uint64_t packets) const;
  std::uint32_t next_unit(NodeQueue& node);
  void unit_sent(std::uint32_t slot, std::uint32_t bytes, Time end);
  void deliver(std::uint32_t slot);
  bool is_nic(std::uint32_t lane) const { return lane >= network_.topology.queues(); }
  NicLink& nic_link(std::uint32_t lane) { return network_.nic_links[lane - network_.topology.queues()]; }
  std::uint32_t node_of(std::uint32_t lane) const {
    return (lane - network_.topology.queues()) / network_.topology.rails();
  }

  // Switches.
  void schedule(const CalendarEntry& entry);
  void schedule(std::uint32_t lane, Time time);
  void enqueue(std::uint32_t packet);
  void fetch_ahead();
  void route(Packet& packet, const Inlet& inlet);
  void serve(std::uint32_t packet);
  Time earliest_start(const Packet& packet, const Output& out) const;
  bool from_node(const Packet& packet) const;
  void attempt(std::uint32_t packet);
  Time when_room(const Packet& packet, Credits& credits, Time earliest, const Rate& rate);
  void wait_for_room(std::uint32_t packet, Credits& credits, std::uint32_t wanted);
  void serve_waiting(Credits& credits, std::uint32_t lane);
  void start_packet(std::uint32_t packet, Time start);
  void leave_nic(std::uint32_t lane, Time end);
  void leave_in_order(std::uint32_t lane, Time end);
  void give_room(std::uint32_t lane, const Inlet& inlet, Time last, std::uint32_t bytes);
  void forward(std::uint32_t packet, Output& out, Time start, Time end);
  Mail& mail_to(std::uint32_t domain);
  void post_mail();
  void make_port();

  std::uint32_t take_packet();
  void give_back_packet(std::uint32_t packet);

  PacketNetwork& network_;
  const std::uint32_t domain_;
  const bool by_load_;  // whether ways depend on load, so that they must not be chosen early
  SwitchGroupStatistics statistics_;
  std::unique_ptr<NoticePort> nics_;
  std::unique_ptr<MailPort> mail_;
  std::vector<Peer> peers_;  // by domain
  // Mail that came from other processes, by lane; two of them, used in turn.
  struct Arrivals {
    std::array<Mail, 2> mail;
    std::uint32_t turn = 0;
  };
  std::vector<Arrivals> arrivals_;
  Timer<std::int64_t> advance_{*this};
  Timer<CalendarEntry> later_{*this};
  Timer<NicEntry> nic_timer_{*this};
  Timer<std::uint32_t> enter_{*this};
  CalendarQueue calendar_;
  Time time_ = 0;        // of what is being done: now or, within a window, later
  Time window_end_ = 0;  // of the last window opened
  std::uint32_t turn_ = 0;
  std::vector<Packet> packets_;
  std::uint32_t free_packet_ = nowhere;
  DrainPool drains_;
  std::uint32_t waiting_ = 0;  // packets that wait for room
};

}  // namespace manyscale::network

namespace manyscale {

template <>
struct describe<network::SwitchGroupStatistics> {
  using S = network::SwitchGroupStatistics;
  static constexpr auto fields = std::tuple{
      Statistic<S, Counter>{"messages", &S::messages, "message",
                            "messages that arrived at nodes of these switches"},
      Statistic<S, Counter>{"bytes", &S::bytes, "B", "bytes of those messages"},
      Statistic<S, Counter>{"packets", &S::packets, "packet", "packets sent by nodes of these switches"},
      Statistic<S, Counter>{"packet_hops", &S::packet_hops, "packet", "channels that packets took from here"},
      Statistic<S, Histogram>{"message_latency", &S::latency, "fs",
                              "from a message's entry into the NIC's queue to the arrival of its last byte"}};
};

}  // namespace manyscale
