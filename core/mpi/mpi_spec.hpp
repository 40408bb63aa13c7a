// SPDX-License-Identifier: Apache-2.0
// Parameters of the message-passing layer of a node: how long its processor is busy with messages, which
// protocol it uses for which size, and how ranks of one node exchange messages.
#pragma once
#include <cstdint>
#include <string>

#include "engine/spec.hpp"
#include "engine/time.hpp"

namespace manyscale::mpi {

// Between ranks of one node, through its memory. Not modelled: that ranks' copies slow each other down.
struct LocalSpec {
  Time latency = 150 * nanosecond;
  std::int64_t bandwidth = 12'000'000'000;  // of one rank's sending
  Time send_overhead = 50 * nanosecond;
  Time receive_overhead = 50 * nanosecond;
  Time send_overhead_per_byte = 0;
  Time receive_overhead_per_byte = 0;
  std::int64_t eager_limit = 4096;
};

struct MpiSpec {
  Time send_overhead = 200 * nanosecond;
  Time receive_overhead = 200 * nanosecond;
  Time send_overhead_per_byte = 0;
  Time receive_overhead_per_byte = 0;
  Time post_overhead = 0;
  Time latency = 0;
  std::int64_t copy_bandwidth = 0;
  Time match_overhead = 0;
  Time poll_overhead = 50 * nanosecond;
  Time control_overhead = 100 * nanosecond;
  Time page_overhead = 0;
  std::int64_t control_bytes = 0;
  std::int64_t eager_limit = 16384;
  std::int64_t window = 0;
  bool offload = false;
  std::int64_t reduction_bandwidth = 0;
  std::string collectives = "openmpi";
  std::int64_t segment = 0;
  LocalSpec local{};
};

}  // namespace manyscale::mpi

namespace manyscale {

template <>
struct describe<mpi::LocalSpec> {
  using S = mpi::LocalSpec;
  static constexpr auto fields = std::tuple{
      Field{"latency", &S::latency, Unit::time, "from the end of a copy to the other rank's sight of it", 0.0,
            1e15},
      Field{"bandwidth", &S::bandwidth, Unit::bandwidth,
            "at which a rank's messages are copied, one after another", 1.0},
      Field{"send_overhead", &S::send_overhead, Unit::time, "processor time to send", 0.0, 1e15},
      Field{"receive_overhead", &S::receive_overhead, Unit::time, "processor time to receive", 0.0, 1e15},
      Field{"send_overhead_per_byte", &S::send_overhead_per_byte, Unit::time,
            "processor time to send one more byte, beside that of any message", 0.0, 1e15},
      Field{"receive_overhead_per_byte", &S::receive_overhead_per_byte, Unit::time,
            "processor time to receive one more byte, beside that of any message", 0.0, 1e15},
      Field{"eager_limit", &S::eager_limit, Unit::bytes,
            "larger messages wait for their receiver (rendezvous) and are then copied once", 0.0}};
};

template <>
struct describe<mpi::MpiSpec> {
  using S = mpi::MpiSpec;
  static constexpr auto fields = std::tuple{
      Field{"send_overhead", &S::send_overhead, Unit::time, "processor time to send a message (LogGP's o)",
            0.0, 1e15},
      Field{"receive_overhead", &S::receive_overhead, Unit::time,
            "processor time to receive a message (LogGP's o)", 0.0, 1e15},
      Field{"send_overhead_per_byte", &S::send_overhead_per_byte, Unit::time,
            "processor time to send one more byte (LogGOPS's O)", 0.0, 1e15},
      Field{"receive_overhead_per_byte", &S::receive_overhead_per_byte, Unit::time,
            "processor time to receive one more byte", 0.0, 1e15},
      Field{"post_overhead", &S::post_overhead, Unit::time,
            "processor time to begin a receive, whatever has come", 0.0, 1e15},
      Field{"latency", &S::latency, Unit::time,
            "between the processors and the network, at both ends together", 0.0, 1e15},
      Field{"copy_bandwidth", &S::copy_bandwidth, Unit::bandwidth,
            "of copies through buffers: eager messages when sent, unexpected ones when received; 0: free",
            0.0},
      Field{"match_overhead", &S::match_overhead, Unit::time,
            "processor time to find the receive of a message or the message of a receive", 0.0, 1e15},
      Field{"poll_overhead", &S::poll_overhead, Unit::time,
            "processor time of a test or probe that only looks", 0.0, 1e15},
      Field{"control_overhead", &S::control_overhead, Unit::time,
            "processor time to answer a rendezvous control message", 0.0, 1e15},
      Field{"page_overhead", &S::page_overhead, Unit::time,
            "added to that for each 4 KiB of the message: registration of memory", 0.0, 1e15},
      Field{"control_bytes", &S::control_bytes, Unit::bytes, "size of a rendezvous control message", 0.0,
            1e6},
      Field{"eager_limit", &S::eager_limit, Unit::bytes,
            "larger messages wait for their receiver (rendezvous; LogGOPS's S)", 0.0},
      Field{"window", &S::window, Unit::bytes,
            "of a rendezvous, what the receiver's processor has to take before more is sent; 0: all at once",
            0.0},
      Field{"offload", &S::offload, Unit::none,
            "rendezvous proceeds without the processor, also while a rank computes"},
      Field{"reduction_bandwidth", &S::reduction_bandwidth, Unit::bandwidth,
            "at which a reduction combines two operands; 0: free", 0.0},
      Field{"collectives", &S::collectives, Unit::none,
            "whose defaults choose the algorithms of collectives: {MPI library}"},
      Field{"segment", &S::segment, Unit::bytes,
            "segment of pipelined collectives chosen by name; 0: as the library's defaults", 0.0},
      Section{"local", &S::local, "between ranks of one node"}};
};

}  // namespace manyscale
