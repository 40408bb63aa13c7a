// SPDX-License-Identifier: Apache-2.0
// Barrier exchanges between processes by an object of Python, which transfers buffers, with mpi4py or
// otherwise.
#pragma once
#include "engine/exchange.hpp"
#include "module.hpp"

// The object has `process`, `processes`, `alltoall(outgoing, incoming)` for equal pieces to and from all, and
// `transfer(outgoing, incoming)` for lists of (process, buffer).
class PythonExchange final : public manyscale::Exchange {
 public:
  explicit PythonExchange(nb::object processes);

  std::uint32_t process() const override { return process_; }
  std::uint32_t processes() const override { return processes_; }
  void exchange(const BarrierExchange& barrier) override;

 private:
  nb::object object_;
  std::uint32_t process_, processes_;
  manyscale::Bytes pieces_out_, pieces_in_;
};
