// SPDX-License-Identifier: Apache-2.0
#include "cluster/gateway.hpp"

#include <utility>

#include "network/network.hpp"

namespace manyscale::cluster {

Gateway::Gateway(const Spec& spec, network::Network& network, std::uint32_t node, cpu::RankRings& rings,
                 std::vector<std::uint32_t> node_of_rank, std::shared_ptr<PiecesInFlight> in_flight)
    : spec_(spec),
      rings_(rings),
      node_of_rank_(std::move(node_of_rank)),
      in_flight_(std::move(in_flight)),
      nic_(*this, network, node) {
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
    touch_memory(piece, false);
    message.header[0] = in_flight_->add(std::move(piece));
    nic_.send(message, spec_.send_latency);
  }
}

void Gateway::arrived(const network::Message& message) {
  ++statistics_.received;
  deliveries_.after(spec_.receive_latency, {message.header[0]});
}

void Gateway::deliver(const Arrived& arrived) {
  const std::unique_ptr<cpu::RingPiece> piece = in_flight_->take(arrived.piece);
  touch_memory(*piece, true);
  const std::uint32_t rank = piece->to;
  if (rings_.deliver(std::move(*piece))) program_.send({rank}, 0);
}

void Gateway::touch_memory(const cpu::RingPiece& piece, bool writes) {
  if (dma_.width() == 0) return;
  for_transfers(rings_, piece, writes, [&](const memory::Transfer& transfer) { dma_.send(transfer, 0); });
}

}  // namespace manyscale::cluster
