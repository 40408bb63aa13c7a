// SPDX-License-Identifier: Apache-2.0
// What leaves a full memory, policy by policy, one behaviour per test.
#include "test_uvm.hpp"

using namespace manyscale;
using namespace manyscale::gpu;
using namespace manyscale::gpu::test;

namespace {

constexpr auto kToDevice = RangeCommandKind::prefetch_to_device;
constexpr Time kMillisecond = 1000 * microsecond;

UnifiedMemorySpec with(const std::string& eviction, std::uint64_t capacity,
                       const std::string& prefetcher = "none") {
  UnifiedMemorySpec spec = logged_spec();
  spec.eviction = eviction;
  spec.capacity = static_cast<std::int64_t>(capacity);
  spec.prefetcher = prefetcher;
  spec.recency = "access";
  return spec;
}

// An access at an offset in KiB, at a time in milliseconds.
Access at(std::uint64_t offset_kib, Time milliseconds, bool write = false) {
  return {kBase + offset_kib * kKib, write, milliseconds * kMillisecond};
}

// The first bytes of the allocation are brought to the device by a command, then accesses are made; what was
// written back.
struct Filled {
  Filled(const UnifiedMemorySpec& spec, std::uint64_t filled, std::vector<Access> accesses)
      : machine(spec, {8 * kMib}), sm(machine.add_sm({std::move(accesses)})) {
    machine.add_host({{kToDevice, kBase, filled, 0}});
    machine.run();
  }
  std::vector<Moved> written_back() const { return machine.moved(PageEventKind::to_host); }
  const UvmDriverStatistics& counted() const { return machine.uvm->driver_statistics(); }

