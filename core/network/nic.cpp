// SPDX-License-Identifier: Apache-2.0
#include "network/nic.hpp"

#include "network/network.hpp"

namespace manyscale::network {

Nic::Nic(Component& owner, Network& network, std::uint32_t node)
    : PortBase(owner, "nic", std::string(NoticeProtocol::name), std::string(NoticeProtocol::roles[1]),
               std::string(NoticeProtocol::roles[0]), Links::one, "the network"),
      network_(network),
      node_(node) {
  endpoint_ = owner.add_endpoint(
      this, [](Component&, void* nic, const Event& event) { static_cast<Nic*>(nic)->notice(event); });
  network.add(*this);
}

void Nic::send(const Message& message, Time delay) {
  if (message.source != node_) {
    throw SimulationError(path() + " is the NIC of node " + std::to_string(node_) +
                          "; it cannot send as node " + std::to_string(message.source));
  }
  if (message.bytes > network_.largest_message()) [[unlikely]] {
    throw SimulationError("a message of " + std::to_string(message.bytes) +
                          " B would be in flight for more than 1000 s of simulated time");
  }
  network_.check_way(node_, message.destination);
  MessagePool& pool = network_.messages();
  const std::uint32_t slot = pool.take(owner().partition_index());
  pool[slot].message = message;
  fabric_->submit(slot, delay);
}

void Nic::notice(const Event& event) {
  const auto notice = event.load<Notice>();
  MessagePool& pool = network_.messages();
  const Message& message = pool[notice.slot].message;
  if (!notice.arrived) {
    if (sent_ != nullptr) sent_(owner(), message);
    return;
  }
  if (arrived_ != nullptr) arrived_(owner(), message);
  pool.give_back(owner().partition_index(), notice.slot);
}

}  // namespace manyscale::network
