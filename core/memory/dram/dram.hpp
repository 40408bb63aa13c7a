// SPDX-License-Identifier: Apache-2.0
// One memory channel with its controller, in one of three degrees of detail.
#pragma once
#include <memory>

#include "engine/clock.hpp"
#include "engine/exchange.hpp"
#include "memory/attribution.hpp"
#include "memory/dram/banked_channel.hpp"
#include "memory/dram/controller.hpp"
#include "memory/dram/simple_channel.hpp"
#include "memory/dram/spec.hpp"
#include "memory/dram/statistics.hpp"
#include "memory/flat_map.hpp"
#include "memory/protocol.hpp"

namespace manyscale::memory {

// A channel of DRAM behind its memory controller; what it leaves out depends on the backend (see
// SimpleChannel, BankedChannel, DramController and DramGates).
class Dram final : public Component, public Distributable {
 public:
  using Spec = DramSpec;

  explicit Dram(const Spec& spec);
  void settle() override;

  // What was read and written, by origin.
  Attributed<DramCounts>& traffic() { return traffic_; }

  // Time that data moved on the bus in each interval: of reads, and of writes.
  const std::array<TimeSeries, 2>& bus_over_time() const { return statistics_.bus; }

  // The commands so far, where the Spec says to keep them.
  const CommandLog& log() const;

 private:
  void receive(const Message& message, std::uint32_t lane);
  void serve_simple(const Message& request, const Message& answer, std::uint32_t lane);
  void serve_banked(const Message& request, const Message& answer, std::uint32_t lane);
  Cycle tick(Cycle now);
  void send_answers();

  const Spec spec_;
  DramStatistics statistics_;
  Attributed<DramCounts> traffic_;
  ResponderPort requests_{*this, "requests", "where reads and writes come from", Links::many};
  Clock clock_;
  // The one that the Spec names.
  std::unique_ptr<SimpleChannel> simple_;
  std::unique_ptr<BankedChannel> banked_;
  std::unique_ptr<DramController> controller_;
  FlatMap<Value> values_;  // by line, if kept
};

}  // namespace manyscale::memory
