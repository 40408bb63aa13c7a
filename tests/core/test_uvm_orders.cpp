// SPDX-License-Identifier: Apache-2.0
// The order of last uses and the access counters, against what they stand for, done the slow way; and dense
// numbers of managed pages.
#include <algorithm>
#include <vector>

#include "engine/random.hpp"
#include "test_uvm.hpp"

using namespace manyscale;
using namespace manyscale::gpu;
using namespace manyscale::gpu::test;

namespace {

void compare_with_a_list(double share) {
  constexpr std::uint32_t kItems = 60;
  Random random(9, 1);
  RecencyOrder order(share);
  order.grow(kItems);
  std::vector<std::uint32_t> reference;
  for (int step = 0; step < 5000; ++step) {
    const auto item = static_cast<std::uint32_t>(random.below(kItems));
    std::erase(reference, item);
    if (random.below(3) == 0) {
      order.remove(item);
    } else {
      order.use(item);
      reference.push_back(item);
    }
    std::vector<std::uint32_t> found;
    for (std::uint32_t i = order.oldest(); i != kNone; i = order.newer(i)) found.push_back(i);
    check(found == reference && order.size() == reference.size(), "the order of last uses");
    const auto reserved = static_cast<std::size_t>(static_cast<double>(reference.size()) * share);
    const std::uint32_t expected = reserved < reference.size() ? reference[reserved] : kNone;
    check_equal(order.oldest_unreserved(), expected, "the oldest that is not reserved");
    for (std::size_t i = 0; i < reference.size(); ++i)
      check(order.reserved(reference[i]) == (i < reserved), "which are reserved");
  }
}

TEST(counters_keep_proportions_when_full) {
  AccessCounters counters;
  counters.grow(2);
  counters.count(0, 100);
  counters.count(1, (1u << 27) - 1);
  check_equal(counters.accesses(1), (1 << 27) - 1, "as many as fit");
  counters.count(1, 1);
  check_equal(counters.accesses(0), 50, "all are halved");
  check_equal(counters.accesses(1), (1 << 26), "half, and one more");
  counters.count(1, ~std::uint32_t{0});
  check_equal(counters.accesses(1), (1 << 27) - 1, "no more than fit");
  for (int i = 0; i < 31; ++i) counters.count_round_trip(0);
  check_equal(counters.round_trips(0), 31, "round trips");
  counters.count_round_trip(0);
  check_equal(counters.round_trips(0), 16, "halved, and one more");
  check_equal(counters.accesses(0), 25, "accesses do not suffer");
}

// Allocations come and go in any order and anywhere; numbers stay dense and lead back to addresses.
TEST(numbers_of_pages_are_dense) {
  Random random(4, 2);
  ManagedRanges ranges;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> live;  // address and rounded bytes
  for (int step = 0; step < 400; ++step) {
    if (random.below(3) == 0 && !live.empty()) {
      const std::size_t chosen = random.below(live.size());
      check(ranges.remove(live[chosen].first), "an allocation is removed");
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(chosen));
    } else {
      const std::uint64_t address = kBase + random.below(300) * kBlockBytes;
      const std::uint64_t bytes = 1 + random.below(5 * kMib);
      const std::uint64_t rounded = managed_bytes(bytes);
      const bool taken = std::ranges::any_of(live, [&](const auto& other) {
        return address < other.first + other.second && other.first < address + rounded;
      });
      if (taken) continue;
      ranges.add(address, bytes, "");
      live.emplace_back(address, rounded);
    }
    std::vector<PageIndex> numbers;
    for (const auto& [address, rounded] : live) {
      check(ranges.contains(address) && ranges.contains(address + rounded - 1), "all of it is managed");
      check(ranges.find(address + rounded - 1)->address == address, "the allocation around an address");
      for (std::uint64_t at = address; at < address + rounded; at += kChunkBytes) {
        const PageIndex page = ranges.page_of(at + 5);
        check(ranges.address_of(page) == at, "a number leads back to its address");
        numbers.push_back(page);
      }
    }
    std::ranges::sort(numbers);
    check(std::ranges::adjacent_find(numbers) == numbers.end(), "no number is given twice");
    check(ranges.blocks() <= 300, "numbers are used again");
    check(!ranges.contains(kBase - 1) && !ranges.contains(0) && !ranges.contains(~std::uint64_t{0}),
          "other addresses are not managed");
  }
  // The end of a block that is smaller than 2 MiB is not managed.
  ManagedRanges one;
  one.add(kBase, 2 * kMib + 100, "");
  check(one.contains(kBase + 2 * kMib + 64 * kKib - 1) && !one.contains(kBase + 2 * kMib + 64 * kKib),
        "64 KiB of the second block");
  check(one.page_of(kBase + 3 * kMib) == kNoPage, "no number for what is not managed");
}

