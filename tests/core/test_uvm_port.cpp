// SPDX-License-Identifier: Apache-2.0
// The GMMU and the UVM driver, each driven alone through the port between them.
#include <span>

#include "test_uvm.hpp"

using namespace manyscale;
using namespace manyscale::gpu;
using namespace manyscale::gpu::test;

namespace {

// A driver that does nothing by itself, and records what the GMMU asks.
struct RecordingDriver final : UvmDriverPort {
  void fault_written(PageIndex page, bool first) override { faults.push_back({page, first}); }
  bool maps_remotely(PageIndex, bool) override { return remote; }
  void accessed(PageIndex page, std::uint32_t) override { used.push_back(page); }
  void unpinned() override { ++ended; }

  std::vector<std::pair<PageIndex, bool>> faults;
  std::vector<PageIndex> used;
  int ended = 0;
  bool remote = false;
};

// A GMMU behind which the test plays the driver.
class GmmuAlone final : public Component {
 public:
  explicit GmmuAlone(const GmmuSpec& spec) : gmmu(spec, *this, shared, link_) {
    gmmu.connect(driver);
    link_.on_receive<&GmmuAlone::moved>();
    timer_.on_expire<&GmmuAlone::act>();
    shared.ranges->add(kBase, 4 * kMib, "memory");
    shared.residency.grow();
    shared.access_counters.grow(shared.residency.size() / kPagesPerChunk);
    gmmu.grow(shared.residency.size());
  }
  void start() override {
    gmmu.start();
    for (const auto& [when, what] : plan) timer_.after(when, what);
  }

  UvmSharedState shared{false, 0};
  RecordingDriver driver;

 private:
  Port<PageProtocol, 0> link_{*this, "link", "the link to the host", Links::optional};
  Timer<int> timer_{*this};
  void moved(const PageMoved& page, std::uint32_t) { gmmu.remote_access_moved(page.page); }
  void act(const int& which) { actions[static_cast<std::size_t>(which)](); }

 public:
  Gmmu gmmu;
  std::vector<std::pair<Time, int>> plan;
  std::vector<std::function<void()>> actions;
};

struct GmmuMachine {
  explicit GmmuMachine(const GmmuSpec& spec, std::vector<std::vector<Access>> sequences) {
    auto made = std::make_unique<GmmuAlone>(spec);
    alone = made.get();
    simulation.add("gmmu", std::move(made));
    Component& wires = simulation.add("link", std::make_unique<HostLink>(pcie()));
    simulation.connect(Machine::port(*alone, "link"), Machine::port(wires, "engines"), 0);
    auto client = std::make_unique<StandInSm>(std::move(sequences));
    sm = client.get();
    simulation.add("sm", std::move(client));
    simulation.connect(sm->gmmu, Machine::port(*alone, "sms"), kLinkLatency);
  }
  // At a time the driver does something.
  void at(Time when, std::function<void()> what) {
    alone->plan.push_back({when, static_cast<int>(alone->actions.size())});
    alone->actions.push_back(std::move(what));
  }
  Page& page(std::uint64_t offset_kib) {
    return alone->shared.residency.at(alone->shared.ranges->page_of(kBase + offset_kib * kKib));
  }

