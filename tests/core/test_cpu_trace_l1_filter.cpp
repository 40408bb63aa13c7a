// SPDX-License-Identifier: Apache-2.0
// Which accesses of a recorded program are certain to hit an L1 cache.
#include "cpu/trace/l1_filter.hpp"
#include "test_checks.hpp"

using namespace manyscale::cpu;
using namespace manyscale::test;

namespace {

constexpr std::uint64_t line = 64, window = 128;

Record access(InstructionClass kind, std::uint64_t address, std::uint16_t thread = 0, std::uint8_t size = 8) {
  Record record;
  record.kind = kind;
  record.address = address;
  record.thread = thread;
  record.size = size;
  return record;
}

TEST(lines_hit_until_two_others_came_to_their_set) {
  L1Filter lines(4096, line, window);  // 32 sets
  check_equal(static_cast<std::int64_t>(lines.bytes()), 4096, "bytes");
  check(!lines.touch(access(InstructionClass::load, 0), 0, 0, false).is_hit, "the first access does not hit");
  const FilterResult second = lines.touch(access(InstructionClass::load, 8), 0, 10, false);
  check(second.is_hit, "the second to the line is");
  check_equal(second.fill, 10, "and may wait for the first");
  check_equal(lines.touch(access(InstructionClass::load, 8), 0, window, false).fill, 0, "but not for long");
  lines.touch(access(InstructionClass::load, 32 * line), 0, 200, false);
  check(lines.touch(access(InstructionClass::load, 0), 0, 201, false).is_hit, "a set holds two lines");
  lines.touch(access(InstructionClass::load, 64 * line), 0, 202, false);
  check(!lines.touch(access(InstructionClass::load, 0), 0, 203, false).is_hit,
        "three have not, however often the first was touched");
  check(!lines.touch(access(InstructionClass::load, 64 * line + 60), 0, 204, false).is_hit,
        "what crosses lines does not hit");
  check(!lines.touch(access(InstructionClass::load, 64 * line), 1, 205, false).is_hit,
        "nor what another stream touched");
}

TEST(stores_wait_in_their_queue) {
  L1Filter lines(4096, line, window);
  check(!lines.touch(access(InstructionClass::store, 0), 0, 0, false).is_hit, "the first store does not hit");
  check(!lines.touch(access(InstructionClass::store, 8), 0, 1, false).is_hit,
        "nor the next: the line may be on its way");
  check(!lines.touch(access(InstructionClass::load, 16), 0, 2, false).is_hit, "nor the first load");
  const FilterResult load = lines.touch(access(InstructionClass::load, 8), 0, 5, false);
  check(load.is_hit, "the second load is");
  check_equal(load.store, 4, "and takes its data from a store");
  check_equal(load.fill, 3, "and its line from the first load");
  check(lines.touch(access(InstructionClass::store, 8), 0, window, false).is_hit,
        "a store long after the first is");
}

// Where stores are few, those behind one that misses do not fill their queue.
TEST(few_stores_hit) {
  L1Filter lines(8192, 64, window, 2);
  constexpr std::uint64_t apart = window / 2;
  check(!lines.touch(access(InstructionClass::store, 0), 0, 0, false).is_hit, "the first store does not hit");
  check(lines.touch(access(InstructionClass::store, 8), 0, apart, false).is_hit,
        "the second within the window is");
  check(lines.touch(access(InstructionClass::store, 16), 0, 2 * apart, false).is_hit,
        "so is one after the window");
  check(!lines.touch(access(InstructionClass::store, 64), 0, 2 * apart + 1, false).is_hit,
        "one to another line is not");
  check(!lines.touch(access(InstructionClass::store, 72), 0, 2 * apart + 2, false).is_hit,
        "nor one close behind it");
}

TEST(other_threads_take_lines) {
  L1Filter lines(4096, line, window);
  lines.touch(access(InstructionClass::load, 0), 0, 0, true);
  lines.touch(access(InstructionClass::load, 0, 1), 1, 0, true);
  check(lines.touch(access(InstructionClass::load, 0), 0, 1, true).is_hit,
        "readers do not disturb each other");
  lines.touch(access(InstructionClass::store, 0, 1), 1, 1, true);
  check(!lines.touch(access(InstructionClass::load, 0), 0, 2, true).is_hit, "a writer takes the line");
  for (std::uint64_t i = 3; i < 6; ++i) {
    lines.touch(access(InstructionClass::store, 0, static_cast<std::uint16_t>(i % 2)), i % 2 == 0 ? 0 : 1, i,
                true);
  }
  check(!lines.touch(access(InstructionClass::store, 0, 1), 1, 500, true).is_hit,
        "of what is fought over, nothing hits");
}

TEST(none_of_no_cache) {
  L1Filter lines(0, line, window);
  lines.touch(access(InstructionClass::load, 0), 0, 0, false);
  check(!lines.touch(access(InstructionClass::load, 0), 0, 1, false).is_hit, "nothing hits");
}

}  // namespace
