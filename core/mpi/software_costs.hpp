// SPDX-License-Identifier: Apache-2.0
// Software costs: how long the processor of a rank is busy with messages, from the parameters of the MPI
// library. Sums that pass the range of time saturate.
#pragma once
#include <cstdint>

#include "engine/time.hpp"
#include "mpi/mpi_spec.hpp"

namespace manyscale::mpi {

class SoftwareCosts {
 public:
  explicit SoftwareCosts(const MpiSpec& spec) : spec_(spec) {}

  // Of any message that is sent or received, and of its bytes; `local`: between ranks of one node.
  Time send(bool local) const { return local ? spec_.local.send_overhead : spec_.send_overhead; }
  Time receive(bool local) const { return local ? spec_.local.receive_overhead : spec_.receive_overhead; }
  Time send_bytes(std::uint64_t bytes, bool local) const {
    return times(spec_.send_overhead_per_byte + (local ? spec_.local.send_overhead_per_byte : 0), bytes);
  }
  Time receive_bytes(std::uint64_t bytes, bool local) const {
    return times(spec_.receive_overhead_per_byte + (local ? spec_.local.receive_overhead_per_byte : 0),
                 bytes);
  }
  // Of a rendezvous control message for so many pages.
  Time control(std::uint32_t pages) const {
    return add_saturating(spec_.control_overhead, times(spec_.page_overhead, pages));
  }
  // Of a copy through a buffer: within a node there is none.
  Time copy(std::uint64_t bytes, bool local) const {
    return local ? 0 : at_bandwidth(bytes, spec_.copy_bandwidth);
  }
  Time reduction(std::uint64_t bytes) const { return at_bandwidth(bytes, spec_.reduction_bandwidth); }
  // How long a rank's message to another of its node takes to copy.
  Time local_copy(std::uint64_t bytes) const { return at_bandwidth(bytes, spec_.local.bandwidth); }

  // Whether the data of a message is sent at once, or only when its receiver has answered (rendezvous).
  bool eager(std::uint64_t bytes, bool local) const {
    return bytes <= static_cast<std::uint64_t>(local ? spec_.local.eager_limit : spec_.eager_limit);
  }

 private:
  static Time at_bandwidth(std::uint64_t bytes, std::int64_t bandwidth) {
    if (bandwidth == 0 || bytes == 0) return 0;
    const double per_byte = static_cast<double>(second) / static_cast<double>(bandwidth);
    const double time = static_cast<double>(bytes) * per_byte + 0.5;
    return time < 0x1p62 ? static_cast<Time>(time) : never;
  }
  static Time times(Time cost, std::uint64_t count) {
    if (cost == 0) return 0;
    return count > static_cast<std::uint64_t>(never / cost) ? never : cost * static_cast<Time>(count);
  }

  const MpiSpec& spec_;
};

}  // namespace manyscale::mpi
