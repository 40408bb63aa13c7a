// SPDX-License-Identifier: Apache-2.0
// Machine instructions: their parts, the schedule, how many registers operands take, and broken files.
#include <cstring>
#include <string>
#include <vector>

#include "gpu/sass/cubin.hpp"
#include "gpu/sass/special_registers.hpp"
#include "test_checks.hpp"

using namespace manyscale::sass;
using namespace manyscale::test;

namespace {

Instruction read(std::uint16_t architecture, std::uint64_t high, std::uint64_t low,
                 std::uint32_t offset = 0) {
  return decode(Words{low, high}, Architecture{architecture}, offset);
}

void expect_text(const Instruction& instruction, const std::string& expected) {
  check(text(instruction) == expected, text(instruction) + " instead of " + expected);
}

TEST(bits_of_words) {
  constexpr Words kWords{0x8000000000000001, 0x0123456789abcdef};
  check_equal(static_cast<std::int64_t>(kWords.bits(0, 1)), 1, "the first bit");
  check_equal(static_cast<std::int64_t>(kWords.bits(63, 5)), 0x1f, "bits of both words");
  check_equal(static_cast<std::int64_t>(kWords.bits(64, 8)), 0xef, "the second word");
  check(kWords.bits(0, 64) == kWords.low && kWords.bits(64, 64) == kWords.high, "whole words");
}

TEST(schedules) {
  // An IADD3 that waits for counter 2, five cycles before the next instruction, others may go first.
  const Instruction add = read(80, 0x004fca0007ffe0ff, 0x0000000300057810);
  expect_text(add, "IADD3 R5, R0, 0x3, RZ");
  check_equal(add.schedule.stall, 5, "stall");
  check(add.schedule.yield, "yield");
  check_equal(add.schedule.wait_mask, 4, "wait mask");
  check_equal(add.schedule.write_barrier, Schedule::kNoBarrier, "no write barrier");
  // A load that releases counter 2 when its result is there, and counter 0 when its address has been read.
  const Instruction load = read(80, 0x0000a2000c1e1900, 0x0000000404177981);
  expect_text(load, "LDG.E R23, [R4.64]");
  check_equal(load.schedule.write_barrier, 2, "write barrier");
  check_equal(load.schedule.read_barrier, 0, "read barrier");
}

TEST(operands) {
  const Instruction add = read(75, 0x000fc40007b5e00b, 0x00005c0015087a10);
  expect_text(add, "IADD3 R8, P2, P3, R21, c[0x0][0x170], R11");
  check_equal(add.operand_count, 8, "operands stand at their positions, shown or not");
  check(add.operands[0].written && add.operands[1].written && !add.operands[3].written, "destinations");
  check(add.operands[4].kind == OperandKind::constant && add.operands[4].value == 0x170, "a constant");
  check(!add.operands[6].shown && !add.operands[7].shown, "carries that are not taken are not shown");

  const Instruction branch = read(80, 0x000fc0000383ffff, 0xfffffff000007947, 0x70);
  expect_text(branch, "BRA 0x70");
  const Instruction far = read(90, 0x000fd80003800000, 0x0000000000400947, 0x100);
  expect_text(far, "@P0 BRA 0x210");
  check(far.guard == 0 && !far.guard_negated, "the guard");

  const Instruction special = read(75, 0x000e220000002100, 0x0000000000007919);
  expect_text(special, "S2R R0, SR_TID.X");
  check(special.operands[1].value == special_register("SR_TID.X"), "special registers have names");
}

// Registers that the operands of one instruction take, in their order.
void expect_counts(const Instruction& instruction, const std::vector<int>& expected) {
  for (std::size_t at = 0; at < expected.size(); ++at) {
    check_equal(instruction.operands[at].count, expected[at],
                text(instruction) + ", operand " + std::to_string(at));
  }
}

TEST(registers_of_operands) {
  expect_counts(read(75, 0x0000a8000c1e6d00, 0x00000004141c7981), {1, 4, 2});        // LDG.E.128, found first
  expect_counts(read(75, 0x000fc400078e0202, 0x000000040c147825), {2, 1, 1, 1, 2});  // IMAD.WIDE
  expect_counts(read(75, 0x0000a20000000014, 0x0000001c1a12722b), {2, 2, 2, 2});     // DFMA
  expect_counts(read(75, 0x0000620000201800, 0x00000002003e7310), {2, 1});           // F2F.F64.F32
  expect_counts(read(80, 0x000fe20000001804, 0x000000080808723c), {4, 4, 2, 4});     // HMMA.16816.F32
  expect_counts(read(75, 0x000fc6000001ff00, 0x0000000000047805), {2});              // CS2R
}

TEST(unknown_bits) {
  check(!read(80, 0, 0).known(), "zeros are no instruction");
  check(!read(60, 0x000fc40000000000, 0x0000000800077882).known(), "an older GPU's code is not read");
  check(mnemonic(read(80, ~std::uint64_t{0}, ~std::uint64_t{0})) == "unknown", "ones are no instruction");
}

TEST(broken_files) {
  const auto reading = [](std::string bytes) {
    return [bytes = std::move(bytes)] { read_cubin(std::as_bytes(std::span{bytes}), "file"); };
  };
  check_refused<CubinError>(reading(""), "file: this is no cubin");
  check_refused<CubinError>(reading(std::string(64, '\0')), "does not begin");
  std::string header(64, '\0');
  std::memcpy(header.data(),
              "\x7f"
              "ELF\x02\x01",
              6);
  check_refused<CubinError>(reading(header), "another kind of processor");
  header[18] = static_cast<char>(190);
  check_refused<CubinError>(reading(header), "table of sections");
  header[58] = 64;
  header[60] = 1;
  header[40] = 32;
  check_refused<CubinError>(reading(header), "cut off");
}

TEST(readable_texts) {
  check(readable("kernel") == "kernel" && readable("größe ∑ 𝛼") == "größe ∑ 𝛼", "text stays as it is");
  check(readable("a\xff"
                 "b") == "a?b" &&
            readable("\xc3") == "?",
        "other bytes become question marks");
  check(readable("\xed\xa0\x80") == "???" && readable("\xc0\xaf") == "??", "so do forbidden characters");
}

}  // namespace
