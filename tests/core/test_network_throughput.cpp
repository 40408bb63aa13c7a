// SPDX-License-Identifier: Apache-2.0
// What networks carry under load, against theory: the load at which the busiest channel is full.
#include "network/fair_shares.hpp"
#include "test_network.hpp"

using namespace manyscale;
using namespace manyscale::network;
using namespace manyscale::network::test;

namespace {

// What nodes receive, as a share of what their links carry, when all offer a load and some time has passed. A
// message is one packet.
double accepted(const NetworkDescription& description, const std::string& pattern, std::int64_t stride,
                double load) {
  TrafficSpec traffic;
  traffic.pattern = pattern;
  traffic.stride = stride;
  traffic.messages = 1'000'000'000;
  traffic.bytes = description.spec.packet.payload;
  const auto packet = static_cast<double>(description.spec.packet.payload + description.spec.packet.header);
  const double packet_time = packet * static_cast<double>(byte_time);
  traffic.interval = static_cast<Time>(packet_time / load);
  traffic.measure_from = 60 * microsecond;
  traffic.measure_to = 180 * microsecond;
  const TrafficReport report = run_traffic(description, traffic, 1, 3, traffic.measure_to);
  const double packets = static_cast<double>(report.measured_bytes) / static_cast<double>(traffic.bytes);
  return packets * packet_time / static_cast<double>(traffic.measure_to - traffic.measure_from) /
         static_cast<double>(report.received_bytes.size());
}

// A network takes 95% of what theory allows, and when more is offered it carries as much as theory allows.
void check_capacity(const std::string& name, const NetworkDescription& description,
                    const std::string& pattern, std::int64_t stride, double theory) {
  check_near(accepted(description, pattern, stride, 0.95 * theory), 0.95 * theory, 0.05,
             name + ", just below capacity");
  if (theory < 0.95)
    check_near(accepted(description, pattern, stride, 1.2 * theory), theory, 0.05, name + ", overloaded");
}

NetworkDescription routed(NetworkDescription description, const std::string& algorithm) {
  description.spec.routing.algorithm = algorithm;
  return description;
}

// With buffers for 64 packets: theory has no bursts, and random destinations have.
NetworkDescription deep(NetworkDescription description) {
  description.spec.switches.buffer = 65'536;
  return description;
}

TEST(capacity_is_that_of_the_busiest_channel) {
  check_capacity("one switch, shift", one_switch(16), "shift", 3, 1.0);
  check_capacity("fat tree, worst case: all by the roots", fat_tree("8,8:8"), "shift", 32, 1.0);
  check_capacity("fat tree of three levels, worst case", fat_tree("4,4:4,4:4"), "shift", 32, 1.0);
  check_capacity("merged roots, worst case", fat_tree("4,4:4,4:2", 8), "shift", 16, 1.0);
  check_capacity("tapered fat tree, worst case", fat_tree("8,2:8"), "shift", 32, 0.25);
  // 56 of 63 destinations are elsewhere.
  check_capacity("tapered fat tree, uniform", deep(routed(fat_tree("8,2:8"), "adaptive")), "uniform", 0,
                 0.25 * 63 / 56);
  // On a ring of 8 each channel carries the flows of 3 nodes.
  check_capacity("ring, three further", deep(grid("torus", "8")), "shift", 3, 1.0 / 3);
  // Half of the bisection: 4 nodes at each of 64 switches, 2 hops per dimension on average, 2 channels.
  check_capacity("torus, uniform", routed(grid("torus", "8x8", 4), "adaptive"), "uniform", 0,
                 0.25 * 255 / 256);
  check_capacity("torus, uniform, in order", deep(grid("torus", "8x8", 4)), "uniform", 0, 0.25 * 255 / 256);
  check_capacity("torus with two links", routed(grid("torus", "8x8", 8, "2"), "adaptive"), "uniform", 0,
                 0.25 * 511 / 512);
  // 128 of 256 nodes send to the other half over 8 links.
  check_capacity("mesh, uniform", grid("mesh", "8x8", 4), "uniform", 0, 8.0 * 255 / (128 * 128));
  // 8 nodes of a group share the one link to the next.
  check_capacity("dragonfly, worst case", dragonfly(4, 2, 2), "shift", 8, 1.0 / 8);
  // 8 nodes of a group share its 8 links to others, 64 of 71 destinations are there: full load.
  check_capacity("dragonfly, uniform", deep(dragonfly(4, 2, 2)), "uniform", 0, 1.0);
}

TEST(detours_help_against_the_worst_case) {
  const double minimal = accepted(dragonfly(4, 2, 2), "shift", 8, 0.42);
  const double valiant = accepted(routed(dragonfly(4, 2, 2), "valiant"), "shift", 8, 0.42);
  const double ugal = accepted(routed(dragonfly(4, 2, 2), "ugal"), "shift", 8, 0.42);
  check(valiant > 3 * minimal, "valiant carries more than three times what minimal ways do on a dragonfly: " +
                                   std::to_string(valiant) + " and " + std::to_string(minimal));
  check(ugal > 3 * minimal, "ugal does: " + std::to_string(ugal));
  // And ugal does not give away what minimal ways carry when there is no need for detours.
  check_near(accepted(routed(dragonfly(4, 2, 2), "ugal"), "uniform", 0, 0.6), 0.6, 0.05, "ugal, uniform");
  check(accepted(routed(dragonfly(4, 2, 2), "valiant"), "uniform", 0, 0.6) < 0.55,
        "valiant halves uniform capacity");
  // The many-node study's dragonfly, with 6 nodes per switch: those of 18 switches share 31 links to the next
  // group.
  const NetworkDescription study = dragonfly(18, 7, 6, 5);
  check_near(accepted(routed(study, "adaptive"), "shift", 108, 0.5), 31.0 / 108, 0.05,
             "dragonfly of the study, group to group, minimal");
  check(accepted(routed(study, "ugal"), "shift", 108, 0.5) > 1.5 * 31 / 108, "ugal finds other groups");
  // A tornado on a ring: minimal ways leave one direction idle.
  const double straight = accepted(grid("torus", "8x8"), "shift", 3, 0.45);
  const double around = accepted(routed(grid("torus", "8x8"), "ugal"), "shift", 3, 0.45);
  check(around > 1.1 * straight,
        "ugal on a torus: " + std::to_string(around) + " against " + std::to_string(straight));
}

TEST(blocking_by_the_head_of_a_queue) {
  // Karol, Hluchyj and Morgan (1987): an input-queued switch with uniform traffic carries 2 - sqrt(2) of its
  // links.
  NetworkDescription description = one_switch(48);
  description.spec.switches.queues = "input";
  check_near(accepted(description, "uniform", 0, 0.99), 2 - std::sqrt(2.0), 0.03, "input queues, uniform");
  description.spec.switches.queues = "virtual-output";
  check_near(accepted(deep(description), "uniform", 0, 0.95), 0.95, 0.03, "virtual output queues carry all");
}

TEST(senders_to_one_node_share_its_link) {
  for (const char* fidelity : {"packet", "train", "flow"}) {
    for (const char* queues : {"virtual-output", "input"}) {
      NetworkDescription description = one_switch(9);
      description.spec.fidelity = fidelity;
      description.spec.switches.queues = queues;
      TrafficSpec traffic;
      traffic.pattern = "incast";
      traffic.messages = 1'000'000;
      traffic.bytes = 20'000;
      traffic.outstanding = 2;
      traffic.measure_from = 100 * microsecond;
      traffic.measure_to = 1100 * microsecond;
      const TrafficReport report = run_traffic(description, traffic, 1, 3, traffic.measure_to);
      const double capacity = 1e7 * 1000 / 1024;  // payload bytes in a millisecond
      check_near(static_cast<double>(report.received_bytes[0]), capacity, 0.02,
                 std::string("incast, ") + fidelity + ": what the receiver gets");
      for (std::size_t i = 1; i < 9; ++i)
        check_near(static_cast<double>(report.sent_bytes[i]), capacity / 8, 0.05,
                   std::string("incast, ") + fidelity + ": the share of a sender");
    }
  }
}

TEST(trains_carry_what_packets_do) {
  for (const auto& [name, description] :
       {Named{"fat tree", fat_tree("8,8:8,8:2")}, Named{"tapered", fat_tree("8,4:8")},
        Named{"torus", grid("torus", "4x4x2", 2)}, Named{"dragonfly", routed(dragonfly(4, 2, 2), "ugal")}}) {
    TrafficSpec traffic;
    traffic.pattern = "uniform";
    traffic.messages = 40;
    traffic.bytes = 30'000;
    traffic.outstanding = 4;
    NetworkDescription trains = description;
    trains.spec.fidelity = "train";
    const TrafficReport by_packet = run_traffic(description, traffic, 1, 3);
    const TrafficReport by_train = run_traffic(trains, traffic, 1, 3);
    check_near(static_cast<double>(by_train.last_arrival), static_cast<double>(by_packet.last_arrival), 0.06,
               name + ": time for random messages, by train and by packet");
    check_equal(by_train.totals.packets, by_packet.totals.packets, name + ": packets");
    check(by_train.run.events < by_packet.run.events, name + ": trains take fewer events");
  }
}

// Max-min rates by filling all channels at one pace.
std::vector<double> filled(const std::vector<double>& capacities,
                           const std::vector<std::vector<std::uint32_t>>& ways) {
  std::vector<double> rates(ways.size(), -1), left = capacities;
  for (std::size_t fixed = 0; fixed < ways.size();) {
    double least = 1e300;
    std::size_t fullest = 0;
    std::vector<std::size_t> unfixed(capacities.size(), 0);
    for (std::size_t f = 0; f < ways.size(); ++f)
      if (rates[f] < 0)
        for (const std::uint32_t channel : ways[f]) ++unfixed[channel];
    for (std::size_t c = 0; c < capacities.size(); ++c) {
      if (unfixed[c] == 0 || left[c] / static_cast<double>(unfixed[c]) >= least) continue;
      least = left[c] / static_cast<double>(unfixed[c]);
      fullest = c;
    }
    for (std::size_t f = 0; f < ways.size(); ++f) {
      if (rates[f] >= 0 || std::find(ways[f].begin(), ways[f].end(), fullest) == ways[f].end()) continue;
      rates[f] = least;
      ++fixed;
      for (const std::uint32_t channel : ways[f]) left[channel] -= least;
    }
  }
  return rates;
}

TEST(shares_are_max_min_fair) {
  Random random(5, 5);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<double> capacities;
    for (int c = 0; c < 30; ++c) capacities.push_back(1.0 + static_cast<double>(random.below(4)));
    FairShares shares(capacities);
    std::vector<std::vector<std::uint32_t>> ways;
    std::vector<std::uint32_t> numbers;
    for (int f = 0; f < 60; ++f) {
      std::vector<std::uint32_t> way;
      const auto hops = 1 + random.below(5);
      while (way.size() < hops) {
        const auto channel = static_cast<std::uint32_t>(random.below(30));
        if (std::find(way.begin(), way.end(), channel) == way.end()) way.push_back(channel);
      }
      ways.push_back(way);
      numbers.push_back(shares.add(way));
      if (random.below(3) == 0) shares.compute();
      if (random.below(4) == 0) {
        const auto gone = random.below(ways.size());
        shares.remove(numbers[gone]);
        ways.erase(ways.begin() + static_cast<std::ptrdiff_t>(gone));
        numbers.erase(numbers.begin() + static_cast<std::ptrdiff_t>(gone));
      }
    }
    shares.compute();
    const auto expected = filled(capacities, ways);
    for (std::size_t f = 0; f < ways.size(); ++f)
      check_near(shares.rate(numbers[f]), expected[f], 0.03, "a max-min fair rate");
  }
}

}  // namespace
