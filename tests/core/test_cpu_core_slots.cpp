// SPDX-License-Identifier: Apache-2.0
// The widths and the reorder buffer of a core, each alone: which cycle a record gets, with compacted
// instructions and without.
#include "cpu/core/commit_slots.hpp"
#include "cpu/core/dispatch_slots.hpp"
#include "cpu/core/fetch_slots.hpp"
#include "cpu/core/reorder_buffer.hpp"
#include "test_checks.hpp"

using namespace manyscale;
using namespace manyscale::cpu;
using namespace manyscale::test;

namespace {

// Of a node with so many instructions compacted into it.
ElasticTiming compacted(std::uint8_t weight, CompactedBranches branches = {}) {
  ElasticTiming timing;
  timing.weight = weight;
  timing.branches = branches;
  return timing;
}

Cycle fetch(FetchSlots& slots, const Record& record = {}, const ElasticTiming& timing = {}) {
  slots.find_slot(record, timing);
  slots.take(record);
  return slots.cycle();
}

TEST(fetch_takes_its_width_and_no_more) {
  FetchSlots slots(4, 64);
  slots.restart(10);
  for (int i = 0; i < 4; ++i) check_equal(fetch(slots), 10, "one of the first four");
  check_equal(fetch(slots), 11, "the fifth");
  slots.end_cycle();
  check_equal(fetch(slots), 12, "behind a taken branch");
  slots.stall(3);
  slots.end_cycle();
  check_equal(fetch(slots), 16, "behind a misfetch of three cycles");
}

TEST(fetch_takes_its_bytes_and_no_more) {
  FetchSlots slots(8, 8);
  slots.restart(0);
  Record compressed;
  compressed.flags |= Trait::compressed;
  check_equal(fetch(slots), 0, "four bytes");
  check_equal(fetch(slots, compressed), 0, "two more");
  check_equal(fetch(slots), 1, "four do not fit any more");
}

TEST(compacted_instructions_take_fetch_slots_once) {
  FetchSlots slots(4, 64);
  slots.restart(0);
  const Record record;
  slots.find_slot(record, compacted(7));
  slots.find_slot(record, compacted(7));  // it waited for its line
  check_equal(slots.cycle(), 1, "the eighth of four a cycle");
  slots.take(record);
  check_equal(fetch(slots), 2, "the ninth");
}

TEST(compacted_branches_end_their_cycle) {
  FetchSlots slots(4, 64);
  slots.restart(0);
  // Three loops of two instructions, and one instruction behind the last branch.
  check_equal(fetch(slots, {}, compacted(7, {3, 1})), 3, "three cycles of two, then the record");
}

TEST(dispatch_counts_the_slots_of_a_cycle) {
  DispatchSlots slots(4);
  slots.take(20, 0);
  check_equal(slots.next(0).cycle, 20, "the second of its cycle");
  check_equal(slots.next(0).used, 1, "one slot is taken");
  const DispatchSlots::Slot behind = slots.next(6);
  check_equal(behind.cycle, 21, "behind six others");
  check_equal(behind.used, 3, "seven slots are one cycle and three");
  check_equal(behind.compacted, 21, "compacted instructions take the width");
  slots.take(20, 3);
  check_equal(slots.next(0).cycle, 21, "the cycle is full");
  check_equal(slots.next(0).compacted, 20, "nothing is compacted into it");
}

TEST(commit_takes_its_width_and_no_more) {
  CommitSlots slots(2);
  check_equal(slots.take(0, 5), 5, "when it is complete");
  check_equal(slots.take(0, 3), 5, "with an older one");
  check_equal(slots.take(0, 3), 6, "two a cycle");
  check_equal(slots.take(4, 3), 8, "compacted ones commit before it");
  check_equal(slots.take(4, 30), 30, "they completed while it did not");
}

TEST(the_reorder_buffer_frees_entries_in_order) {
  Window window(16);
  ReorderBuffer buffer(8, 4);
  const auto enter = [&](std::uint64_t number, std::uint8_t weight, Cycle committed) {
    window[number].reorder_entry = buffer.take(compacted(weight));
    window[number].committed = committed;
  };
  enter(0, 0, unknown);
  enter(1, 6, 50);
  check_equal(buffer.earliest(compacted(0), window, 2), unknown, "the oldest has not committed");
  window[0].committed = 40;
  check_equal(buffer.earliest(compacted(0), window, 2), 40, "one entry when the oldest has");
  check_equal(buffer.earliest(compacted(11), window, 2), 51,
              "what does not fit at once follows at full width");
}

}  // namespace