  Machine machine;
  StandInSm& sm;
};

TEST(lru_block_evicts_the_block_used_least_recently) {
  const Filled run(with("lru_block", 4 * kMib), 4 * kMib, {at(0, 1), at(4096, 2)});
  check_moves(run.written_back(), {{2048, 2048}}, "block 1, since block 0 was used");
  check_equal(run.counted().pages_evicted.value(), 512, "pages");
}

// A driver that sees faults only takes the block that came first, used or not.
TEST(recency_can_be_that_of_migrations) {
  UnifiedMemorySpec spec = with("lru_block", 4 * kMib);
  spec.recency = "migration";
  const Filled run(spec, 4 * kMib, {at(0, 1), at(4096, 2)});
  check_moves(run.written_back(), {{0, 2048}}, "block 0");
}

// A page takes all of its block: the third block finds no room though two pages are there.
TEST(frames_can_be_whole_blocks) {
  UnifiedMemorySpec spec = with("lru_block", 4 * kMib);
  spec.frames = "block";
  Machine machine(spec, {8 * kMib});
  machine.add_sm({reads({0, 2048, 4096, 4100, 2052})});
  machine.run();
  check_moves(machine.moved(PageEventKind::to_host), {{0, 4}}, "the first page leaves for the third");
  check_equal(machine.uvm->driver_statistics().pages_faulted_in.value(), 5,
              "others of blocks that are there fit");
  spec.frames = "page";
  Machine by_page(spec, {8 * kMib});
  by_page.add_sm({reads({0, 2048, 4096, 4100, 2052})});
  by_page.run();
  check_equal(by_page.uvm->driver_statistics().pages_evicted.value(), 0, "five pages fit");
}

UnifiedMemorySpec with_roots(std::uint64_t capacity) {
  UnifiedMemorySpec spec = with("lru_block", capacity);
  spec.frames = "root";
  return spec;
}

// Room for two root chunks: two blocks of 256 KiB, at 2 and 4 MiB, share one and leave together; and it
// leaves although a page came to it after the block of 2 MiB at 0.
TEST(small_allocations_leave_with_the_root_chunk_they_share) {
  Machine machine(with_roots(4 * kMib), {2 * kMib, 256 * kKib, 256 * kKib, 2 * kMib});
  machine.add_sm({reads({2048, 4096, 0, 2052, 6144})});
  machine.run();
  check_moves(machine.moved(PageEventKind::to_host), {{2048, 8}, {4096, 4}}, "both small ones leave");
  // With 64 KiB more taken of it, it is younger than the block at 0.
  Machine renewed(with_roots(4 * kMib), {2 * kMib, 256 * kKib, 256 * kKib, 2 * kMib});
  renewed.add_sm({reads({2048, 4096, 0, 2112, 6144})});
  renewed.run();
  check_moves(renewed.moved(PageEventKind::to_host), {{0, 4}}, "the block at 0 leaves");
}

// Room for one root chunk, and two blocks in one fault batch: the first has to leave for the second
// before its SM was told, and comes again in a group of its own.
TEST(what_came_in_a_group_can_leave_in_it) {
  Machine machine(with_roots(2 * kMib), {4 * kMib});
  const StandInSm& sm = machine.add_sm({reads({0}), reads({2048})});
  machine.run();
  const UvmDriverStatistics& counted = machine.uvm->driver_statistics();
  check_moves(machine.moved(PageEventKind::to_device), {{0, 4}, {2048, 4}, {0, 4}}, "the first comes twice");
  check_moves(machine.moved(PageEventKind::to_host), {{0, 4}, {2048, 4}}, "each leaves for the other");
  check_equal(counted.fault_batches.value(), 2, "fault batches");
  check(sm.outcomes[1][0].done < sm.outcomes[0][0].done, "the second is served first");
}

// Three allocations of 1 MiB, of which two fit: SMs that go round all of them are served in the end, since
// prefetched pages do not evict the page that faulted before its translations are replayed.
TEST(small_allocations_that_do_not_fit_are_served_in_turn) {
  UnifiedMemorySpec spec = with_roots(2 * kMib);
  spec.prefetcher = "tree";
  Machine machine(spec, {kMib, kMib, kMib});
  std::vector<std::vector<Access>> sequences(24);
  for (std::uint64_t i = 0; i < sequences.size(); ++i)
    for (std::uint64_t step = 0; step < 6; ++step)
      sequences[i].push_back(at((i + step) % 3 * 2048 + i * 40 / 4 * 4 + step * 4, 0));
  const StandInSm& sm = machine.add_sm(sequences);
  machine.run();
  for (const auto& outcomes : sm.outcomes) check(outcomes.back().done > 0, "each sequence ends");
  check(machine.uvm->driver_statistics().fault_batches.value() <= 24 * 6,
        "a batch serves one access at least");
}

TEST(lru_page_evicts_a_page) {
  const Filled run(with("lru_page", 2 * kMib), 2 * kMib, {at(0, 1), at(4096, 2), at(4100, 3)});
  check_moves(run.written_back(), {{4, 4}, {8, 4}}, "pages 1 and 2, since page 0 was used");
}

TEST(sequential_local_evicts_64_kib) {
  const Filled run(with("sequential_local", 4 * kMib), 4 * kMib, {at(2048, 1), at(0, 2), at(4096, 3)});
  check_moves(run.written_back(), {{2112, 64}}, "the oldest 64 KiB of the older block");
}

// Chunks 0 and 1 leave alone; when chunk 2 leaves, less than half of the first 256 KiB is left, and chunk 3
// leaves too; after chunk 4, less than half of the first 512 KiB is left, and 5 to 7 leave.
TEST(tree_evicts_what_is_less_than_half_full) {
  const Filled run(with("tree", 2 * kMib, "sequential_local"), 2 * kMib,
                   {at(2048, 1), at(2112, 2), at(2176, 3), at(2240, 4), at(2304, 5)});
  check_moves(run.written_back(), {{0, 64}, {64, 64}, {128, 128}, {256, 256}}, "the mirrored tree");
}

TEST(random_evicts_any_page) {
  std::vector<Access> accesses;
  for (std::uint64_t i = 0; i < 20; ++i) accesses.push_back(at(4096 + 4 * i, 1 + static_cast<Time>(i)));
  const Filled run(with("random", 2 * kMib), 2 * kMib, accesses);
  const std::vector<Moved> found = run.written_back();
  check_equal(static_cast<std::int64_t>(found.size()), 20, "a page for each page");
  bool in_order = true;
  for (std::size_t i = 0; i < found.size(); ++i) {
    check_equal(static_cast<std::int64_t>(found[i].kib), 4, "a page");
    in_order = in_order && found[i].offset_kib == 4 * i;
  }
  check(!in_order, "not the order of use");
  check(found == Filled(with("random", 2 * kMib), 2 * kMib, accesses).written_back(), "the same in each run");
}

TEST(lfu_evicts_the_block_with_the_fewest_accesses) {
  const Filled run(with("lfu", 4 * kMib), 4 * kMib, {at(0, 1), at(4, 2), at(8, 3), at(2048, 4), at(4096, 5)});
  check_moves(run.written_back(), {{2048, 2048}}, "block 1, used last but once");
}

TEST(a_reserved_share_is_skipped) {
  UnifiedMemorySpec spec = with("lru_page", 2 * kMib);
  spec.reserved_share = 0.1;  // 51 of 512 pages
  check_moves(Filled(spec, 2 * kMib, {at(4096, 1)}).written_back(), {{51 * 4, 4}}, "the 52nd page");
  spec = with("lru_block", 8 * kMib);
  spec.reserved_share = 0.25;
  Machine machine(spec, {10 * kMib});
  machine.add_host({{kToDevice, kBase, 10 * kMib, 0}});
  machine.run();
  check_moves(machine.moved(PageEventKind::to_host), {{2048, 2048}}, "the second of four blocks");
  spec = with("sequential_local", 2 * kMib);
  spec.reserved_share = 0.1;
  check_moves(Filled(spec, 2 * kMib, {at(4096, 1)}).written_back(), {{192, 64}}, "after 48 of 51 pages");
}

TEST(a_share_is_kept_free) {
  UnifiedMemorySpec spec = with("lru_block", 4 * kMib);
  spec.free_share = 0.5;
  Filled run(spec, 4 * kMib, {at(4096, 2)});
  check_moves(run.written_back(), {{0, 2048}, {2048, 2048}}, "evicted ahead");
  // The fault of 2 ms finds free frames: it waits for no eviction. The first of all is cold and, in a new
  // block, takes 12.2 + 126 + 32 + 4 * 0.0585 + 1.76 us.
  const AccessOutcome& outcome = run.sm.outcomes[0][0];
  check_between(static_cast<double>(outcome.done - outcome.asked) / microsecond, 172.1, 172.6, "the fault");
}

TEST(clean_pages_can_be_dropped) {
  UnifiedMemorySpec spec = with("lru_block", 2 * kMib);
  spec.drop_clean = true;
  const Filled run(spec, 2 * kMib, {at(20, 1, true), at(40, 2), at(40, 3, true), at(4096, 4)});
  check_moves(run.written_back(), {{20, 4}, {40, 4}}, "pages that were written, one through the TLB");
  check_equal(run.counted().pages_dropped.value(), 510, "dropped");
  check_equal(run.machine.pages_at(PageLocation::host, kBase, 2 * kMib), 512, "all are on the host");
}

TEST(clean_pages_are_written_back_otherwise) {
  const Filled run(with("lru_block", 2 * kMib), 2 * kMib, {at(4096, 1)});
  check_moves(run.written_back(), {{0, 2048}}, "all");
  check_equal(run.counted().pages_dropped.value(), 0, "dropped");
}

// An eviction is over before the frame is used: time of the fault is that of the write-back more.
TEST(a_fault_waits_for_the_frame) {
  const auto fault_time = [](std::uint64_t filled) {
    UnifiedMemorySpec spec = with("lru_block", 2 * kMib);
    spec.cold_latency = 0;
    const Filled run(spec, filled, {at(4096, 1)});
    return run.sm.outcomes[0][0].done - run.sm.outcomes[0][0].asked;
  };
  const Time write_back = TransferTime(v100_spec())(2 * kMib, true);
  check_equal(fault_time(2 * kMib) - fault_time(kMib), write_back + 2 * kLinkLatency,
              "more, with a full memory");
}

TEST(the_prefetcher_changes_when_memory_is_full) {
  UnifiedMemorySpec spec = with("lru_block", 2 * kMib, "tree");
  spec.oversubscribed_prefetcher = "none";
  const Filled run(spec, 2 * kMib, {at(4096, 1), at(4160, 2), at(6144, 3)});
  const std::vector<Moved> found = run.machine.moved(PageEventKind::to_device);
  check_moves({found.begin() + 1, found.end()}, {{4096, 4}, {4100, 60}, {4160, 4}, {6144, 4}},
              "64 KiB before the eviction, then single pages");
}

TEST(pages_that_come_again_thrash) {
  const Filled run(with("lru_block", 2 * kMib), 2 * kMib, {at(4096, 1), at(0, 2), at(4096, 3)});
  check_equal(run.counted().thrashed_pages.value(), 1, "page 0 came again; block 2 never left for room");
  check_equal(run.machine.uvm->allocations()[0].statistics.thrashed_pages, 1, "of the allocation");
}

TEST(tlbs_forget_pages_that_leave) {
  for (const std::string mode : {"page", "all"}) {
    UnifiedMemorySpec spec = with("lru_block", 2 * kMib);
    spec.shootdown = mode;
    const Filled run(spec, 2 * kMib, {at(0, 1), at(4, 1), at(4096, 2), at(0, 3)});
    check(run.sm.outcomes[0][3].faulted, mode + ": the page is not found in the TLB");
    check(run.sm.forgotten >= 2, mode + ": translations were forgotten");
  }
}

// Pages that prefer the device leave only when there is no other.
TEST(preferred_pages_leave_last) {
  Machine machine(with("lru_block", 4 * kMib), {8 * kMib});
  machine.uvm->advise(kBase, 2 * kMib, Advice::prefer_device);
  machine.add_host({{kToDevice, kBase, 4 * kMib, 0}});
  machine.add_sm({{at(4096, 1)}});
  machine.run();
  check_moves(machine.moved(PageEventKind::to_host), {{2048, 2048}}, "the newer block");
}

TEST(other_allocations_take_room) {
  Machine machine(with("lru_page", 2 * kMib), {8 * kMib});
  machine.uvm->reserve(2 * kMib - 8 * kKib);
  machine.add_sm({reads({0, 4, 8})});
  machine.run();
  check_moves(machine.moved(PageEventKind::to_host), {{0, 4}}, "two frames are left");
  Machine full(with("lru_page", 2 * kMib), {8 * kMib});
  full.uvm->reserve(2 * kMib);
  full.add_sm({reads({0})});
  manyscale::test::check_refused<SimulationError>([&] { full.run(); }, "no room");
}

// A batch larger than the memory is served in parts: those who wait for a page hear of it before it leaves.
TEST(a_batch_may_be_larger_than_memory) {
  for (const std::string replay : {"batch", "arrival"}) {
    UnifiedMemorySpec spec = with("lru_page", 2 * kMib);
    spec.replay = replay;
    spec.batch_size = 100000;
    Machine machine(spec, {8 * kMib});
    std::vector<std::vector<Access>> sequences;
    for (std::uint64_t page = 0; page < 2048; ++page) sequences.push_back(reads({page * 4}));
    const StandInSm& sm = machine.add_sm(sequences);
    machine.run();
    for (const auto& outcomes : sm.outcomes) check(outcomes[0].done > 0, "each access is served");
    check_equal(machine.uvm->driver_statistics().pages_faulted_in.value(), 2048,
                replay + ": each page comes once");
  }
}

}  // namespace