  Simulation simulation{3};
  GmmuAlone* alone = nullptr;
  StandInSm* sm = nullptr;
};

GmmuSpec gmmu_spec() {
  GmmuSpec spec = v100_spec();
  spec.clock = 1'000'000'000;
  spec.walk_latency = 100;
  return spec;
}

constexpr Time kWalk = 100 * nanosecond;

// A page that the driver has mapped is translated by a walk, and nothing passes the port.
TEST(a_mapped_page_needs_no_driver) {
  GmmuMachine machine(gmmu_spec(), {reads({0})});
  machine.page(0).set(Page::on_device);
  machine.simulation.run({});
  const AccessOutcome& outcome = machine.sm->outcomes[0][0];
  check(outcome.kind == Answer::mapped && !outcome.faulted, "mapped without a fault");
  check_equal(outcome.done - outcome.asked, 2 * kLinkLatency + kWalk, "a round trip and a walk");
  check(machine.alone->driver.faults.empty(), "no interrupt");
}

// A fault interrupts the driver; the SM's translation ends one replay after the driver says so, not before.
TEST(a_fault_waits_for_its_replay) {
  GmmuMachine machine(gmmu_spec(), {reads({0})});
  const Time replayed = 50 * microsecond;
  machine.at(replayed, [&] {
    machine.page(0).set(Page::on_device);
    machine.alone->gmmu.replay(0);
    check_equal(static_cast<std::int64_t>(machine.alone->gmmu.replays_pending()), 1,
                "a replay pins its page");
    check_equal(machine.page(0).pins, 1, "pins");
  });
  machine.simulation.run({});
  const RecordingDriver& driver = machine.alone->driver;
  check(driver.faults == std::vector{std::pair{PageIndex{0}, true}}, "one interrupt");
  check(machine.sm->outcomes[0][0].faulted, "the SM gets a nack");
  // The replay's round trip to the SM, a second walk, and the response.
  check_equal(machine.sm->outcomes[0][0].done, replayed + 2 * kLinkLatency + kWalk + kLinkLatency, "the end");
  check_equal(driver.ended, 1, "the driver is told that the page is unpinned");
  check_equal(machine.alone->gmmu.statistics().faults.value(), 1, "faults");
}

// Faults of one page: all of them are written, and only the first is new.
TEST(further_faults_of_a_page_are_repeats) {
  GmmuMachine machine(gmmu_spec(), {reads({0}), reads({0})});
  machine.at(10 * microsecond, [&] {
    check_equal(static_cast<std::int64_t>(machine.alone->shared.fault_buffer.visible(machine.alone->now())),
                2, "entries of the fault buffer");
    machine.page(0).set(Page::on_device);
    machine.alone->gmmu.replay_all();
  });
  machine.simulation.run({});
  check(machine.alone->driver.faults ==
            std::vector{std::pair{PageIndex{0}, true}, std::pair{PageIndex{0}, false}},
        "interrupts");
  check_equal(machine.alone->gmmu.statistics().merged_faults.value(), 1, "merged");
}

// A replay takes back faults that are not written yet: however often the driver replays, a waiting
// translation has one entry in the fault buffer.
TEST(a_replay_withdraws_unwritten_faults) {
  GmmuSpec spec = gmmu_spec();
  spec.fault_interval = 10 * microsecond;
  GmmuMachine machine(spec, {reads({0}), reads({4}), reads({8})});
  FaultBuffer& buffer = machine.alone->shared.fault_buffer;
  const auto visible = [&] { return static_cast<std::int64_t>(buffer.visible(machine.alone->now())); };
  const auto replay = [&] {  // as the driver after a batch of what it has read
    buffer.drop(buffer.visible(machine.alone->now()));
    machine.alone->gmmu.replay_all();
  };
  for (const Time when : {5, 9, 14}) machine.at(when * microsecond, replay);
  for (const Time count : {0, 1, 2}) {
    const Time written = (24 + 10 * count) * microsecond;
    machine.at(written - 1, [&, count] { check_equal(visible(), count, "an interval is not over"); });
    machine.at(written, [&, count] { check_equal(visible(), count + 1, "an entry each interval"); });
  }
  machine.at(100 * microsecond, [&] {
    check_equal(visible(), 3, "entries of three translations");
    for (const std::uint64_t page : {0, 4, 8}) machine.page(page).set(Page::on_device);
    replay();
  });
  machine.simulation.run({});
  check_equal(visible(), 0, "none is left");
}

// With one MSHR the second page's translation stalls until the first is replayed.
TEST(a_full_fault_buffer_stalls_translations) {
  GmmuSpec spec = gmmu_spec();
  spec.outstanding_faults = 1;
  GmmuMachine machine(spec, {reads({0}), reads({4})});
  const auto serve = [&](PageIndex page) {
    machine.page(page * 4).set(Page::on_device);
    machine.alone->gmmu.replay(page);
  };
  machine.at(10 * microsecond, [&] {
    check_equal(static_cast<std::int64_t>(machine.alone->driver.faults.size()), 1, "the second is stalled");
    serve(0);
  });
  machine.at(20 * microsecond, [&] {
    check_equal(static_cast<std::int64_t>(machine.alone->driver.faults.size()), 2, "then it faults");
    serve(1);
  });
  machine.simulation.run({});
  check(machine.sm->outcomes[1][0].done > 20 * microsecond, "the second ends last");
  check(machine.alone->gmmu.statistics().stalled.value() > 19 * microsecond,
        "stalled from the first to the last");
}

// A page that the driver keeps on the host is accessed there.
TEST(the_driver_decides_on_remote_accesses) {
  GmmuMachine machine(gmmu_spec(), {reads({0})});
  machine.page(0).set(Page::on_host);
  machine.alone->driver.remote = true;
  machine.simulation.run({});
  check(machine.sm->outcomes[0][0].kind == Answer::remote, "remote");
  check_equal(machine.alone->gmmu.statistics().remote_bytes.value(), 128, "bytes");
  check_equal(machine.alone->shared.access_counters.accesses(0), 1, "access counter");
}

// TLBs of SMs that have a page drop it; the call says when all have.
TEST(invalidations_reach_the_holders) {
  GmmuMachine machine(gmmu_spec(), {reads({0})});
  machine.page(0).set(Page::on_device);
  Time told = -1;
  machine.at(10 * microsecond, [&] { told = machine.alone->gmmu.invalidate({0}); });
  machine.simulation.run({});
  check_equal(told, 2 * kLinkLatency, "a round trip to the SMs");
  check_equal(static_cast<std::int64_t>(machine.sm->forgotten), 1, "entries dropped");
}

// A GMMU that only records what the driver asks of it.
struct RecordingGmmu final : GmmuPort {
  explicit RecordingGmmu(UvmSharedState& memory) : shared(memory) {}
  void refault(PageIndex page) override { refaulted.push_back(page); }
  void replay(PageIndex page) override {
    shared.residency.at(page).clear(Page::awaited);
    replayed.push_back(page);
  }
  void replay_all() override { ++replays_of_all; }
  std::uint64_t replays_pending() const override { return 0; }
  Time invalidate(const std::vector<PageIndex>& pages) override {
    invalidated.insert(invalidated.end(), pages.begin(), pages.end());
    return 3 * microsecond;
  }
  void mappings_added() override { ++changes; }
  void grow(PageIndex) override {}
  bool uses(std::uint64_t, std::uint64_t) const override { return in_use; }
  void forget(PageIndex, bool) override {}

