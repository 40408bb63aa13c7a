// SPDX-License-Identifier: Apache-2.0
// Mail between switches that are simulated by different processes: what a notice of mail points to is packed
// with it. A message keeps the number of its slot; only the process of its destination needs to know more of
// it.
#include "network/switch_group.hpp"

namespace manyscale::network {
namespace {

// A packet on its way to another process, with what is needed of its message.
struct Travelling {
  Packet packet;
  Message message;
  Time entered = 0;
};

}  // namespace

void SwitchGroup::distribute(std::uint32_t process, std::uint32_t processes) {
  network_.pool.divide(process, processes);
  network_.process_of_domain.resize(network_.topology.domains());
  network_.process_of_domain[domain_] = partition_index();
  if (mail_) arrivals_.resize(mail_->width());
}

void SwitchGroup::pack(const Event& event, Bytes& bytes) {
  // Events of this component that carry no mail are its own, and never leave its process.
  Mail& mail = *event.load<MailNotice>().mail;
  std::vector<std::uint32_t>& returned = network_.pool.to_return(partition_index());
  put(bytes, static_cast<std::uint64_t>(mail.packets.size()));
  put(bytes, static_cast<std::uint64_t>(mail.room.size()));
  put(bytes, static_cast<std::uint64_t>(returned.size()));
  for (const Packet& packet : mail.packets) {
    const MessageSlot& slot = network_.pool[packet.slot];
    put(bytes, Travelling{packet, slot.message, slot.entered});
  }
  for (const PassingRoom& room : mail.room) put(bytes, room);
  for (const std::uint32_t slot : returned) put(bytes, slot);
  mail.packets.clear();
  mail.room.clear();
  returned.clear();
}

void SwitchGroup::unpack(Event& event, std::span<const std::byte> bytes) {
  Arrivals& arrivals = arrivals_.at(event.lane);
  Mail& mail = arrivals.mail[arrivals.turn ^= 1];
  BytesReader reader(bytes);
  const auto packets = reader.take<std::uint64_t>();
  const auto room = reader.take<std::uint64_t>();
  const auto returned = reader.take<std::uint64_t>();
  for (std::uint64_t i = 0; i < packets; ++i) {
    const auto travelling = reader.take<Travelling>();
    MessageSlot& slot = network_.pool.visit(travelling.packet.slot);
    if (network_.pool.is_foreign(travelling.packet.slot)) {
      slot.message = travelling.message;
      slot.entered = travelling.entered;
      const std::uint32_t at = network_.topology.node_switch(travelling.message.destination);
      const bool ends_here = network_.process_of_domain[network_.topology.domain(at)] == partition_index();
      if (ends_here && slot.wire_to_arrive == 0) {  // the first of its packets to come
        slot.wire_to_arrive = network_.wire_bytes(travelling.message.bytes);
        slot.last_arrival = 0;
      }
    }
    mail.packets.push_back(travelling.packet);
  }
  for (std::uint64_t i = 0; i < room; ++i) mail.room.push_back(reader.take<PassingRoom>());
  for (std::uint64_t i = 0; i < returned; ++i)
    network_.pool.give_back(partition_index(), reader.take<std::uint32_t>());
  event.store(MailNotice{&mail});
}

}  // namespace manyscale::network
