// SPDX-License-Identifier: Apache-2.0
// Heavy random traffic through buffers of one or two packets: nothing may wait for ever, nothing may get
// lost, and all statistics are the same on any number of threads.
#include "network/link_history.hpp"
#include "test_network.hpp"

using namespace manyscale;
using namespace manyscale::network;
using namespace manyscale::network::test;

namespace {

bool same(const TrafficReport& a, const TrafficReport& b) {
  return a.rows.component == b.rows.component && a.rows.statistic == b.rows.statistic &&
         a.rows.value == b.rows.value && a.last_arrival == b.last_arrival &&
         a.received_bytes == b.received_bytes && a.run.events == b.run.events;
}

TEST(no_deadlock_and_the_same_on_any_number_of_threads) {
  int variant = 0;
  for (auto& [name, description] : small_networks()) {
    for (const std::string& algorithm : algorithms) {
      for (const char* fidelity : {"packet", "train"}) {
        for (const char* queues : {"virtual-output", "input"}) {
          for (const std::int64_t buffer : {1024, 2100}) {
            ++variant;
            NetworkSpec& spec = description.spec;
            spec.routing.algorithm = algorithm;
            spec.fidelity = fidelity;
            spec.switches.queues = queues;
            spec.switches.buffer = buffer;
            TrafficSpec traffic;
            traffic.pattern = "uniform";
            traffic.messages = 12;
            traffic.bytes = variant % 3 == 0 ? 8 : 4500;
            traffic.outstanding = 12;
            const std::string what = name + ", " + algorithm + ", " + fidelity + ", " + queues;
            const TrafficReport report = run_traffic(description, traffic, 1, 9);
            check(report.run.outcome == Outcome::finished, what + ": it comes to an end");
            check_equal(report.received, report.sent, what + ": messages that arrive");
            check_equal(report.totals.messages, report.sent, what + ": messages that are counted");
            const std::uint32_t threads = variant % 2 == 0 ? 2 : 4;
            check(same(report, run_traffic(description, traffic, threads, 9)),
                  what + ": the same on " + std::to_string(threads) + " threads");
          }
        }
      }
    }
  }
}

TEST(another_seed_gives_other_traffic) {
  TrafficSpec traffic;
  traffic.messages = 20;
  const TrafficReport one = run_traffic(fat_tree("4,4:4,4:2"), traffic, 2, 1);
  const TrafficReport two = run_traffic(fat_tree("4,4:4,4:2"), traffic, 2, 2);
  check(one.run.threads == 2, "two threads are used");
  check(one.last_arrival != two.last_arrival, "another seed");
}

TEST(links_account_for_every_byte) {
  for (const char* fidelity : {"packet", "train", "flow"}) {
    NetworkDescription description = fat_tree("4,4:4,4:2");
    description.spec.fidelity = fidelity;
    description.spec.load_interval = microsecond;
    TrafficSpec traffic;
    traffic.pattern = "shift";
    traffic.stride = 16;  // all by the roots: 6 channels
    traffic.messages = 25;
    traffic.bytes = 9500;
    const TrafficReport report = run_traffic(description, traffic, 1, 1);
    std::int64_t bytes = 0, packets = 0;
    double load = 0;
    for (const LinkReport& link : report.links) {
      bytes += link.bytes;
      packets += link.packets;
      check_equal(link.busy, link.bytes * byte_time, "the time that a link is busy");
      check(link.queueing >= 0, "queueing");
      for (const float part : link.sent) load += part;
      if (link.from_node) check_equal(link.bytes, 25 * (9500 + 10 * 24), "bytes of a node's link");
    }
    const std::string name = fidelity;
    check_equal(packets, 32 * 25 * 10 * 6, name + ": packets of all links");
    check_equal(bytes, 32 * 25 * 6 * (9500 + 10 * 24), name + ": bytes of all links");
    check_near(load, static_cast<double>(bytes), 1e-4, name + ": load over time");
    check_equal(report.totals.packet_hops, packets, name + ": hops");
    check_equal(report.totals.bytes, 32 * 25 * 9500, name + ": bytes of messages");
    std::int64_t in_histogram = 0;
    for (const std::int64_t count : report.totals.latency) in_histogram += count;
    check_equal(in_histogram, 32 * 25, name + ": messages in the histogram of latencies");
  }
}

TEST(load_over_time_is_kept_in_a_bounded_number_of_intervals) {
  TimeSeries load(10);
  for (Time time = 0; time < 100'000; time += 7) load.add(time, time + 7, 7);
  double sum = 0;
  for (const float part : load.sums()) sum += part;
  check(load.sums().size() <= TimeSeries::most_intervals && load.interval() == 1280,
        "intervals double when they run out");
  check_near(sum, 100'002, 1e-4, "nothing is lost");
  check_near(load.sums()[3], 1280, 0.03, "a byte per femtosecond");
}

}  // namespace