  UvmSharedState& shared;
  std::vector<PageIndex> refaulted, replayed, invalidated;
  int replays_of_all = 0, changes = 0;
  bool in_use = false;
};

// A driver in front of which the test plays the GMMU.
class DriverAlone final : public Component {
 public:
  explicit DriverAlone(const UvmDriverSpec& spec) : driver(spec, *this, shared, link_) {
    driver.connect(gmmu);
    link_.on_receive<&DriverAlone::moved>();
    timer_.on_expire<&DriverAlone::fault>();
    driver.allocate(kBase, 8 * kMib, "memory");
  }
  void start() override {
    for (const auto& [when, page] : faults) timer_.after(when, page);
  }

  UvmSharedState shared{false, 1000};
  RecordingGmmu gmmu{shared};
  std::vector<std::pair<Time, PageIndex>> faults;

 private:
  Port<PageProtocol, 0> link_{*this, "link", "the link to the host", Links::optional};
  Timer<PageIndex> timer_{*this};
  void moved(const PageMoved& page, std::uint32_t) { driver.transfer_moved(page.page); }
  void fault(const PageIndex& page) {
    Page& at = shared.residency.at(page);
    const bool first = !at.is(Page::queued);
    at.set(Page::queued | Page::awaited);
    shared.fault_buffer.write(page, now(), 0);
    driver.fault_written(page, first);
  }

