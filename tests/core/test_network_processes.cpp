// SPDX-License-Identifier: Apache-2.0
// Traffic on networks that several processes simulate together: every statistic is that of one process.
#include <map>
#include <numeric>

#include "test_exchange.hpp"
#include "test_network.hpp"

using namespace manyscale;
using namespace manyscale::network;
using namespace manyscale::network::test;
using manyscale::test::HallExchange;
using manyscale::test::in_processes;

namespace {

using Row = std::tuple<std::string, std::string, double>;

std::map<std::string, std::vector<Row>> by_component(const std::vector<TrafficReport>& reports) {
  std::map<std::string, std::vector<Row>> rows;
  for (const TrafficReport& report : reports) {
    for (std::size_t i = 0; i < report.rows.component.size(); ++i) {
      const double value =
          std::visit([](auto number) { return static_cast<double>(number); }, report.rows.value[i]);
      rows[report.rows.component[i]].emplace_back(report.rows.component[i], report.rows.statistic[i], value);
    }
  }
  return rows;
}

TEST(the_same_on_any_number_of_processes) {
  int variant = 0;
  for (auto& [name, description] : small_networks()) {
    for (const std::string& algorithm : algorithms) {
      for (const char* fidelity : {"packet", "train"}) {
        ++variant;
        NetworkSpec& spec = description.spec;
        spec.routing.algorithm = algorithm;
        spec.fidelity = fidelity;
        spec.switches.queues = variant % 2 == 0 ? "virtual-output" : "input";
        spec.switches.buffer = variant % 3 == 0 ? 1024 : 2100;
        TrafficSpec traffic;
        traffic.pattern = "uniform";
        traffic.messages = 12;
        traffic.bytes = variant % 3 == 0 ? 8 : 4500;
        traffic.outstanding = 12;
        const TrafficReport alone = run_traffic(description, traffic, 1, 9);
        if (alone.run.lookahead == never) continue;  // a single switch, which nothing can divide
        for (const std::uint32_t processes : {2u, 3u}) {
          const std::string what =
              name + ", " + algorithm + ", " + fidelity + ", " + std::to_string(processes) + " processes";
          std::vector<TrafficReport> parts(processes);
          in_processes(processes, [&](HallExchange& exchange) {
            parts[exchange.process()] = run_traffic(description, traffic, 1, 9, never, &exchange);
          });
          std::int64_t received = 0, messages = 0;
          Time last = 0;
          for (const TrafficReport& part : parts) {
            received += part.received;
            messages += part.totals.messages;
            last = std::max(last, part.last_arrival);
            check(part.run.outcome == Outcome::finished, what + ": it comes to an end");
            check_equal(part.run.events, alone.run.events, what + ": events of all");
            check_equal(part.run.windows, alone.run.windows, what + ": windows");
            check_equal(part.run.now, alone.run.now, what + ": time");
          }
          check_equal(received, alone.received, what + ": messages that arrive");
          check_equal(messages, alone.totals.messages, what + ": messages that are counted");
          check_equal(last, alone.last_arrival, what + ": the last arrival");
          check(by_component(parts) == by_component({alone}), what + ": all statistics");
        }
      }
    }
  }
}

// A slot has the same number in all processes, and goes back to the one that it belongs to.
TEST(slots_go_back_to_their_process) {
  MessagePool here, there;
  here.prepare(1);
  there.prepare(1);
  here.divide(0, 2);
  there.divide(1, 2);
  const std::uint32_t slot = here.take(0);
  check(!here.is_foreign(slot) && there.is_foreign(slot), "whose it is");
  check(there.take(0) != slot, "the processes have different slots");
  there.visit(slot).message.bytes = 7;
  check_equal(static_cast<std::int64_t>(there[slot].message.bytes), 7, "what is noted there");
  const std::size_t bytes = here.bytes();
  for (int round = 0; round < 100'000; ++round) {
    const std::uint32_t taken = here.take(0);
    there.visit(taken);
    there.give_back(0, taken);
    for (const std::uint32_t returned : there.to_return(0)) here.give_back(0, returned);
    there.to_return(0).clear();
  }
  check_equal(static_cast<std::int64_t>(here.bytes()), static_cast<std::int64_t>(bytes), "memory used");
}

TEST(what_cannot_be_divided_is_refused) {
  NetworkDescription description = fat_tree("4,4:4,4:2");
  description.spec.fidelity = "flow";
  std::vector<std::string> said(2);
  in_processes(2, [&](HallExchange& exchange) {
    try {
      run_traffic(description, {}, 1, 1, never, &exchange);
    } catch (const SimulationError& error) {
      said[exchange.process()] = error.what();
    }
  });
  for (const std::string& words : said)
    check(words.find("cannot be divided") != std::string::npos, "refused: " + words);
}

}  // namespace
