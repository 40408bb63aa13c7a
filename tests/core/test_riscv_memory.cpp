// SPDX-License-Identifier: Apache-2.0
// The address space of a process: mappings, permissions, limits and shared segments.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cpu/virtual_memory/address_space.hpp"
#include "test_checks.hpp"

using namespace manyscale::cpu;
using namespace manyscale::test;

namespace {

using u64 = std::uint64_t;
constexpr std::uint8_t read_write = Permission::read | Permission::write;
constexpr u64 start = 0x100000, page = page_bytes;

TEST(pages_are_made_when_touched) {
  AddressSpace space(0, u64{1} << 30);
  check(space.map(start, u64{1} << 37, read_write), "a large mapping");
  check_equal(space.resident_bytes(), 0, "costs nothing");
  const u64 value = 0x0123456789abcdef;
  check(space.write(start + page - 3, &value, 8), "a write across pages");
  check_equal(space.resident_bytes(), 2 * page, "makes two pages");
  u64 found = 0;
  check(space.read(start + page - 3, &found, 8) && found == value, "and is read back");
  check(space.host(start + 2, Permission::execute) == nullptr, "not executable");
  check(space.host(start - 1, Permission::read) == nullptr, "not mapped");
  check(!space.exhausted(), "no limit was reached");
  check(space.read(start + 5 * page, &found, 8) && found == 0, "untouched memory is zero");
}

TEST(permissions_hold) {
  AddressSpace space(0, 1 << 20);
  space.map(start, 4 * page, read_write);
  const std::vector<char> text(4 * page, 'a');
  check(space.write(start, text.data(), text.size()), "all writable");
  const u64 version = space.version();
  check(space.protect(start + page, page, Permission::read), "the second becomes read-only");
  check(space.version() != version, "which is a new version");
  check(!space.write(start, "bb", 2 * page - 1), "a write that reaches it is refused");
  char first = 0;
  space.read(start, &first, 1);
  check(first == 'a', "and has no effect");
  check(space.allows(start, 4 * page, Permission::read), "all can be read");
  check(!space.allows(start, 4 * page, Permission::write), "not all can be written");
  check(space.copy_in(start + page, "loader", 6), "loaders may write");
  check(!space.protect(start + 3 * page, 2 * page, read_write), "a hole cannot be protected");
  const u64 code = space.code_version();
  space.protect(start, page, Permission::read | Permission::execute);
  check(space.code_version() != code, "executable pages change the code");
}

TEST(unmapping_frees_and_zeroes) {
  AddressSpace space(0, 4 * page);
  space.map(start, 4 * page, read_write);
  for (u64 i = 0; i < 4; ++i) space.write(start + i * page, "x", 1);
  check_equal(space.resident_bytes(), 4 * page, "full");
  space.map(start + 8 * page, page, read_write);
  check(!space.write(start + 8 * page, "x", 1) && space.exhausted(), "the limit is named");
  check(!space.write(start + 9 * page, "x", 1) && !space.exhausted(), "a wrong address is not the limit");
  check(space.unmap(start + page, 2 * page), "the middle goes");
  check(
      space.host(start + page, Permission::read) == nullptr && space.host(start, Permission::read) != nullptr,
      "only the middle");
  check(space.write(start + 8 * page, "x", 1), "there is room again");
  space.map(start + page, page, read_write);
  char found = 1;
  check(space.read(start + page, &found, 1) && found == 0, "a page used before is zero");
  check(space.discard(start, page) && space.read(start, &found, 1) && found == 0, "a discarded page is zero");
}

TEST(ranges_outside_are_refused) {
  AddressSpace space(0, 1 << 20);
  check(!space.map(virtual_limit - page, 2 * page, read_write), "beyond user space");
  check(!space.map(start, ~u64{0}, read_write), "too large");
  check(!space.map(start + 1, page, read_write), "not at a page");
  check(!space.map(start, 0, read_write), "empty");
  check(space.host(~u64{0}, Permission::read) == nullptr, "the last byte");
  check(!space.read(~u64{0} - 3, nullptr, 8), "around the end");
  check(!space.allows(~u64{0} - 3, 8, 0), "around the end");
}

TEST(free_ranges_are_found) {
  AddressSpace space(0, 1 << 20);
  const u64 top = start + 100 * page;
  check_equal(space.find_free(2 * page, top), top - 2 * page, "the highest");
  space.map(top - 3 * page, 2 * page, read_write);
  check_equal(space.find_free(page, top), top - page, "above the mapping");
  check_equal(space.find_free(page + 1, top), top - 5 * page, "below it");
  check_equal(space.find_free(virtual_limit, virtual_limit), 0, "none is so large");
}

TEST(moved_pages_keep_their_contents) {
  AddressSpace space(2, 1 << 20);
  space.map(start, 3 * page, read_write);
  space.write(start + page + 5, "here", 5);
  const u64 resident = space.resident_bytes();
  check(space.move(start + page, start + 10 * page, page), "moved");
  check(space.read_string(start + 10 * page + 5, 10) == "here", "contents");
  check(space.host(start + page, Permission::read) == nullptr, "not at the old address");
  check_equal(space.physical(start + 10 * page), u64{3} << 40 | (start + 10 * page), "where caches see it");
  check_equal(space.resident_bytes(), resident, "no more pages");
  check(!space.move(start, start + page, 2 * page), "overlapping ranges are refused");
}

TEST(segments_are_shared) {
  auto segment = std::make_shared<SharedSegment>(7, 3 * page);
  AddressSpace first(0, 1 << 20), second(1, 1 << 20);
  first.map(start, 3 * page, read_write, segment);
  second.map(start + 64 * page, 2 * page, Permission::read, segment, page);
  first.write(start + page, "shared", 7);
  check(second.read_string(start + 64 * page, 20) == "shared", "what one writes the other reads");
  check_equal(first.physical(start + page + 1), u64{0xff07} << 40 | (page + 1), "one address for the caches");
  check_equal(second.physical(start + 64 * page + 1), u64{0xff07} << 40 | (page + 1), "seen by both");
  check_equal(first.physical(start + 2 * page), u64{0xff07} << 40 | 2 * page, "also untouched");
  AddressSpace third(2, 1 << 20);
  third.map(start, 8 * page, read_write, segment);
  check(third.host(start + 3 * page, Permission::read) == nullptr, "nothing is behind its end");
  segment->resize(page + 2);
  check(second.read_string(start + 64 * page, 20) == "sh", "what is cut off is zero");
}

TEST(strings_end) {
  AddressSpace space(0, 1 << 20);
  space.map(start, page, read_write);
  const std::string text(page, 'a');
  space.write(start, text.data(), page);
  check(!space.read_string(start, 2 * page).has_value(), "no end before the end of memory");
  check(!space.read_string(start, 10).has_value(), "longer than asked for");
  space.map(start + page, page, read_write);
  check(space.read_string(start, 2 * page) == text, "across pages");
}

}  // namespace
