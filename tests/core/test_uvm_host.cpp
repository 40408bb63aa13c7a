// SPDX-License-Identifier: Apache-2.0
// What the host does with managed memory: accesses that bring pages back, prefetches, advice; and remote
// accesses of the device.
#include "test_uvm.hpp"

using namespace manyscale;
using namespace manyscale::gpu;
using namespace manyscale::gpu::test;

namespace {

using Step = RangeCommandKind;
constexpr Time kMillisecond = 1000 * microsecond;

Access at(std::uint64_t offset_kib, Time milliseconds, bool write = false) {
  return {kBase + offset_kib * kKib, write, milliseconds * kMillisecond};
}

HostStep step(Step kind, std::uint64_t offset_kib, std::uint64_t kib, Time milliseconds) {
  return {kind, kBase + offset_kib * kKib, kib * kKib, milliseconds * kMillisecond};
}

TEST(a_host_access_brings_pages_back) {
  UnifiedMemorySpec spec = logged_spec();
  spec.host_fault_latency = 10 * microsecond;
  Machine machine(spec);
  StandInSm& sm = machine.add_sm({{at(0, 0, true), at(0, 2)}});
  StandInHost& host = machine.add_host({step(Step::host_read, 0, 4, 1)});
  machine.run();
  check_moves(machine.moved(PageEventKind::to_host), {{0, 64}}, "all that the device has of 2 MiB");
  const Time expected = 10 * microsecond + 2 * kLinkLatency + TransferTime(spec)(64 * kKib, true);
  check_equal(host.done[0] - kMillisecond, expected, "a fault, a shootdown, a transfer");
  check(sm.outcomes[0][1].faulted, "the device faults again");
  check_equal(machine.uvm->driver_statistics().host_faults.value(), 1, "faults of the host");
  check_equal(machine.uvm->driver_statistics().thrashed_pages.value(), 0, "not evicted for room");
}

TEST(host_faults_can_be_small) {
  UnifiedMemorySpec spec = logged_spec();
  spec.host_granularity = 16384;
  Machine machine(spec);
  machine.add_sm({{at(0, 0)}});
  machine.add_host({step(Step::host_write, 20, 4, 1)});
  machine.run();
  check_moves(machine.moved(PageEventKind::to_host), {{16, 16}}, "16 KiB around the page");
}

TEST(pages_on_the_host_cost_nothing) {
  Machine machine(logged_spec());
  StandInHost& host = machine.add_host({step(Step::host_write, 0, 4096, 1), step(Step::host_read, 0, 4, 1)});
  machine.run();
  check_equal(host.done[1], kMillisecond, "no time passes");
}

// Runs of 2 MiB, one after the other over the link.
TEST(a_prefetch_removes_faults) {
  Machine machine(logged_spec());
  StandInSm& sm = machine.add_sm({{at(0, 1), at(4092, 1)}});
  StandInHost& host = machine.add_host({step(Step::prefetch_to_device, 0, 4096, 0)});
  machine.run();
  check_moves(machine.moved(PageEventKind::to_device), {{0, 2048}, {2048, 2048}}, "two transfers");
  check_equal(host.done[0], 2 * TransferTime(v100_spec())(2 * kMib, false), "the time of both");
  check(!sm.outcomes[0][0].faulted && !sm.outcomes[0][1].faulted, "no fault");
  check_equal(machine.uvm->driver_statistics().pages_commanded_in.value(), 1024, "pages");
}

TEST(a_prefetch_to_the_host_takes_its_range_only) {
  Machine machine(logged_spec());
  machine.add_host({step(Step::prefetch_to_device, 0, 2048, 0), step(Step::prefetch_to_host, 100, 200, 0)});
  machine.run();
  check_moves(machine.moved(PageEventKind::to_host), {{100, 200}}, "the range");
  check_equal(machine.uvm->driver_statistics().host_faults.value(), 0, "no fault of the host");
}

// Faults overtake a prefetch between its transfers.
TEST(faults_overtake_prefetches) {
  Machine machine(logged_spec(), {40 * kMib});
  StandInSm& sm = machine.add_sm({{at(39 * 1024, 0)}});
  StandInHost& host = machine.add_host({step(Step::prefetch_to_device, 0, 38 * 1024, 0)});
  machine.run();
  check(sm.outcomes[0][0].done < host.done[0] / 2, "the page comes while the prefetch goes on");
}

// A prefetch of more than fits leaves the last pages on the device.
TEST(a_prefetch_may_be_larger_than_memory) {
  UnifiedMemorySpec spec = logged_spec();
  spec.capacity = 4 * kMib;
  Machine machine(spec, {16 * kMib});
  StandInHost& host = machine.add_host({step(Step::prefetch_to_device, 0, 16 * 1024, 0)});
  machine.run();
  check(host.done[0] > 0, "it ends");
  check_equal(machine.pages_at(PageLocation::device, kBase + 12 * kMib, 4 * kMib), 1024, "the last 4 MiB");
  check_equal(machine.pages_at(PageLocation::host, kBase, 12 * kMib), 3072, "the rest is on the host");
}

// Pages that are read mostly have a copy on either side; a write of the device ends the host's, one of the
// host the device's.
TEST(read_mostly_pages_are_duplicated) {
  Machine machine(logged_spec());
  machine.uvm->advise(kBase, 4 * kMib, Advice::read_mostly);
  StandInSm& sm = machine.add_sm({{at(0, 0), at(0, 2, true), at(2048, 4), at(2048, 6)}});
  machine.add_host({step(Step::host_read, 0, 64, 1), step(Step::host_write, 2048, 4, 5)});
  machine.run();
  check(sm.outcomes[0][0].kind == Answer::mapped_read_only, "a copy for reading");
  check(sm.outcomes[0][1].kind == Answer::mapped && sm.outcomes[0][1].faulted, "the write faults");
  check_equal(machine.uvm->gmmu_statistics().permission_faults.value(), 1, "a fault of permission");
  check_equal(machine.uvm->driver_statistics().host_faults.value(), 1,
              "the host's read finds its copy, the write does not");
  check_equal(machine.pages_at(PageLocation::device, kBase, 4 * kKib), 1, "the page that was written");
  check_equal(machine.pages_at(PageLocation::both, kBase + 4 * kKib, 60 * kKib), 15,
              "the others have two copies");
  check(sm.outcomes[0][3].faulted, "the host's write took the device's copy");
  check_equal(machine.uvm->driver_statistics().bytes_to_host.value(), 0, "nothing had to be written back");
}

// A page that the device wrote is copied for a read of the host, and stays for reading.
TEST(a_host_read_copies_read_mostly_pages) {
  Machine machine(logged_spec());
  machine.uvm->advise(kBase, 4 * kMib, Advice::read_mostly);
  StandInSm& sm = machine.add_sm({{at(0, 0, true), at(0, 2), at(0, 3, true)}});
  machine.add_host({step(Step::host_read, 0, 4, 1)});
  machine.run();
  check_moves(machine.moved(PageEventKind::to_host), {{0, 4}}, "the page that was written");
  check(!sm.outcomes[0][1].faulted && sm.outcomes[0][1].kind == Answer::mapped_read_only, "it can be read");
  check(sm.outcomes[0][2].faulted, "and not be written");
}

TEST(pages_that_prefer_the_host_stay_there) {
  Machine machine(logged_spec());
  machine.uvm->advise(kBase, 64 * kKib, Advice::prefer_host);
  StandInSm& sm = machine.add_sm({{at(0, 0), at(4, 0, true), at(64, 0)}});
  machine.run();
  check(sm.outcomes[0][0].kind == Answer::remote && !sm.outcomes[0][0].faulted, "a remote read");
  check(sm.outcomes[0][1].kind == Answer::remote, "a remote write");
  check(sm.outcomes[0][2].faulted, "others fault");
  check_equal(machine.uvm->gmmu_statistics().remote_reads.value(), 1, "reads");
  check_equal(machine.uvm->gmmu_statistics().remote_writes.value(), 1, "writes");
  check_equal(machine.uvm->gmmu_statistics().remote_bytes.value(), 256, "bytes");
  check_equal(machine.pages_at(PageLocation::host, kBase, 64 * kKib), 16, "all are still on the host");
}

TEST(pages_accessed_by_the_device_do_not_fault) {
  Machine machine(logged_spec());
  machine.uvm->advise(kBase, 64 * kKib, Advice::accessed_by_device);
  StandInSm& sm = machine.add_sm({{at(0, 0)}, {at(0, 3)}});
  machine.add_host({step(Step::prefetch_to_device, 0, 64, 1)});
  machine.run();
  check(sm.outcomes[0][0].kind == Answer::remote, "remote while it is on the host");
  check(sm.outcomes[1][0].kind == Answer::mapped && !sm.outcomes[1][0].faulted, "mapped when it is there");
}

// The way: a walk, then the access: its bytes on the link, the link's latency, and the remote latency.
TEST(remote_accesses_take_their_time) {
  UnifiedMemorySpec spec = logged_spec();
  Machine machine(spec);
  machine.uvm->advise(kBase, 4 * kMib, Advice::prefer_host);
  StandInSm& sm = machine.add_sm({{at(0, 0)}});
  machine.run();
  const HostLinkSpec link = pcie();
  const Time wires = 128 * second / link.bandwidth;
  check_equal(sm.outcomes[0][0].done,
              4 * kLinkLatency + 100 * nanosecond + wires + link.data_latency + 200 * nanosecond,
              "a remote read of 128 bytes");
}

// Eight reads of 64 KiB stay remote, the ninth brings them; a write brings them at once.
TEST(access_counters_decide) {
  UnifiedMemorySpec spec = logged_spec();
  spec.remote = "always";
  Machine machine(spec);
  std::vector<Access> accesses;
  for (std::uint64_t i = 0; i < 9; ++i) accesses.push_back(at(4 * i, 0));
  accesses.push_back(at(64, 0, true));
  StandInSm& sm = machine.add_sm({accesses});
  machine.run();
  for (std::size_t i = 0; i < 8; ++i) check(sm.outcomes[0][i].kind == Answer::remote, "a remote read");
  check(sm.outcomes[0][8].faulted, "the threshold is reached");
  check(sm.outcomes[0][9].faulted, "a write");
}

TEST(access_counters_wait_for_a_full_memory) {
  UnifiedMemorySpec spec = logged_spec();
  spec.remote = "oversubscribed";
  spec.capacity = 2 * kMib;
  Machine machine(spec);
  machine.add_host({step(Step::prefetch_to_device, 0, 2048, 0)});
  StandInSm& sm = machine.add_sm({{at(2048, 1), at(3072, 2)}});
  machine.run();
  check(sm.outcomes[0][0].faulted, "before memory was full");
  check(sm.outcomes[0][1].kind == Answer::remote, "since memory was full");
}

// Adaptive: with an empty memory the threshold is 1 + 8 * 0; after an eviction 8 * penalty * (trips + 1).
TEST(adaptive_thresholds_grow) {
  UnifiedMemorySpec spec = logged_spec();
  spec.remote = "adaptive";
  spec.remote_penalty = 3;
  spec.capacity = 2 * kMib;
  spec.prefetcher = "sequential_local";
  spec.eviction = "sequential_local";
  Machine machine(spec);
  std::vector<Access> accesses{at(0, 0), at(0, 0)};
  accesses.push_back(at(2048, 1));  // the first access of a chunk is remote
  accesses.push_back(at(2048, 1));
  StandInSm& sm = machine.add_sm({accesses});
  sm.forgetful = true;
  machine.run();
  check(sm.outcomes[0][0].kind == Answer::remote, "one access is below 1 + 0");
  check(sm.outcomes[0][1].faulted, "two are not");

  // Chunk 0 is evicted after three accesses; it made one trip, so 48 accesses of it keep it remote.
  Machine full(spec, {8 * kMib});
  full.add_host({step(Step::prefetch_to_device, 0, 2048, 0)});
  std::vector<Access> again{at(4096, 1, true)};
  for (int i = 0; i < 60; ++i) again.push_back(at(0, 2));
  StandInSm& other = full.add_sm({again});
  other.forgetful = true;
  full.run();
  std::int64_t remote = 0;
  for (const AccessOutcome& outcome : other.outcomes[0]) remote += outcome.kind == Answer::remote;
  check_equal(remote, 8 * 3 * 2, "remote accesses before the migration");
}

// A remote access that finds the page gone to the device is made there.
TEST(a_remote_access_follows_the_page) {
  UnifiedMemorySpec spec = logged_spec();
  spec.remote = "always";
  spec.remote_threshold = 1;
  Machine machine(spec);
  // Both ask for the page at once and are told that it is remote; a write of another brings it meanwhile.
  StandInSm& a = machine.add_sm({{at(0, 0)}, {at(4, 0, true)}});
  StandInSm& b = machine.add_sm({{at(0, 0)}});
  machine.run();
  check(a.outcomes[0][0].done > 0 && a.outcomes[1][0].done > 0 && b.outcomes[0][0].done > 0, "all are done");
}

TEST(the_same_on_several_threads) {
  const auto statistics = [](std::uint32_t threads) {
    UnifiedMemorySpec spec = logged_spec();
    spec.capacity = 4 * kMib;
    Machine machine(spec, {16 * kMib});
    for (std::uint64_t sm = 0; sm < 4; ++sm) {
      std::vector<std::vector<Access>> sequences(8);
      for (std::uint64_t i = 0; i < 400; ++i)
        sequences[i % 8].push_back(at((i * 2654435761u + sm * 977) % 4096 * 4, 0, i % 3 == 0));
      machine.add_sm(sequences);
    }
    machine.add_host({step(Step::host_write, 0, 3000, 1), step(Step::prefetch_to_device, 5000, 5000, 1)});
    machine.run(threads);
    return machine.simulation.statistics().value;
  };
  const auto one = statistics(1);
  check(one == statistics(2), "two threads");
  check(one == statistics(4), "four threads");
}

// What was freed is gone from TLBs, and its frames are free.
TEST(freed_memory_leaves_nothing) {
  UnifiedMemorySpec spec = logged_spec();
  spec.capacity = 2 * kMib;
  Machine machine(spec, {2 * kMib});
  machine.add_host({step(Step::prefetch_to_device, 0, 2048, 0)});
  StandInSm& sm = machine.add_sm({{at(0, 1)}, {at(0, 3)}});
  RunOptions options;
  options.until = 2 * kMillisecond;
  machine.simulation.run(options);
  machine.uvm->free(kBase);
  machine.uvm->allocate(kBase, 2 * kMib, "again");
  machine.run();
  check(sm.outcomes[1][0].faulted, "the old translation is forgotten");
  check_equal(machine.uvm->driver_statistics().pages_evicted.value(), 0, "there was room");
  check_equal(machine.uvm->allocations()[0].statistics.faults, 1, "faults of the new allocation");
}

TEST(memory_in_use_is_not_freed) {
  for (const Time until : {50 * nanosecond, 20 * microsecond}) {  // in its walk, in the driver's hands
    Machine machine(logged_spec());
    machine.add_sm({reads({0})});
    RunOptions options;
    options.until = until;
    machine.simulation.run(options);
    manyscale::test::check_refused<SimulationError>([&] { machine.uvm->free(kBase); }, "wait for the device");
    machine.run();
    machine.uvm->free(kBase);
    check(!machine.uvm->ranges()->contains(kBase), "afterwards it is");
  }
}

TEST(the_log_is_bounded) {
  UnifiedMemorySpec spec = logged_spec();
  spec.log_rows = 3;
  Machine machine(spec);
  machine.add_sm({reads({0, 64, 128})});
  machine.run();
  check_equal(static_cast<std::int64_t>(machine.uvm->log().size()), 3, "rows");
  check_equal(machine.uvm->lost_log_rows(), 9, "rows that found no room");
}

}  // namespace
