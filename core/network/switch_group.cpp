// SPDX-License-Identifier: Apache-2.0
#include "network/switch_group.hpp"

#include <algorithm>
#include <utility>

#include "network/routing.hpp"

namespace manyscale::network {

SwitchGroup::SwitchGroup(PacketNetwork& network, std::uint32_t domain)
    : network_(network),
      domain_(domain),
      by_load_(network.routing.rules().by_load()),
      peers_(network.topology.domains()),
      calendar_(network.shortest_hop) {
  advance_.on_expire<&SwitchGroup::advance>();
  later_.on_expire<&SwitchGroup::schedule_later>();
  nic_timer_.on_expire<&SwitchGroup::serve_nic_entry>();
  enter_.on_expire<&SwitchGroup::enter>();
  declare(statistics_);
}

NoticePort& SwitchGroup::nics() {
  if (!nics_) nics_ = std::make_unique<NoticePort>(*this, network_.nic_lanes);
  return *nics_;
}

void SwitchGroup::make_port() {
  if (mail_) return;
  mail_ = std::make_unique<MailPort>(*this, "mail", "other groups of switches", Links::many);
  mail_->on_receive<&SwitchGroup::receive_mail>();
}

void SwitchGroup::join(Simulation& simulation, SwitchGroup& other) {
  for (auto [from, to] : {std::pair{this, &other}, std::pair{&other, this}}) {
    from->make_port();
    Peer& peer = from->peers_[to->domain_];
    peer.port_lane = from->mail_->width();
    for (auto& mail : peer.mail) mail = std::make_unique<Mail>();
  }
  simulation.connect(*mail_, *other.mail_, calendar_.window());
}

std::vector<Wait> SwitchGroup::waits() const {
  if (waiting_ == 0) return {};
  return {{std::to_string(waiting_) + " packets wait for room in the next buffer", ""}};
}

// Events

void SwitchGroup::advance(const std::int64_t&) {
  calendar_.open(now());
  window_end_ = now() + calendar_.window();
  turn_ ^= 1;
  CalendarEntry entry;
  while (calendar_.take(entry)) {
    fetch_ahead();
    time_ = entry.time;
    switch (entry.task) {
      case Task::serve_lane:
        serve(network_.lanes[entry.number].inlet.head);
        break;
      case Task::serve_packet:
        serve(entry.number);
        break;
      case Task::wake: {
        Credits& credits = network_.lanes[entry.number].credits;
        if (credits.wake != entry.time) break;  // an earlier time was found since
        credits.wake = never;
        serve_waiting(credits, entry.number);
      }
    }
  }
  post_mail();
}

// Has the processor fetch what comes up, in steps that each need what the one before has fetched. The network
// is too large for its caches, and without this most of the time would be spent waiting for memory.
void SwitchGroup::fetch_ahead() {
  const auto packet_of = [this](const CalendarEntry& entry) {
    switch (entry.task) {
      case Task::serve_lane:
        return network_.lanes[entry.number].inlet.head;
      case Task::serve_packet:
        return entry.number;
      case Task::wake:
        break;
    }
    const Credits& credits = network_.lanes[entry.number].credits;
    return credits.last_waiting != nowhere ? credits.last_waiting : credits.last_new;
  };
  if (const CalendarEntry* entry = calendar_.ahead(16)) {
    if (entry->task == Task::serve_packet) {
      __builtin_prefetch(&packets_[entry->number], 1);
    } else {
      const Lane& lane = network_.lanes[entry->number];
      __builtin_prefetch(entry->task == Task::wake ? static_cast<const void*>(&lane.credits) : &lane.inlet,
                         1);
    }
  }
  if (const CalendarEntry* entry = calendar_.ahead(11)) {
    if (entry->task == Task::serve_packet) {
      const Lane& lane = network_.lanes[packets_[entry->number].lane];
      __builtin_prefetch(&lane.inlet, 1);
      __builtin_prefetch(&lane.credits, 1);
    } else if (const std::uint32_t packet = packet_of(*entry); packet != nowhere) {
      __builtin_prefetch(&packets_[packet], 1);
    }
  }
  if (const CalendarEntry* entry = calendar_.ahead(7)) {
    if (const std::uint32_t index = packet_of(*entry); index != nowhere) {
      Packet& packet = packets_[index];
      const Lane& lane = network_.lanes[packet.lane];
      if (entry->task != Task::wake && !by_load_) route(packet, lane.inlet);
      if (packet.out != nowhere) __builtin_prefetch(&network_.outputs[packet.out], 1);
      if (entry->task == Task::wake) __builtin_prefetch(&lane.inlet, 1);
    }
  }
  if (const CalendarEntry* entry = calendar_.ahead(3); entry != nullptr && entry->task != Task::wake) {
    const Packet& packet = packets_[packet_of(*entry)];
    if (packet.out != nowhere) {
      const Output& out = network_.outputs[packet.out];
      const Lane& lane = network_.lanes[out.first_lane + packet.route.virtual_channel];
      __builtin_prefetch(out.to_node ? static_cast<const void*>(&network_.pool[packet.slot]) : &lane.credits,
                         1);
    }
  }
}

void SwitchGroup::schedule(const CalendarEntry& entry) {
  if (entry.time < window_end_) {
    calendar_.add_late(entry);
    return;
  }
  const std::int64_t window = calendar_.window_of(entry.time);
  const std::int64_t ahead = window - calendar_.window_of(now());
  if (ahead >= CalendarQueue::reach) {
    later_.after((ahead - CalendarQueue::reach / 2) * calendar_.window(), entry);
  } else if (calendar_.add(entry)) {
    // After what others send for this window.
    advance_.after(window * calendar_.window() - now(), window, default_priority + 1);
  }
}

void SwitchGroup::serve_nic_entry(const NicEntry& entry) {
  time_ = now();
  if (!entry.wake) {
    serve_nic(entry.lane);
    return;
  }
  Credits& credits = network_.lanes[entry.lane].credits;
  if (credits.wake != time_) return;
  credits.wake = never;
  serve_waiting(credits, entry.lane);
}

void SwitchGroup::receive_mail(const MailNotice& notice, std::uint32_t) {
  time_ = now();
  for (const Packet& packet : notice.mail->packets) {
    const std::uint32_t index = take_packet();
    packets_[index] = packet;
    enqueue(index);
  }
  notice.mail->packets.clear();
  for (const PassingRoom& passing : notice.mail->room) {
    Credits& credits = network_.lanes[passing.lane].credits;
    credits.add(passing.last, passing.bytes, drains_);
    // Looked at when the window is opened, so that what then leaves is part of the window's mail.
    if (!credits.awaited() || credits.wake <= time_) continue;
    credits.wake = time_;
    schedule({time_, passing.lane, Task::wake});
  }
  notice.mail->room.clear();
}

Mail& SwitchGroup::mail_to(std::uint32_t domain) {
  return *peers_[domain].mail[turn_];
}

void SwitchGroup::post_mail() {
  for (const Peer& peer : peers_) {
    if (peer.port_lane == nowhere) continue;
    Mail* mail = peer.mail[turn_].get();
    if (!mail->packets.empty() || !mail->room.empty()) mail_->send({mail}, 0, peer.port_lane);
  }
}

// Switches

void SwitchGroup::schedule(std::uint32_t lane, Time time) {
  if (is_nic(lane)) {
    nic_link(lane).busy = true;
    nic_timer_.after(time - now(), {lane, false});
  } else {
    network_.lanes[lane].inlet.busy = true;
    schedule({time, lane, Task::serve_lane});
  }
}

// Takes a packet into the buffer of its lane.
void SwitchGroup::enqueue(std::uint32_t index) {
  Packet& packet = packets_[index];
  packet.next = packet.out = nowhere;
  if (!network_.in_order) {
    schedule({packet.ready, index, Task::serve_packet});
    return;
  }
  Inlet& inlet = network_.lanes[packet.lane].inlet;
  (inlet.head == nowhere ? inlet.head : packets_[inlet.tail].next) = index;
  inlet.tail = index;
  if (!inlet.busy) schedule(packet.lane, std::max(packet.ready, inlet.free_at));
}

// Decides by which channel a packet leaves.
void SwitchGroup::route(Packet& packet, const Inlet& inlet) {
  if (packet.out != nowhere) return;
  PacketContext context{network_, drains_, random(), time_, inlet.first_channel, packet.bytes};
  const Hop hop = network_.routing.next(inlet.at, packet.route, context);
  packet.route.virtual_channel = hop.virtual_channel;
  packet.out = inlet.first_channel + hop.port;
}

void SwitchGroup::serve(std::uint32_t index) {
  Packet& packet = packets_[index];
  route(packet, network_.lanes[packet.lane].inlet);
  attempt(index);
}

// When a packet can leave as far as its output is concerned. Its tail must have come by when it has to leave,
// which matters where the way out is faster than the way in.
Time SwitchGroup::earliest_start(const Packet& packet, const Output& out) const {
  Time start = time_;
  if (!is_nic(packet.lane)) {
    const Rate& in = network_.lanes[packet.lane].inlet.rate;
    start = std::max(start, packet.ready + in(packet.bytes) - out.rate(packet.bytes));
  }
  if (out.busy_until <= start) return start;
  // A single packet slips in between those of trains: it waits for one packet of each train before it.
  if (network_.trains && packet.bytes <= network_.packet_bytes) {
    const Time one = out.rate(network_.packet_bytes);
    const Time trains_before = (out.busy_until - start) / (one * network_.unit_packets) + 1;
    return std::min(out.busy_until, start + trains_before * one);
  }
  return out.busy_until;
}

// Whether a packet is at its first switch.
bool SwitchGroup::from_node(const Packet& packet) const {
  return !is_nic(packet.lane) && network_.lanes[packet.lane].inlet.from_node;
}

// Sends a packet on its way if there is room for it, or lets it wait.
void SwitchGroup::attempt(std::uint32_t index) {
  const Packet& packet = packets_[index];
  const Output& out = network_.outputs[packet.out];
  const Time earliest = earliest_start(packet, out);
  if (out.to_node) {
    start_packet(index, earliest);
    return;
  }
  const std::uint32_t wanted = out.first_lane + packet.route.virtual_channel;
  Credits& credits = network_.lanes[wanted].credits;
  const bool is_new = from_node(packet);
  const bool others_first = credits.last_waiting != nowhere || (is_new && credits.last_new != nowhere);
  if (!others_first || (network_.trains && packet.bytes <= network_.packet_bytes)) {
    if (when_room(packet, credits, earliest, out.rate) <= earliest) {
      start_packet(index, earliest);
      return;
    }
  }
  wait_for_room(index, credits, wanted);
}

// When a packet can leave as far as room in the next buffer is concerned.
Time SwitchGroup::when_room(const Packet& packet, Credits& credits, Time earliest, const Rate& rate) {
  const std::int64_t bytes = packet.bytes;
  std::int64_t kept_free = 0;
  if (from_node(packet))
    kept_free = std::max<std::int64_t>(0, std::min(network_.kept_free, network_.buffer - bytes));
  return credits.when_room(bytes, kept_free, network_.packet_bytes, earliest, rate, drains_);
}

void SwitchGroup::wait_for_room(std::uint32_t index, Credits& credits, std::uint32_t wanted) {
  ++waiting_;
  const bool is_new = from_node(packets_[index]);
  std::uint32_t& last = is_new ? credits.last_new : credits.last_waiting;
  const bool only = last == nowhere;
  packets_[index].next_waiting = only ? index : std::exchange(packets_[last].next_waiting, index);
  last = index;
  if (only) serve_waiting(credits, wanted);
}

// Lets those leave that wait for room and have it; for the first that has not, notes when it will. Packets
// in flight go before those from nodes.
void SwitchGroup::serve_waiting(Credits& credits, std::uint32_t lane) {
  while (credits.awaited()) {
    std::uint32_t& last = credits.last_waiting != nowhere ? credits.last_waiting : credits.last_new;
    const std::uint32_t index = packets_[last].next_waiting;
    const Packet& packet = packets_[index];
    const Output& out = network_.outputs[packet.out];
    const Time earliest = earliest_start(packet, out);
    const Time start = when_room(packet, credits, earliest, out.rate);
    if (start > earliest) {
      if (start >= credits.wake) return;
      credits.wake = start;
      if (is_nic(packet.lane)) {
        nic_timer_.after(start - now(), {lane, true});
      } else {
        schedule({start, lane, Task::wake});
      }
      return;
    }
    if (index == last) {
      last = nowhere;
    } else {
      packets_[last].next_waiting = packet.next_waiting;
    }
    --waiting_;
    start_packet(index, start);
  }
}

void SwitchGroup::start_packet(std::uint32_t index, Time start) {
  const Packet& packet = packets_[index];
  Output& out = network_.outputs[packet.out];
  const std::uint32_t lane = packet.lane, bytes = packet.bytes;
  const Time duration = out.rate(bytes);
  const Time end = start + duration;
  const std::uint32_t packets =
      bytes <= network_.packet_bytes ? 1 : (bytes + network_.packet_bytes - 1) / network_.packet_bytes;
  out.busy_until = std::max(end, out.busy_until + duration);
  out.bytes += bytes;
  out.packets += packets;
  out.queueing += start - packet.ready;
  statistics_.packet_hops += packets;
  if (!network_.histories.empty()) {
    // A packet between those of trains makes them later.
    network_.histories[packet.out].note_sent(out.busy_until - duration, out.busy_until, bytes);
    network_.histories[packet.out].note_waited(packet.ready, start, bytes);
  }
  if (is_nic(lane)) {
    unit_sent(packet.slot, bytes, end);
    leave_nic(lane, end);
    forward(index, out, start, end);
    return;
  }
  const Inlet& inlet = network_.lanes[lane].inlet;
  if (network_.in_order) leave_in_order(lane, end);
  forward(index, out, start, end);
  // What says so takes as long as a packet's head.
  give_room(lane, inlet, end + inlet.latency + network_.switch_latency, bytes);
}

// The first packet of a queue leaves; the next can when it is gone.
void SwitchGroup::leave_in_order(std::uint32_t lane, Time end) {
  Inlet& inlet = network_.lanes[lane].inlet;
  inlet.head = packets_[inlet.head].next;
  inlet.free_at = end;
  inlet.busy = false;
  if (inlet.head != nowhere) schedule(lane, std::max(end, packets_[inlet.head].ready));
}

// Passes room in the buffer of a lane back to its sending end.
void SwitchGroup::give_room(std::uint32_t lane, const Inlet& inlet, Time last, std::uint32_t bytes) {
  if (inlet.sender_domain != domain_) {
    mail_to(inlet.sender_domain).room.push_back({last, bytes, lane});
    return;
  }
  Credits& credits = network_.lanes[lane].credits;
  credits.add(last, bytes, drains_);
  if (credits.awaited()) serve_waiting(credits, lane);
}

// Puts a packet that leaves a switch or NIC from `start` to `end` where it arrives.
void SwitchGroup::forward(std::uint32_t index, Output& out, Time start, Time end) {
  Packet& packet = packets_[index];
  if (out.to_node) {
    MessageSlot& message = network_.pool[packet.slot];
    message.last_arrival = std::max(message.last_arrival, end + out.latency);
    message.wire_to_arrive -= packet.bytes;
    if (message.wire_to_arrive == 0) deliver(packet.slot);
    give_back_packet(index);
    return;
  }
  packet.ready = start + out.latency + network_.switch_latency;
  packet.lane = out.first_lane + packet.route.virtual_channel;
  network_.lanes[packet.lane].credits.available -= static_cast<std::int32_t>(packet.bytes);
  if (out.to_domain == domain_) {
    enqueue(index);
  } else {
    mail_to(out.to_domain).packets.push_back(packet);
    give_back_packet(index);
  }
}

std::uint32_t SwitchGroup::take_packet() {
  if (free_packet_ == nowhere) {
    packets_.emplace_back();
    return static_cast<std::uint32_t>(packets_.size() - 1);
  }
  const std::uint32_t packet = free_packet_;
  free_packet_ = packets_[packet].next;
  return packet;
}

void SwitchGroup::give_back_packet(std::uint32_t packet) {
  packets_[packet].next = free_packet_;
  free_packet_ = packet;
}

}  // namespace manyscale::network
