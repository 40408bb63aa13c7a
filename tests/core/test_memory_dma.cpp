// SPDX-License-Identifier: Apache-2.0
// Direct memory access as one more participant in coherence: what it takes away from cores, its pace, and
// what it costs a neighbour that lives on memory bandwidth.
#include "memory/dma/dma.hpp"

#include "memory/traffic/generator.hpp"
#include "test_memory_machine.hpp"

using namespace manyscale;
using namespace manyscale::memory;
using namespace manyscale::memory::test;
using namespace manyscale::test;

namespace {

// A device that asks for transfers at given times.
class Device final : public Component {
 public:
  struct Command {
    Time time;
    Transfer transfer;
  };

  explicit Device(std::vector<Command> commands) : commands_(std::move(commands)) {
    timer_.on_expire<&Device::command>();
  }
  void start() override {
    for (std::uint32_t i = 0; i < commands_.size(); ++i) timer_.after(commands_[i].time, i);
  }

  Port<DmaProtocol, 0> engine{*this, "engine", "makes the transfers"};

 private:
  void command(const std::uint32_t& number) { engine.send(commands_[number].transfer, 0); }

  std::vector<Command> commands_;
  Timer<std::uint32_t> timer_{*this};
};

// A core's stand-in and an engine with its device, each 5 ns from a slice of a shared cache.
struct Node {
  Node(std::unique_ptr<Component> core, std::vector<Device::Command> commands, std::int64_t bandwidth,
       std::int64_t slice_size = 1 << 20) {
    DramSpec dram;
    dram.backend = "simple";
    dram.latency = 40 * nanosecond;
    dram.bandwidth = 16'000'000'000;
    Component& channel = simulation.add("channel", std::make_unique<Dram>(dram));
    HomeSpec home;
    home.clock = 1'000'000'000;
    home.cache = cache(slice_size, 16, 8, 22);
    Component& slice = simulation.add("slice", std::make_unique<Home>(home));
    simulation.connect(port(slice, "memory"), port(channel, "requests"), 10 * nanosecond);
    DmaSpec spec;
    spec.bandwidth = bandwidth;
    spec.coherent = true;
    Component& dma = simulation.add("dma", std::make_unique<Dma>(spec));
    Component& device = simulation.add("device", std::make_unique<Device>(std::move(commands)));
    Component& owner = simulation.add("core", std::move(core));
    for (Component* requester : {&owner, &dma})
      simulation.connect(port(*requester, "memory"), port(slice, "requesters"), 5 * nanosecond);
    simulation.connect(port(device, "engine"), port(dma, "device"), 0);
    report = simulation.run({});
    check(report.outcome == manyscale::Outcome::finished, "the run ends by itself");
  }

  std::int64_t statistic(const std::string& component, const std::string& name) {
    const StatisticRows rows = simulation.statistics();
    for (std::size_t i = 0; i < rows.value.size(); ++i)
      if (rows.component[i] == component && rows.statistic[i] == name)
        return std::get<std::int64_t>(rows.value[i]);
    throw std::invalid_argument("no statistic " + name);
  }

  Simulation simulation;
  RunReport report;
};

constexpr std::int64_t fast = 64'000'000'000;  // a line in a nanosecond

// A core writes a line, the device touches it, and the core reads it.
TEST(lines_change_hands) {
  for (const bool writes : {false, true}) {
    auto core = std::make_unique<Prober>(
        one_level(true), std::vector<Step>{{0, 0, store}, {2 * us, 0, load}, {3 * us, 0, store}});
    Prober& prober = *core;
    Node node(std::move(core), {{us, {0, 64, writes}}}, fast);
    const std::string what = writes ? "after a write of the device" : "after a read of the device";
    // Of the two that lose a copy, the first is the core, and the second the device, by the core's last
    // store.
    check_equal(node.statistic("slice", "invalidations_sent"), std::int64_t{writes ? 2 : 1},
                what + ", copies");
    check_equal(node.statistic("slice", "downgrades_sent"), std::int64_t{1}, what + ", owners that share");
    // A read leaves the core its copy; a write takes it, and the data comes from where the device has put it.
    check_equal(prober.outcomes[1].served == Served::l1, !writes, what + ", the core has its copy");
    check(prober.outcomes[2].latency > (writes ? 0 : 10 * nanosecond), what + ", the core needs permission");
    check_equal(node.statistic("dma", writes ? "lines_written" : "lines_read"), std::int64_t{1}, "lines");
  }
}

// 1,000 bytes from byte 60 on lie in 17 lines; the last begins 16 lines' times after the first.
TEST(it_keeps_the_pace_of_its_link) {
  for (const std::int64_t bandwidth : {fast, fast / 8, fast / 64}) {
    Node node(std::make_unique<Prober>(one_level(true), std::vector<Step>{}), {{us, {60, 1000, false}}},
              bandwidth);
    const Time line = 64 * second / bandwidth;
    check_equal(node.statistic("dma", "lines_read"), std::int64_t{17}, "lines of a transfer");
    const Time last = us + 16 * line;
    check(node.report.now >= last + 50 * nanosecond && node.report.now < last + 500 * nanosecond,
          "the last line is read at the pace of the link");
  }
}

// A core that streams through memory shares it with the device; one whose data fits into the shared cache
// loses its lines to what the device writes.
TEST(a_neighbour_is_slowed) {
  for (const bool fits : {false, true}) {
    std::vector<Time> times;
    for (const std::uint32_t bytes : {0u, 4u << 20}) {
      GeneratorSpec spec;
      spec.pattern = "stream";
      spec.size = 32;
      spec.footprint = fits ? 128 << 10 : 8 << 20;
      spec.accesses = 60'000;
      spec.l1 = cache(4096, 2, 1, 3);
      spec.coherent = true;
      std::vector<Device::Command> commands;
      if (bytes > 0) commands.push_back({0, {1u << 30, bytes, true}});
      Node node(std::make_unique<Generator>(spec), commands, 8'000'000'000, 256 << 10);
      times.push_back(static_cast<Time>(0));
      const StatisticRows rows = node.simulation.statistics();
      for (std::size_t i = 0; i < rows.value.size(); ++i)
        if (rows.component[i] == "core" && rows.statistic[i] == "finished")
          times.back() = static_cast<Time>(std::get<double>(rows.value[i]));
    }
    check(times[1] * 20 > times[0] * 21, fits ? "a neighbour in the cache is slowed by more than 5%"
                                              : "a neighbour in memory is slowed by more than 5%");
  }
}

}  // namespace
