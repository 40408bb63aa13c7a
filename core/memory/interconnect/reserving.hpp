// SPDX-License-Identifier: Apache-2.0
// Interconnects in which the whole way of a message is computed when it enters.
#pragma once
#include "memory/interconnect/interconnect.hpp"
#include "memory/list_pool.hpp"

namespace manyscale::memory {

// A message's way through an interconnect, in cycles.
struct Passage {
  Cycle entry_free;  // when its entry port can take the next message
  Cycle delivered;   // when its last flit has arrived
  Cycle unloaded;    // how long it would take if nothing else were outstanding
  Cycle busy;        // cycles for which it takes wires, summed over them
};

// Entry ports of the nodes at an interconnect: a message that finds its port free enters at once, at the next
// clock edge; others wait in a queue without limit, and enter when the port becomes free, so that what is
// reserved for a message is in the near future. Fabric, the class derived from it, has
//   void prepare();
//   Passage carry(Direction, std::uint32_t source, std::uint32_t destination, Cycle flits, Cycle now);
// whose `now` never goes back, and may have
//   void readdress(Message&);  // changes the destination of a request that enters
template <class Fabric>
class ReservingInterconnect : public Interconnect<ReservingInterconnect<Fabric>> {
  using Base = Interconnect<ReservingInterconnect<Fabric>>;
  friend Base;

 protected:
  ReservingInterconnect(const InterconnectSpec& spec, std::uint32_t entry_ports, bool overtaking)
      : Base(spec, overtaking), entry_ports_(entry_ports) {}

 private:
  struct Waiting {
    Message message;
    Time arrived = 0;
    Cycle ready = 0;
  };
  using Queue = typename ListPool<Waiting>::List;
  // A node with messages waiting, and the cycle at which one of its entry ports becomes free.
  struct Due {
    std::uint32_t node;
    Cycle cycle;
  };
  // The side by which messages of one direction enter.
  struct Entries {
    std::vector<Cycle> free;    // per entry port: from when on it is free
    std::vector<Queue> queues;  // per node: messages that wait there
    std::vector<Due> waiting;
  };

  void prepare() {
    for (const Direction direction : {requests, responses}) {
      const std::uint32_t nodes = this->sender_count(direction);
      entries_[direction].free.assign(std::size_t{nodes} * entry_ports_, 0);
      entries_[direction].queues.assign(nodes, {});
      entries_[direction].waiting.reserve(nodes);
    }
    static_cast<Fabric*>(this)->prepare();
  }

  void accept(Direction direction, Message message, Cycle ready) {
    if constexpr (requires(Fabric& fabric) { fabric.readdress(message); }) {
      if (direction == requests) static_cast<Fabric*>(this)->readdress(message);
    }
    Entries& entries = entries_[direction];
    const std::uint32_t node = message.source;
    Queue& queue = entries.queues[node];
    if (queue.empty()) {
      Cycle& port = first_free(entries, node);
      if (port <= ready) {
        enter(direction, message, this->now(), ready, ready, port);
        return;
      }
      entries.waiting.push_back({node, port});
      this->clock().wake_at(port);
    }
    pool_.push(queue, {message, this->now(), ready});
  }

  // Lets waiting messages enter, one node after the other, beginning with another node in each cycle.
  Cycle tick(Cycle cycle) { return std::min(admit(requests, cycle), admit(responses, cycle)); }

  Cycle admit(Direction direction, Cycle cycle) {
    Entries& entries = entries_[direction];
    auto& waiting = entries.waiting;
    if (waiting.empty()) return Clock::asleep;
    Cycle next = Clock::asleep;
    bool emptied = false;
    const auto visit = [&](Due& due) {
      Queue& queue = entries.queues[due.node];
      while (due.cycle <= cycle && !queue.empty()) {
        const Waiting entering = pool_.pop(queue);
        enter(direction, entering.message, entering.arrived, entering.ready, cycle,
              first_free(entries, due.node));
        due.cycle = first_free(entries, due.node);
      }
      if (queue.empty()) {
        emptied = true;
      } else {
        next = std::min(next, due.cycle);
      }
    };
    const std::size_t first = static_cast<std::size_t>(cycle) % waiting.size();
    for (std::size_t i = first; i < waiting.size(); ++i) visit(waiting[i]);
    for (std::size_t i = 0; i < first; ++i) visit(waiting[i]);
    if (emptied) std::erase_if(waiting, [&](const Due& due) { return entries.queues[due.node].empty(); });
    return next;
  }

  void enter(Direction direction, const Message& message, Time arrived, Cycle ready, Cycle cycle,
             Cycle& port) {
    const Passage passage = static_cast<Fabric*>(this)->carry(direction, message.source, message.destination,
                                                              this->flits_of(message), cycle);
    port = passage.entry_free;
    this->deliver(direction, message, arrived, ready, passage.delivered, passage.unloaded, passage.busy);
  }

  Cycle& first_free(Entries& entries, std::uint32_t node) {
    Cycle* const ports = entries.free.data() + std::size_t{node} * entry_ports_;
    return *std::min_element(ports, ports + entry_ports_);
  }

  const std::uint32_t entry_ports_;
  std::array<Entries, 2> entries_;
  ListPool<Waiting> pool_;
};

}  // namespace manyscale::memory