 public:
  UvmDriver driver;
};

struct DriverMachine {
  explicit DriverMachine(const UvmDriverSpec& spec) {
    auto made = std::make_unique<DriverAlone>(spec);
    alone = made.get();
    simulation.add("driver", std::move(made));
    Component& wires = simulation.add("link", std::make_unique<HostLink>(pcie()));
    simulation.connect(Machine::port(*alone, "link"), Machine::port(wires, "engines"), 0);
  }
  const PageEvent* find(PageEventKind kind) const {
    for (const PageEvent& event : alone->shared.log.events())
      if (event.kind == kind) return &event;
    return nullptr;
  }

  Simulation simulation{3};
  DriverAlone* alone = nullptr;
};

UvmDriverSpec driver_spec() {
  UvmDriverSpec spec = v100_spec();
  spec.first_touch = false;
  spec.handling = "fixed";
  spec.fault_latency = 45 * microsecond;
  spec.prefetcher = "none";
  spec.capacity = 4 * kMib;
  return spec;
}

// An interrupt begins a batch; the transfer begins after the driver's time, and the replay follows its end.
TEST(a_fault_becomes_a_batch) {
  DriverMachine machine(driver_spec());
  machine.alone->faults = {{0, 5}};
  machine.simulation.run({});
  const PageEvent* transfer = machine.find(PageEventKind::to_device);
  check(transfer != nullptr, "a transfer");
  check_equal(transfer->begin, 45 * microsecond, "it begins when the driver is done");
  check(machine.alone->shared.residency.at(5).is(Page::on_device), "the page is on the device");
  check(machine.alone->gmmu.replayed == std::vector<PageIndex>{5}, "its translations are replayed");
  check(machine.alone->gmmu.changes == 1, "the GMMU is told of the mapping");
  check_equal(machine.alone->driver.statistics().fault_batches.value(), 1, "batches");
}

// Pages of a full memory are invalidated in the TLBs first and leave when that has ended.
TEST(an_eviction_invalidates_first) {
  UvmDriverSpec spec = driver_spec();
  spec.capacity = 2 * kMib;
  spec.frames = "block";
  DriverMachine machine(spec);
  machine.alone->faults = {{0, 0}, {1000 * microsecond, kPagesPerBlock}};
  machine.simulation.run({});
  check(machine.alone->gmmu.invalidated == std::vector<PageIndex>{0}, "page 0 leaves the TLBs");
  const PageEvent* write_back = machine.find(PageEventKind::to_host);
  check(write_back != nullptr, "a transfer");
  check_equal(write_back->begin, 1000 * microsecond + 45 * microsecond + 3 * microsecond,
              "it begins when the TLBs have dropped the page");
  check(machine.alone->shared.residency.at(kPagesPerBlock).is(Page::on_device),
        "the other page has its frames");
  check(machine.alone->gmmu.replayed == std::vector<PageIndex>{0, kPagesPerBlock}, "replays");
}

// Memory that the GMMU still uses cannot be freed.
TEST(memory_in_use_is_not_freed) {
  DriverMachine machine(driver_spec());
  machine.simulation.run({});
  machine.alone->gmmu.in_use = true;
  bool refused = false;
  try {
    machine.alone->driver.free(kBase);
  } catch (const SimulationError&) {
    refused = true;
  }
  check(refused, "an error");
  machine.alone->gmmu.in_use = false;
  machine.alone->driver.free(kBase);
  check(!machine.alone->shared.ranges->contains(kBase), "freed");
}

}  // namespace
