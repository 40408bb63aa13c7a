// SPDX-License-Identifier: Apache-2.0
// The pages that each prefetcher chooses for a page fault; both worked examples of Figure 2 of
// the report on UVM Smart in GPGPU-Sim 4.0, step by step.
#include <set>

#include "test_uvm.hpp"

using namespace manyscale;
using namespace manyscale::gpu;
using namespace manyscale::gpu::test;

namespace {

UnifiedMemorySpec with_prefetcher(const std::string& name) {
  UnifiedMemorySpec spec = logged_spec();
  spec.prefetcher = name;
  return spec;
}

// All transfers to the device after reads at these offsets in KiB, one after the other.
std::vector<Moved> transfers(const UnifiedMemorySpec& spec, std::uint64_t bytes,
                             std::initializer_list<std::uint64_t> offsets_kib) {
  Machine machine(spec, {bytes});
  machine.add_sm({reads(offsets_kib)});
  machine.run();
  return machine.moved(PageEventKind::to_device);
}

// 512 KiB: blocks 1, 3, 5 and 7 of 64 KiB, then 0, which makes three quarters of the left half valid and so
// brings 2; then five eighths of all are valid, which brings 4 and 6.
TEST(first_example_of_the_figure) {
  const UnifiedMemorySpec spec = with_prefetcher("tree");
  std::vector<Moved> expected;
  for (const std::uint64_t block : {1, 3, 5, 7}) {
    expected.push_back({block * 64, 4});
    expected.push_back({block * 64 + 4, 60});
  }
  check_moves(transfers(spec, 512 * kKib, {64, 192, 320, 448}), expected, "four blocks");
  for (const Moved& more : {Moved{0, 4}, Moved{4, 60}, Moved{128, 64}, Moved{256, 64}, Moved{384, 64}})
    expected.push_back(more);
  check_moves(transfers(spec, 512 * kKib, {64, 192, 320, 448, 0}), expected, "the fifth fault");
}

// Blocks 1 and 3, then 0, which brings 2; then 4, whose half of the tree follows since five eighths of all
// are valid: 256 KiB in a transfer of 4 KiB and one of 252 KiB.
TEST(second_example_of_the_figure) {
  const UnifiedMemorySpec spec = with_prefetcher("tree");
  std::vector<Moved> expected{{64, 4}, {68, 60}, {192, 4}, {196, 60}};
  check_moves(transfers(spec, 512 * kKib, {64, 192}), expected, "two blocks");
  for (const Moved& more : {Moved{0, 4}, Moved{4, 60}, Moved{128, 64}}) expected.push_back(more);
  check_moves(transfers(spec, 512 * kKib, {64, 192, 0}), expected, "the third fault");
  for (const Moved& more : {Moved{256, 4}, Moved{260, 252}}) expected.push_back(more);
  check_moves(transfers(spec, 512 * kKib, {64, 192, 0, 256}), expected, "the fourth fault");
}

// Exactly half is not more than half.
TEST(a_tree_waits_for_more_than_half) {
  check_moves(transfers(with_prefetcher("tree"), 256 * kKib, {0, 64}), {{0, 4}, {4, 60}, {64, 4}, {68, 60}},
              "half of 256 KiB");
}

// A page in the middle of a block comes first, then what is before and behind it.
TEST(the_page_that_faulted_comes_first) {
  check_moves(transfers(with_prefetcher("sequential_local"), 2 * kMib, {20}), {{20, 4}, {0, 20}, {24, 40}},
              "a fault at 20 KiB");
}

TEST(none_brings_single_pages) {
  check_moves(transfers(with_prefetcher("none"), 2 * kMib, {0, 4, 100}), {{0, 4}, {4, 4}, {100, 4}}, "none");
}

TEST(sequential_local_brings_64_kib) {
  check_moves(transfers(with_prefetcher("sequential_local"), 2 * kMib, {0, 64, 128, 256}),
              {{0, 4}, {4, 60}, {64, 4}, {68, 60}, {128, 4}, {132, 60}, {256, 4}, {260, 60}},
              "sequential-local");
}

// 512 KiB from the page on, into the next large page and no further than the allocation goes.
TEST(locality_aware_brings_512_kib) {
  const UnifiedMemorySpec spec = with_prefetcher("locality_aware");
  check_moves(transfers(spec, 4 * kMib, {100}), {{100, 4}, {104, 508}}, "locality-aware");
  check_moves(transfers(spec, 4 * kMib, {2048 - 100}), {{1948, 4}, {1952, 96}, {2048, 412}},
              "across large pages");
  check_moves(transfers(spec, 2 * kMib, {2048 - 100}), {{1948, 4}, {1952, 96}}, "to the end");
}

// One more page with each fault, from the same large page, drawn again each time and the same in each run.
TEST(random_brings_one_page_more) {
  const auto once = [] { return transfers(with_prefetcher("random"), 4 * kMib, {2048, 2056, 3000}); };
  const std::vector<Moved> found = once();
  check(found == once(), "the same pages in each run");
  check_equal(static_cast<std::int64_t>(found.size()), 6, "a page more with each fault");
  std::set<std::uint64_t> offsets;
  for (const Moved& move : found) {
    check_equal(static_cast<std::int64_t>(move.kib), 4, "a page");
    check(move.offset_kib >= 2048, "in the same large page");
    offsets.insert(move.offset_kib);
  }
  check_equal(static_cast<std::int64_t>(offsets.size()), 6, "different pages");
}

// Faults of one batch are joined: neighbours in one transfer, the rest of their blocks after them.
TEST(faults_of_a_batch_are_served_together) {
  Machine machine(with_prefetcher("sequential_local"), {2 * kMib});
  machine.add_sm({reads({0}), reads({4}), reads({8}), reads({64})});
  machine.run();
  check_moves(machine.moved(PageEventKind::to_device), {{0, 12}, {64, 4}, {12, 52}, {68, 60}}, "one batch");
  check_equal(machine.uvm->driver_statistics().fault_batches.value(), 1, "fault batches");
  check_equal(machine.uvm->gmmu_statistics().faults.value(), 4, "faults");
}

// Faults of the same page by several SMs are one fault.
TEST(faults_of_a_page_merge) {
  Machine machine(with_prefetcher("none"), {2 * kMib});
  for (int i = 0; i < 3; ++i) machine.add_sm({reads({0})});
  machine.run();
  const GmmuStatistics& counted = machine.uvm->gmmu_statistics();
  check_equal(counted.faults.value(), 1, "faults");
  check_equal(counted.merged_faults.value(), 2, "merged");
  check_equal(machine.uvm->driver_statistics().pages_faulted_in.value(), 1, "pages");
  check_equal(counted.fault_time.count(), 3, "waits");
}

// Of a half of the tree three quarters have faulted and come with the last, which would make five eighths of
// all. But prefetched pages do not count.
TEST(a_tree_counts_what_is_there_or_faulted) {
  Machine machine(with_prefetcher("tree"), {512 * kKib});
  machine.add_sm({reads({0}), reads({64}), reads({128}), reads({256})});
  machine.run();
  check_moves(machine.moved(PageEventKind::to_device),
              {{0, 4}, {64, 4}, {128, 4}, {256, 4}, {4, 60}, {68, 60}, {132, 124}, {260, 60}}, "a batch");
}

// A batch takes as many entries as it may, each SM's fault of a page being one: first two of one SM's. The
// others are dropped, and those that still wait fault again: two for the same page.
TEST(batches_are_bounded) {
  UnifiedMemorySpec spec = with_prefetcher("none");
  spec.batch_size = 2;
  Machine machine(spec, {2 * kMib});
  for (int i = 0; i < 2; ++i) machine.add_sm({reads({0}), reads({400}), reads({800})});
  machine.run();
  check_moves(machine.moved(PageEventKind::to_device), {{0, 4}, {400, 4}, {800, 4}}, "three pages");
  check_equal(machine.uvm->driver_statistics().fault_batches.value(), 2,
              "batches of pages that two SMs want");
  check_equal(machine.uvm->gmmu_statistics().faults.value(), 3, "faults, not counted again");
}

// The driver takes what is there when it looks, and the others later.
TEST(late_faults_come_in_a_later_batch) {
  const auto batches = [](Time interval) {
    UnifiedMemorySpec spec = with_prefetcher("none");
    spec.cold_latency = 0;
    spec.fetch_latency = 4 * microsecond;
    spec.fault_interval = interval;
    Machine machine(spec, {2 * kMib});
    machine.add_sm({reads({0}), reads({400}), reads({800})});
    machine.run();
    std::vector<std::uint32_t> pages;
    for (const PageEvent& event : machine.uvm->log())
      if (event.kind == PageEventKind::batch) pages.push_back(event.pages);
    return pages;
  };
  check(batches(microsecond) == std::vector<std::uint32_t>{3}, "faults that come at once");
  check(batches(10 * microsecond) == std::vector<std::uint32_t>{1, 2},
        "faults that come while one is served");
}

// With fixed handling each group takes its 45 us and its transfer, and nothing else.
TEST(fixed_handling_takes_its_time) {
  UnifiedMemorySpec spec = with_prefetcher("none");
  spec.handling = "fixed";
  spec.curve = "line";
  spec.transfer_latency = 1 * microsecond;
  spec.bandwidth = 4'096'000'000;  // a page in a microsecond
  spec.replay = "arrival";
  Machine machine(spec, {2 * kMib});
  const StandInSm& sm = machine.add_sm({reads({0, 4})});
  machine.run();
  // There, walk of 100 ns, driver and transfer, replay there and back, walk, back.
  const Time expected = 4 * kLinkLatency + 200 * nanosecond + 47 * microsecond;
  for (const AccessOutcome& outcome : sm.outcomes[0])
    check_equal(outcome.done - outcome.asked, expected, "a fault with fixed handling");
}

// Translations that find the page: there, a walk, back. Walks of one page at a time are shared; with one
// walker others wait.
TEST(walks_take_their_time) {
  UnifiedMemorySpec spec = with_prefetcher("tree");
  spec.walkers = 1;
  Machine machine(spec, {2 * kMib});
  std::vector<Access> first = reads({0});
  const Time later = 1000 * microsecond;
  StandInSm& a =
      machine.add_sm({first, {{kBase + 4 * kKib, false, later}}, {{kBase + 8 * kKib, false, later}}});
  StandInSm& b = machine.add_sm({{{kBase + 4 * kKib, false, later}}});
  machine.run();
  const Time alone = 2 * kLinkLatency + 100 * nanosecond;
  check_equal(a.outcomes[1][0].done - a.outcomes[1][0].asked, alone, "a walk");
  check_equal(b.outcomes[0][0].done - b.outcomes[0][0].asked, alone, "a walk that is shared");
  check_equal(a.outcomes[2][0].done - a.outcomes[2][0].asked, alone + 100 * nanosecond, "a walk that waits");
  check_equal(machine.uvm->gmmu_statistics().merged_walks.value(), 1, "shared walks");
  check(!a.outcomes[1][0].faulted, "a prefetched page does not fault");
  check_equal(machine.uvm->driver_statistics().prefetched_used.value(), 2, "prefetched pages that were used");
}

// A shared TLB answers in its own latency what it has.
TEST(a_shared_tlb_saves_walks) {
  UnifiedMemorySpec spec = with_prefetcher("none");
  spec.l2_tlb_entries = 1;
  spec.l2_tlb_latency = 7;
  Machine machine(spec, {2 * kMib});
  StandInSm& a = machine.add_sm({reads({0, 0, 4, 0})});
  a.forgetful = true;
  machine.run();
  const auto latency = [&](std::size_t i) { return a.outcomes[0][i].done - a.outcomes[0][i].asked; };
  check_equal(latency(1), 2 * kLinkLatency + 7 * nanosecond, "a hit");
  check_equal(latency(3), 2 * kLinkLatency + 107 * nanosecond, "a miss, since another page took the entry");
}

// With one MSHR the second page's fault is heard only when the first has been served.
TEST(page_faults_wait_for_an_mshr) {
  UnifiedMemorySpec spec = with_prefetcher("none");
  spec.outstanding_faults = 1;
  Machine machine(spec, {2 * kMib});
  StandInSm& sm = machine.add_sm({reads({0}), reads({400})});
  machine.run();
  check_equal(machine.uvm->driver_statistics().fault_batches.value(), 2, "one after the other");
  check(sm.outcomes[0][0].done > 0 && sm.outcomes[1][0].done > 0, "both are served");
}

// Pages that are nowhere come to be on the device without a transfer.
TEST(untouched_pages_need_no_transfer) {
  UnifiedMemorySpec spec = with_prefetcher("tree");
  spec.first_touch = true;
  Machine machine(spec, {2 * kMib});
  machine.add_sm({reads({0})});
  machine.run();
  check_equal(machine.uvm->driver_statistics().bytes_to_device.value(), 0, "bytes");
  check_equal(machine.uvm->driver_statistics().pages_populated.value(), 16, "pages");
  check_equal(machine.pages_at(PageLocation::device, kBase, 64 * kKib), 16, "on the device");
  check_equal(machine.pages_at(PageLocation::nowhere, kBase + 64 * kKib, 64 * kKib), 16, "still nowhere");
}

// In one shared memory nothing faults and nothing moves.
TEST(shared_memory_moves_nothing) {
  UnifiedMemorySpec spec = with_prefetcher("tree");
  spec.kind = "shared";
  Machine machine(spec, {2 * kMib});
  StandInSm& sm = machine.add_sm({reads({0, 900})});
  StandInHost& host = machine.add_host({{RangeCommandKind::host_write, kBase, 2 * kMib, 0}});
  machine.run();
  for (const AccessOutcome& outcome : sm.outcomes[0]) {
    check_equal(outcome.done - outcome.asked, 2 * kLinkLatency + 100 * nanosecond, "a walk");
    check(!outcome.faulted, "no fault");
  }
  check_equal(host.done[0], 0, "the host finds its pages");
  check_equal(machine.uvm->driver_statistics().bytes_to_device.value(), 0, "bytes");
}

TEST(transfers_follow_their_curves) {
  UnifiedMemorySpec spec = v100_spec();
  spec.curve = "arctangent";
  // bandwidth = 24/pi * atan(0.07292 * 4) GiB/s, so 4 KiB take 1.759 us
  check_between(static_cast<double>(TransferTime(spec)(4 * kKib, false)) / microsecond, 1.758, 1.760,
                "4 KiB");
  check_between(static_cast<double>(TransferTime(spec)(1024 * kKib, true)) / microsecond, 82.07, 82.09,
                "1 MiB");
  spec.curve = "line";
  spec.transfer_latency = 500 * nanosecond;
  spec.bandwidth = 1'000'000'000;
  check_equal(TransferTime(spec)(1000, false), 1500 * nanosecond, "a line");
  spec.curve = "measured";
  spec.times_to_device = "4KiB 100ns, 8KiB 200ns, 16KiB 1000ns";
  for (const auto& [kib, expected] : {std::pair{2, 50}, {4, 100}, {6, 150}, {8, 200}, {12, 600}, {24, 1800}})
    check_equal(TransferTime(spec)(static_cast<std::uint64_t>(kib) * kKib, false), expected * nanosecond,
                "between measured points, and beyond them");
  for (const char* wrong : {"", "4KiB 100ns", "4KiB 100ns, 4KiB 200ns", "4KiB 100us, 8KiB 200us",
                            "4KiB 100ns 8KiB 200ns", "0KiB 1ns, 4KiB 2ns"})
    manyscale::test::check_refused(
        [&] {
          UnifiedMemorySpec changed = spec;
          changed.times_to_device = wrong;
          TransferTime{changed};
        },
        "times_to_device");
  manyscale::test::check_refused(
      [&] {
        spec.curve = "bent";
        TransferTime{spec};
      },
      "arctangent");
}

TEST(wrong_words_are_refused) {
  const auto refused = [](const std::function<void(UnifiedMemorySpec&)>& change, const std::string& word) {
    UnifiedMemorySpec spec = v100_spec();
    change(spec);
    manyscale::test::check_refused([&] { UnifiedMemory memory(spec); }, word);
  };
  refused([](auto& spec) { spec.prefetcher = "psychic"; }, "locality_aware");
  refused([](auto& spec) { spec.eviction = "fifo"; }, "lru_block");
  refused([](auto& spec) { spec.kind = "dragon"; }, "discrete");
  refused([](auto& spec) { spec.handling = "rough"; }, "measured");
  refused([](auto& spec) { spec.remote = "perhaps"; }, "adaptive");
  refused([](auto& spec) { spec.replay = "never"; }, "arrival");
  refused([](auto& spec) { spec.shootdown = "half"; }, "page");
  refused([](auto& spec) { spec.host_granularity = 12288; }, "power of two");
  UnifiedMemory memory{v100_spec()};
  manyscale::test::check_refused([&] { memory.allocate(kBase + 4096, 100, ""); }, "2 MiB");
  manyscale::test::check_refused([&] { memory.allocate(kBase, 0, ""); }, "0 bytes");
  memory.allocate(kBase, 100, "a");
  manyscale::test::check_refused([&] { memory.allocate(kBase, 100, ""); }, "already");
  manyscale::test::check_refused([&] { memory.free(kBase + kBlockBytes); }, "begins");
  manyscale::test::check_refused([&] { memory.advise(kBase, kMib, Advice::read_mostly); }, "managed");
  memory.free(kBase);
  check(!memory.ranges()->contains(kBase), "freed memory is not managed");
}

}  // namespace
