// SPDX-License-Identifier: Apache-2.0
#include "cluster/gateway.hpp"

#include <utility>

#include "network/network.hpp"

namespace manyscale::cluster {

namespace {

// A piece under way is owned by its message, which carries nothing but numbers.
std::uint64_t hand_over(cpu::RingPiece piece) {
  return reinterpret_cast<std::uintptr_t>(new cpu::RingPiece(std::move(piece)));
}

}  // namespace

Gateway::Gateway(const Spec& spec, network::Network& network, std::uint32_t node, cpu::RankRings& rings,
                 std::vector<std::uint32_t> node_of_rank)
    : spec_(spec), rings_(rings), node_of_rank_(std::move(node_of_rank)), nic_(*this, network, node) {
  declare(statistics_);
  program_.on_receive<&Gateway::rang>();
  deliveries_.on_expire<&Gateway::deliver>();
  nic_.on_arrival<&Gateway::arrived>();
}

void Gateway::rang(const cpu::BellRang& bell, std::uint32_t) {
  for (cpu::RingPiece& piece : rings_.collect(bell.rank)) {
    ++statistics_.messages;
    statistics_.bytes += static_cast<std::int64_t>(piece.bytes.size());
    network::Message message;
    message.source = nic_.node();
    message.destination = node_of_rank_[bell.rank];
    message.bytes = piece.bytes.size() + static_cast<std::uint64_t>(spec_.header);
    message.header[0] = hand_over(std::move(piece));
    nic_.send(message, spec_.send_latency);
  }
}

void Gateway::arrived(const network::Message& message) {
  ++statistics_.received;
  deliveries_.after(spec_.receive_latency, {reinterpret_cast<cpu::RingPiece*>(message.header[0])});
}

void Gateway::deliver(const Arrived& arrived) {
  const std::unique_ptr<cpu::RingPiece> piece(arrived.piece);
  const std::uint32_t rank = piece->to;
  if (rings_.deliver(std::move(*piece))) program_.send({rank}, 0);
}

}  // namespace manyscale::cluster
