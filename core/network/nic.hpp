// SPDX-License-Identifier: Apache-2.0
// A network interface: a node's end of the network. It is part of a component (the host), not one itself; its
// port is declared on the owner. It hides how messages are simulated: as packets, trains of packets or flows.
//
// A host is made with its Nic, added to the simulation, and joined to the network by Network::connect:
//   Network network(simulation, description);
//   for (node…) simulation.add(…, std::make_unique<Host>(network, node));  // its Nic is Nic(*this, network,
//   node) network.connect();
#pragma once
#include <cstdint>

#include "engine/component.hpp"
#include "engine/port.hpp"
#include "network/message.hpp"

namespace manyscale::network {

class Network;

// What a network does for a NIC, one call per message. Implemented by each fidelity.
class Fabric {
 public:
  virtual ~Fabric() = default;
  // Takes a message that enters the NIC's queue after `delay`. Called by the sender's NIC in an event of its
  // host.
  virtual void submit(std::uint32_t slot, Time delay) = 0;
};

// What a fabric tells a NIC: the message of this slot has left it, or has arrived.
struct Notice {
  std::uint32_t slot = 0;
  bool arrived = false;
};

// The border between fabrics and NICs.
struct NoticeProtocol {
  static constexpr std::string_view name = "network notice";
  static constexpr std::array<std::string_view, 2> roles{"network", "nic"};
};

class Nic : public PortBase {
 public:
  // Of node number `node` of the network.
  Nic(Component& owner, Network& network, std::uint32_t node);

  // Sends a message from this node; it enters the NIC's queue after the delay. Messages may overtake each
  // other.
  void send(const Message& message, Time delay = 0);

  // Says which method is called when a whole message has arrived here: void method(const Message&).
  template <auto method>
  void on_arrival() {
    arrived_ = &call<method>;
  }
  // Says which method is called when the last byte of a message with `tell_sent` has left: void method(const
  // Message&).
  template <auto method>
  void on_sent() {
    sent_ = &call<method>;
  }

  std::uint32_t node() const { return node_; }

 private:
  friend class Network;
  using Callback = void (*)(Component&, const Message&);

  template <auto method>
  static void call(Component& owner, const Message& message) {
    (static_cast<typename detail::MethodOf<decltype(method)>::type&>(owner).*method)(message);
  }
  void notice(const Event& event);

  Network& network_;
  const std::uint32_t node_;
  Fabric* fabric_ = nullptr;
  Callback arrived_ = nullptr;
  Callback sent_ = nullptr;
};

}  // namespace manyscale::network
