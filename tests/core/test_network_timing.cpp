// SPDX-License-Identifier: Apache-2.0
// Times of single messages against closed forms, to the femtosecond: the latencies of all links and switches
// on the way and the time that all bytes take on the slowest link.
#include <algorithm>
#include <memory>

#include "test_network.hpp"

using namespace manyscale;
using namespace manyscale::network;
using namespace manyscale::network::test;

namespace {

// A host that sends given messages at given times and notes when they leave and arrive.
struct Sending {
  std::uint32_t from = 0, to = 0;
  std::uint64_t bytes = 0;
  Time at = 0;
};

struct Outcome {
  Time sent = -1, arrived = -1;
};

class Host final : public Component {
 public:
  Host(Network& network, std::uint32_t node, const std::vector<Sending>& sendings,
       std::vector<Outcome>& outcomes)
      : sendings_(sendings), outcomes_(outcomes), nic_(*this, network, node) {
    nic_.on_arrival<&Host::arrived>();
    nic_.on_sent<&Host::left>();
  }
  void start() override {
    for (std::size_t i = 0; i < sendings_.size(); ++i) {
      const Sending& sending = sendings_[i];
      if (sending.from != nic_.node()) continue;
      Message message{.source = sending.from, .destination = sending.to, .bytes = sending.bytes};
      message.tell_sent = true;
      message.header = {i, 22, 33, 44};
      nic_.send(message, sending.at);
    }
  }

 private:
  void left(const Message& message) { outcomes_[message.header[0]].sent = now(); }
  void arrived(const Message& message) {
    check(message.header[1] == 22 && message.header[2] == 33 && message.header[3] == 44,
          "the header travels along");
    check_equal(message.destination, nic_.node(), "the node where it arrives");
    outcomes_[message.header[0]].arrived = now();
  }

