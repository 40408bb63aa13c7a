// SPDX-License-Identifier: Apache-2.0
// A node's way to other nodes: takes what ranks here write for ranks elsewhere, and puts what arrives into
// the memory of ranks here.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "cluster/ring_pieces.hpp"
#include "cpu/live/live_source.hpp"
#include "memory/dma/dma_protocol.hpp"
#include "network/nic.hpp"

namespace manyscale::cluster {

struct GatewaySpec {
  Time send_latency = 300 * nanosecond;     // assumed: doorbell and DMA read of a PCIe network interface
  Time receive_latency = 300 * nanosecond;  // assumed: DMA write and its visibility in memory
  std::int64_t header = 32;                 // bytes: the envelope of a transport such as InfiniBand's RC
};

struct GatewayStatistics {
  Counter messages, bytes, received;
};

// Stands for a network interface with remote DMA between the buffers of an MPI library. Leaves out queue
// pairs, retransmission and the limits of outstanding work. Where the node has an engine for direct memory
// access, what messages are read from and written to passes through the node's caches, beside the messages:
// the latencies of the gateway cover it.
class Gateway final : public Component {
 public:
  using Spec = GatewaySpec;

  Gateway(const Spec& spec, network::Network& network, std::uint32_t node, cpu::RankRings& rings,
          std::vector<std::uint32_t> node_of_rank, std::shared_ptr<PiecesInFlight> in_flight);

  PortBase& program_port() { return program_; }
  PortBase& dma_port() { return dma_; }

 private:
  struct Arrived {
    std::uint64_t piece = 0;
  };

  void rang(const cpu::BellRang& bell, std::uint32_t lane);
  void arrived(const network::Message& message);
  void deliver(const Arrived& arrived);
  void touch_memory(const cpu::RingPiece& piece, bool writes);

  const Spec spec_;
  cpu::RankRings& rings_;
  const std::vector<std::uint32_t> node_of_rank_;
  const std::shared_ptr<PiecesInFlight> in_flight_;
  GatewayStatistics statistics_;
  Port<memory::DmaProtocol, 0> dma_{*this, "dma", "reads and writes the node's memory", Links::optional};
  Port<cpu::GatewayProtocol, 1> program_{*this, "program", "the program whose ranks run on this node"};
  Timer<Arrived> deliveries_{*this};
  network::Nic nic_;
};

}  // namespace manyscale::cluster

namespace manyscale {

template <>
struct describe<cluster::GatewaySpec> {
  using S = cluster::GatewaySpec;
  static constexpr auto fields = std::tuple{
      Field<S, Time>{"send_latency", &S::send_latency, Unit::time,
                     "from a rank's doorbell to the message in the queue of the interface", 0, 1e15},
      Field<S, Time>{"receive_latency", &S::receive_latency, Unit::time,
                     "from the arrival of a message to its write to memory", 0, 1e15},
      Field<S, std::int64_t>{"header", &S::header, Unit::bytes, "that a message has beside its data", 0,
                             4096}};
};

template <>
struct describe<cluster::GatewayStatistics> {
  using S = cluster::GatewayStatistics;
  static constexpr auto fields =
      std::tuple{Statistic<S, Counter>{"messages", &S::messages, "message", "messages sent to other nodes"},
                 Statistic<S, Counter>{"bytes", &S::bytes, "B", "bytes of ranks in them"},
                 Statistic<S, Counter>{"received", &S::received, "message", "messages from other nodes"}};
};

}  // namespace manyscale