TEST(frames_are_counted_by_block) {
  Frames frames(1024, Frames::Unit::block);
  frames.grow(3);
  frames.set_size(2, 64);
  check_equal(frames.wanted(0, 1), 512, "the first page takes the block");
  frames.take(0, 1);
  check_equal(frames.free(), 512, "a block is left");
  check_equal(frames.wanted(0, 100), 0, "more pages of it take nothing");
  frames.take(0, 1);
  frames.take(2 * kPagesPerBlock, 16);
  check_equal(frames.free(), 512 - 64, "a small block takes its size");
  check_equal(frames.fitting(kPagesPerBlock, 4), 0, "a whole block does not fit");
  frames.will_leave(0);
  check_equal(frames.leaving(), 0, "one page stays");
  frames.will_leave(0);
  check_equal(frames.leaving(), 512, "both leave");
  frames.leave(0);
  check_equal(frames.free(), 512 - 64, "one has left");
  frames.leave(0);
  check_equal(frames.free(), 1024 - 64, "both have left");
  check_equal(frames.fitting(kPagesPerBlock, 4), 4, "a block fits");
}

// Blocks 0 and 1 are whole, 2 to 4 have 256 KiB, 1 MiB and 1 MiB: 36 chunks of 64 KiB, of which a root chunk
// holds 32.
TEST(root_chunks_are_shared_by_small_blocks) {
  RootChunks roots;
  roots.grow(5);
  for (const auto& [block, pages] : {std::pair{0U, 512U}, {1U, 512U}, {2U, 64U}, {3U, 256U}, {4U, 256U}})
    roots.set_size(block, pages);
  const auto first = [](BlockIndex block) { return block * kPagesPerBlock; };
  const auto bring = [&](PageIndex page, std::uint32_t count) {
    roots.take(page, count);
    roots.arrive(page, count);
  };
  check_equal(roots.wanted(first(0), 1), 1U, "a page of a whole block takes a root chunk");
  bring(first(0), 1);
  check_equal(roots.wanted(first(0) + 100, 1), 0U, "others of it are in it");
  bring(first(2), 64);
  check_equal(roots.used(), 2U, "a small block takes another");
  check_equal(roots.wanted(first(3), 256), 0U, "20 of 32 chunks are used then");
  bring(first(3), 256);
  check_equal(roots.wanted(first(4), 12 * 16), 0U, "12 fit");
  check_equal(roots.wanted(first(4), 12 * 16 + 1), 1U, "13 do not");
  bring(first(4), 1);
  check_equal(roots.used(), 2U, "all small blocks are in one");

  std::vector<ChunkIndex> found;
  const auto shared = roots.newer(roots.oldest());
  roots.for_chunks(shared, [&](ChunkIndex chunk) { found.push_back(chunk / kChunksPerBlock); });
  check_equal(static_cast<std::int64_t>(found.size()), 21, "4 + 16 + 1 chunks leave together");
  check(found.front() == 2 && found[4] == 3 && found.back() == 4, "of all three blocks, in order");

  // Its free slots are not used while it is evicted.
  roots.begin_eviction(shared);
  check_equal(roots.wanted(first(4) + 16, 1), 1U, "an evicted root chunk has no free slot");
  for (const auto& [block, pages] : {std::pair{2U, 64U}, {3U, 256U}, {4U, 1U}})
    for (PageIndex page = first(block); page < first(block) + pages; ++page) roots.will_leave(page);
  check_equal(roots.leaving(), 1U, "one will be free");
  for (const auto& [block, pages] : {std::pair{2U, 64U}, {3U, 256U}, {4U, 1U}})
    for (PageIndex page = first(block); page < first(block) + pages; ++page) roots.leave(page);
  check_equal(roots.used(), 1U, "it is free");
  check_equal(roots.leaving(), 0U, "nothing is left to leave");
}

// Pages that come renew the root chunk of a whole block; a shared one only if they take more of it.
TEST(shared_root_chunks_are_as_old_as_what_was_taken_last) {
  RootChunks roots;
  roots.grow(3);
  roots.set_size(0, 512);
  roots.set_size(1, 64);
  roots.set_size(2, 512);
  const PageIndex small = kPagesPerBlock, other = 2 * kPagesPerBlock;
  roots.take(small, 1);
  roots.take(0, 1);
  const RootChunks::Root shared = roots.oldest();
  const RootChunks::Root whole = roots.newer(shared);
  roots.take(small + 1, 1);
  check_equal(roots.oldest(), shared, "a page in 64 KiB that it has does not make it younger");
  roots.take(small + kPagesPerChunk, 1);
  check_equal(roots.oldest(), whole, "further 64 KiB do");
  roots.take(1, 1);
  check_equal(roots.oldest(), shared, "any page makes a whole block younger");
  check(roots.busy(shared), "its pages are on their way");
  roots.arrive(small, 2);
  roots.arrive(small + kPagesPerChunk, 1);
  check(!roots.busy(shared), "they have come");
  roots.give_back(small);
  roots.give_back(small + 1);
  roots.give_back(small + kPagesPerChunk);
  check_equal(roots.oldest(), whole, "an empty one is free");
  roots.take(other, 1);
  check_equal(roots.used(), 2U, "and used again");
}

TEST(order_is_that_of_last_uses) {
  for (const double share : {0.0, 0.2, 0.9}) compare_with_a_list(share);
}

}  // namespace