  const std::vector<Sending>& sendings_;
  std::vector<Outcome>& outcomes_;
  Nic nic_;
};

std::vector<Outcome> run(const NetworkDescription& description, const std::vector<Sending>& sendings,
                         std::uint32_t threads = 1) {
  Simulation simulation(5);
  Network network(simulation, description);
  std::vector<Outcome> outcomes(sendings.size());
  for (std::uint32_t node = 0; node < network.nodes(); ++node)
    simulation.add("host" + std::to_string(node), std::make_unique<Host>(network, node, sendings, outcomes));
  network.connect();
  RunOptions options;
  options.threads = threads;
  simulation.run(options);
  return outcomes;
}

Time alone(const NetworkDescription& description, std::uint32_t from, std::uint32_t to, std::uint64_t bytes) {
  return run(description, {{from, to, bytes, 0}})[0].arrived;
}

// Links and switches on the way, and all bytes with the headers of their packets.
Time closed_form(std::uint32_t links, std::uint64_t bytes) {
  const std::uint64_t packets = std::max<std::uint64_t>(1, (bytes + 999) / 1000);
  return links * 50 * nanosecond + (links - 1) * 70 * nanosecond +
         static_cast<Time>(bytes + packets * 24) * byte_time;
}

TEST(single_messages_take_what_links_and_bytes_take) {
  struct Case {
    std::string name;
    NetworkDescription description;
    std::uint32_t from, to, links;
  };
  const std::vector<Case> cases{{"one switch", one_switch(4), 0, 3, 2},
                                {"fat tree, same leaf", fat_tree("4,4:4,4:4"), 0, 3, 2},
                                {"fat tree, same subtree", fat_tree("4,4:4,4:4"), 0, 5, 4},
                                {"fat tree, by the roots", fat_tree("4,4:4,4:4"), 0, 63, 6},
                                {"merged roots", fat_tree("4,4:4,4:2", 8), 1, 30, 6},
                                {"torus", grid("torus", "5x5x4"), 0, 2 + 5 * 3 + 25 * 2, 2 + 2 + 2 + 2},
                                {"mesh", grid("mesh", "5x5x4"), 0, 4 + 5 * 3 + 25 * 2, 4 + 3 + 2 + 2},
                                {"dragonfly, same group", dragonfly(4, 2, 2), 0, 7, 3},
                                {"graph", irregular_graph(), 0, 13, 4}};
  for (const Case& one : cases) {
    for (const char* fidelity : {"packet", "train", "flow", "ideal"}) {
      for (const std::uint64_t bytes :
           {0u, 1u, 999u, 1000u, 1001u, 7000u, 8000u, 8001u, 65'536u, 1'000'000u}) {
        NetworkDescription description = one.description;
        description.spec.fidelity = fidelity;
        check_equal(alone(description, one.from, one.to, bytes), closed_form(one.links, bytes),
                    one.name + ", " + fidelity + ", " + std::to_string(bytes) + " B");
      }
    }
  }
}

TEST(ways_of_a_dragonfly_have_one_link_between_groups) {
  const NetworkDescription description = dragonfly(4, 2, 2);
  for (std::uint32_t to = 8; to < 72; to += 7) {
    const Time time = alone(description, 0, to, 100);
    check(time == closed_form(3, 100) || time == closed_form(4, 100) || time == closed_form(5, 100),
          "a dragonfly's way to another group has 3 to 5 links");
  }
}

TEST(other_links_of_nodes) {
  NetworkDescription description = one_switch(2);
  description.spec.nic.bandwidth = 5'000'000'000;
  description.spec.nic.latency = 30 * nanosecond;
  check_equal(alone(description, 0, 1, 1000), 2 * 30 * nanosecond + 70 * nanosecond + 1024 * 2 * byte_time,
              "links of nodes with half the bandwidth and another latency");
  // From a slow link to a fast one: a packet has no gaps, so the first waits until its last byte can follow;
  // then it takes its time on the slow link at the end.
  description = fat_tree("2,2:2");
  description.spec.nic.bandwidth = 5'000'000'000;
  check_equal(alone(description, 0, 3, 3000),
              4 * 50 * nanosecond + 3 * 70 * nanosecond + 1024 * byte_time + 3 * 1024 * 2 * byte_time,
              "slow links at both ends of a tree");
}

TEST(slow_links_count) {
  // A quarter of the bandwidth on one link in the middle: there bytes take four times as long, elsewhere they
  // hide.
  NetworkDescription description = grid("mesh", "4");
  description.faults.push_back({.a = 1, .b = 2, .speed = 0.25});
  for (const char* fidelity : {"packet", "train", "flow", "ideal"}) {
    description.spec.fidelity = fidelity;
    check_equal(alone(description, 0, 3, 500),
                5 * 50 * nanosecond + 4 * 70 * nanosecond + 524 * 4 * byte_time,
                std::string(fidelity) + ": one packet over a slow link");
  }
  // Packets of 1024 B leave the slow link one after the other; the last then takes no longer on the next.
  description.spec.fidelity = "packet";
  check_equal(alone(description, 0, 3, 4000),
              5 * 50 * nanosecond + 4 * 70 * nanosecond + 4096 * 4 * byte_time,
              "four packets over a slow link");
}

TEST(the_sender_knows_when_it_has_sent) {
  for (const char* fidelity : {"packet", "train", "flow", "ideal"}) {
    NetworkDescription description = fat_tree("4,4:4");
    description.spec.fidelity = fidelity;
    const auto outcomes = run(description, {{0, 9, 5000, 3 * nanosecond}});
    check_equal(outcomes[0].sent, 3 * nanosecond + 5120 * byte_time,
                std::string(fidelity) + ": the last byte has left");
    check_equal(outcomes[0].arrived, 3 * nanosecond + closed_form(4, 5000),
                std::string(fidelity) + ": it has arrived");
  }
}

TEST(messages_share_the_way_out) {
  // In turn, packet by packet: the shorter message has its third packet as the sixth of all.
  NetworkDescription description = one_switch(3);
  const std::vector<Sending> sendings{{0, 1, 6000, 0}, {0, 2, 3000, 0}};
  auto outcomes = run(description, sendings);
  check_equal(outcomes[1].sent, 6 * 1024 * byte_time, "round-robin: the shorter message");
  check_equal(outcomes[0].sent, 9 * 1024 * byte_time, "round-robin: the longer message");
  description.spec.nic.order = "first-come";
  outcomes = run(description, sendings);
  check_equal(outcomes[0].sent, 6 * 1024 * byte_time, "first-come: the first message");
  check_equal(outcomes[1].sent, 9 * 1024 * byte_time, "first-come: the second message");
  // A message of one packet comes next.
  outcomes = run(description, {{0, 1, 6000, 0}, {0, 2, 3000, 0}, {0, 2, 10, 1}});
  check_equal(outcomes[2].sent, (1024 + 34) * byte_time, "a message of one packet waits for one packet");
  // As a fluid, both have half the link until the shorter is gone.
  description.spec.fidelity = "flow";
  outcomes = run(description, sendings);
  check_equal(outcomes[1].sent, 6 * 1024 * byte_time, "flow: the shorter message");
  check_equal(outcomes[0].sent, 9 * 1024 * byte_time, "flow: the longer message");
}

TEST(a_gap_separates_messages) {
  for (const char* fidelity : {"packet", "train", "ideal"}) {
    NetworkDescription description = one_switch(3);
    description.spec.fidelity = fidelity;
    description.spec.nic.gap = 200 * nanosecond;
    const auto outcomes = run(description, {{0, 1, 100, 0}, {0, 2, 100, 0}, {0, 1, 100, 0}});
    for (std::int64_t i = 0; i < 3; ++i) {
      check_equal(outcomes[static_cast<std::size_t>(i)].sent,
                  (i + 1) * 124 * byte_time + i * 200 * nanosecond,
                  std::string(fidelity) + ": message " + std::to_string(i) + " after the gap");
    }
  }
}

TEST(rails_share_a_message) {
  NetworkDescription description = one_switch(2);
  description.spec.topology.rails = 2;
  // Eight packets over two rails take as long as four over one.
  check_equal(alone(description, 0, 1, 8000), closed_form(2, 4000), "two rails");
  description.spec.fidelity = "flow";
  check_equal(alone(description, 0, 1, 8000), closed_form(2, 4000), "two rails, flow");
}

TEST(errors_say_what_is_wrong) {
  check_refused([] { run(one_switch(2), {{0, 7, 1, 0}}); }, "has 2 nodes");
  check_refused([] { run(one_switch(2), {{0, 1, std::uint64_t{1} << 62, 0}}); }, "1000 s");
  NetworkDescription description = grid("torus", "8");
  description.faults = {{.a = 1, .b = 2}, {.a = 5, .b = 6}};
  check_refused([&] { run(description, {{0, 3, 1, 0}}); }, "no way leads from node 0 to node 3");
  check(run(description, {{0, 7, 1, 0}})[0].arrived > 0, "nodes on the same side can talk");
  description = one_switch(2);
  description.spec.switches.buffer = 1000;
  check_refused([&] { run(description, {}); }, "switch.buffer");
  description = one_switch(2);
  description.spec.fidelity = "exact";
  check_refused([&] { run(description, {}); }, "'packet'");
  description = one_switch(2);
  description.spec.nic.order = "random";
  check_refused([&] { run(description, {}); }, "round-robin");
  description = one_switch(2);
  description.spec.switches.queues = "none";
  check_refused([&] { run(description, {}); }, "virtual-output");
  Simulation simulation(1);
  Network network(simulation, one_switch(2));
  check_refused([&] { network.path(0, 2); }, "2 nodes");
}

}  // namespace
