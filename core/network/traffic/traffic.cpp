// SPDX-License-Identifier: Apache-2.0
#include "network/traffic/traffic.hpp"

#include "engine/exchange.hpp"

namespace manyscale::network {
namespace {

enum class Pattern { uniform, shift, incast, ping_pong };

Pattern parse_pattern(const std::string& name) {
  if (name == "uniform") return Pattern::uniform;
  if (name == "shift") return Pattern::shift;
  if (name == "incast") return Pattern::incast;
  if (name == "pingpong") return Pattern::ping_pong;
  throw SimulationError("the pattern of traffic is '" + name +
                        "'; it must be 'uniform', 'shift', 'incast' or 'pingpong'");
}

// A node that sends by a pattern.
class TrafficHost final : public Component, public Distributable {
 public:
  TrafficHost(Network& network, std::uint32_t node, const TrafficSpec& spec)
      : spec_(spec),
        pattern_(parse_pattern(spec.pattern)),
        nodes_(network.nodes()),
        nic_(*this, network, node) {
    nic_.on_arrival<&TrafficHost::arrived>();
    nic_.on_sent<&TrafficHost::left>();
    next_.on_expire<&TrafficHost::due>();
  }

  void start() override {
    const std::uint32_t node = nic_.node();
    if (pattern_ == Pattern::incast && node == 0) return;
    if (pattern_ == Pattern::ping_pong && node != 0) return;
    if (nodes_ < 2) return;
    if (spec_.interval > 0) {
      next_.after(pause(), 0);
    } else {
      const std::int64_t at_once = pattern_ == Pattern::ping_pong ? 1 : spec_.outstanding;
      for (std::int64_t i = 0; i < at_once; ++i) send();
    }
  }

  std::int64_t sent = 0, received = 0, received_bytes = 0;
  Time last_arrival = 0;
  std::vector<std::int64_t> bytes_by_source;

 private:
  Time pause() { return static_cast<Time>(random().exponential() * static_cast<double>(spec_.interval)); }

  void send() {
    if (sent == spec_.messages) return;
    ++sent;
    const std::uint32_t node = nic_.node();
    std::uint32_t to = 0;
    switch (pattern_) {
      case Pattern::uniform:
        to = static_cast<std::uint32_t>(random().below(nodes_ - 1));
        if (to >= node) ++to;
        break;
      case Pattern::shift:
      case Pattern::ping_pong:
        to = static_cast<std::uint32_t>((node + static_cast<std::uint64_t>(spec_.stride)) % nodes_);
        break;
      case Pattern::incast:
        break;
    }
    Message message{.source = node, .destination = to, .bytes = static_cast<std::uint64_t>(spec_.bytes)};
    message.tell_sent = spec_.interval == 0 && pattern_ != Pattern::ping_pong;
    message.header[0] = static_cast<std::uint64_t>(sent);
    nic_.send(message);
  }

  void due(const int&) {
    send();
    if (sent < spec_.messages) next_.after(pause(), 0);
  }

  void left(const Message&) { send(); }

  void arrived(const Message& message) {
    ++received;
    last_arrival = now();
    if (now() >= spec_.measure_from && now() < spec_.measure_to) {
      received_bytes += static_cast<std::int64_t>(message.bytes);
      if (bytes_by_source.empty()) bytes_by_source.resize(nodes_);
      bytes_by_source[message.source] += static_cast<std::int64_t>(message.bytes);
    }
    if (pattern_ != Pattern::ping_pong) return;
    if (nic_.node() == 0) {
      send();
    } else {
      Message answer{.source = nic_.node(), .destination = 0, .bytes = message.bytes};
      nic_.send(answer);
    }
  }

  const TrafficSpec spec_;
  const Pattern pattern_;
  const std::uint32_t nodes_;
  Nic nic_;
  Timer<int> next_{*this};
};

}  // namespace

TrafficReport run_traffic(const NetworkDescription& description, const TrafficSpec& traffic,
                          std::uint32_t threads, std::uint64_t seed, Time until, Exchange* exchange) {
  Simulation simulation(seed);
  Network network(simulation, description);
  std::vector<const TrafficHost*> hosts;
  for (std::uint32_t node = 0; node < network.nodes(); ++node) {
    auto host = std::make_unique<TrafficHost>(network, node, traffic);
    hosts.push_back(host.get());
    simulation.add("node[" + std::to_string(node) + "]", std::move(host));
  }
  network.connect();
  RunOptions options;
  options.threads = threads;
  options.until = until;
  options.exchange = exchange;
  TrafficReport report;
  report.run = simulation.run(options);
  report.sent_bytes.assign(network.nodes(), 0);
  for (const TrafficHost* host : hosts) {
    report.sent += host->sent;
    report.received += host->received;
    report.measured_bytes += host->received_bytes;
    report.last_arrival = std::max(report.last_arrival, host->last_arrival);
    report.received_bytes.push_back(host->received_bytes);
    for (std::size_t i = 0; i < host->bytes_by_source.size(); ++i)
      report.sent_bytes[i] += host->bytes_by_source[i];
  }
  report.links = network.links();
  report.totals = network.totals();
  report.rows = simulation.statistics();
  return report;
}

}  // namespace manyscale::network
