// SPDX-License-Identifier: Apache-2.0
// Records of executed instructions: producers, addresses as the caches see them, control flow, and where the
// stream halts.
#include <algorithm>
#include <string>
#include <vector>

#include "test_riscv.hpp"

using namespace manyscale::test;

namespace {

using u64 = std::uint64_t;
constexpr u64 code = TestProcess::code, data = TestProcess::data, base = u64{1} << 40;

struct Recorder {
  RecordRing ring{64};
  u64 end = 0;
  Producers producers;

  Stop run(TestProcess& process, u64 budget = 1000, bool past_marker = false) {
    return process.interpreter.record(process.hart, budget, ring, end, end + 64, producers, 3, past_marker);
  }
};

void check_producers(const Record& record, std::array<std::uint16_t, 3> expected, const std::string& what) {
  check(record.producers == expected, "producers of " + what + ": " + std::to_string(record.producers[0]) +
                                          ", " + std::to_string(record.producers[1]) + ", " +
                                          std::to_string(record.producers[2]));
}

TEST(producers_and_addresses) {
  TestProcess process({
      encode_i("addi", a0, zero, 5),                    // 0
      encode_i("fld", 1, a2, 8),                        // 1
      encode("fmadd.d", 2, 1, 1) | 1U << 27 | 7 << 12,  // 2: f2 = f1 * f1 + f1
      encode_s("fsd", 2, a2, 16),                       // 3
      encode_s("sw", a0, a2, 24),                       // 4
      encode("mul", a1, a0, a0),                        // 5
      encode_i("ld", zero, a2, 0),                      // 6
      encode("add", a0, zero, a1),                      // 7
      encode("ecall"),                                  // 8
  });
  process.hart.x[a2] = data;
  Recorder recorder;
  check(recorder.run(process) == Stop::system_call, "ends at the system call");
  check_equal(recorder.end, 9, "records");
  check_equal(process.hart.retired, 8, "the system call is not executed");
  const RecordRing& ring = recorder.ring;
  for (u64 i = 0; i < 9; ++i) {
    check_bits(ring[i].pc, base | (code + 4 * i), "pc");
    check_equal(ring[i].thread, 3, "thread");
  }
  check_producers(ring[0], {0, 0, 0}, "a constant");
  check(ring[0].kind == InstructionClass::integer && ring[0].flags == Trait::writes_integer, "addi's record");
  check(ring[1].kind == InstructionClass::load && ring[1].size == 8 && ring[1].format == 8, "fld's record");
  check_bits(ring[1].address, base | (data + 8), "fld's address");
  check_equal(ring[1].flags, Trait::writes_float, "fld's flags");
  check_producers(ring[2], {1, 1, 1}, "fmadd");
  check(ring[2].kind == InstructionClass::float_fused && ring[2].format == 8, "fmadd's record");
  check_producers(ring[3], {1, 0, 0}, "fsd: its data first");
  check_bits(ring[3].address, base | (data + 16), "fsd's address");
  check_producers(ring[4], {4, 0, 0}, "sw");
  check(ring[4].kind == InstructionClass::store && ring[4].size == 4 && ring[4].flags == 0, "sw's record");
  check_producers(ring[5], {5, 5, 0}, "mul");
  check_equal(ring[6].flags, 0, "a load to x0 takes no register");
  check_producers(ring[7], {0, 2, 0}, "add of x0");
  check(ring[8].kind == InstructionClass::system && ring[8].has(Trait::halts_stream),
        "the system call halts");
}

// A loop of two turns around a call; distances go over the ends of blocks.
TEST(control_flow) {
  TestProcess process({
      0x00c000ef,                     // 0x00 jal ra, +12
      encode_b("bne", a0, zero, -4),  // 0x04
      encode("ecall"),                // 0x08
      encode_i("addi", a0, a0, -1),   // 0x0c
      encode_i("jalr", zero, ra, 0),  // 0x10 ret
  });
  process.hart.x[a0] = 2;
  Recorder recorder;
  check(recorder.run(process) == Stop::system_call, "ends");
  struct Expected {
    u64 pc, address;
    InstructionClass kind;
    std::uint8_t flags;
    std::array<std::uint16_t, 3> producers;
  };
  const std::vector<Expected> expected = {
      {0x00, 0x0c, InstructionClass::jump, Trait::taken | Trait::call | Trait::writes_integer, {0, 0, 0}},
      {0x0c, 0, InstructionClass::integer, Trait::writes_integer, {0, 0, 0}},
      {0x10, 0x04, InstructionClass::indirect, Trait::taken | Trait::returns, {2, 0, 0}},
      {0x04, 0x00, InstructionClass::branch, Trait::taken, {2, 0, 0}},
      {0x00, 0x0c, InstructionClass::jump, Trait::taken | Trait::call | Trait::writes_integer, {0, 0, 0}},
      {0x0c, 0, InstructionClass::integer, Trait::writes_integer, {4, 0, 0}},
      {0x10, 0x04, InstructionClass::indirect, Trait::taken | Trait::returns, {2, 0, 0}},
      {0x04, 0x08, InstructionClass::branch, 0, {2, 0, 0}},
      {0x08, 0, InstructionClass::system, Trait::halts_stream, {0, 0, 0}},
  };
  check_equal(recorder.end, static_cast<std::int64_t>(expected.size()), "records");
  for (u64 i = 0; i < std::min<u64>(recorder.end, expected.size()); ++i) {
    const Record& found = recorder.ring[i];
    const std::string what = "record " + std::to_string(i);
    check_bits(found.pc, base | (code + expected[i].pc), "pc of " + what);
    if (found.is_control())
      check_bits(found.address, base | (code + expected[i].address), "target of " + what);
    check(found.kind == expected[i].kind, "kind of " + what);
    check_equal(found.flags, expected[i].flags, "flags of " + what);
    check_producers(found, expected[i].producers, what);
  }
}

TEST(halts_at_what_is_ordered) {
  TestProcess process({encode("amoadd.w", a0, a2, a1), encode("fence") | 0x0ff00000,
                       encode("add", a3, a0, a0), encode("ecall")});
  process.hart.x[a1] = 4;
  process.hart.x[a2] = data + 4;
  Recorder recorder;
  check(recorder.run(process) == Stop::ordered && recorder.end == 1, "halts at the atomic");
  check_bits(process.hart.pc, code, "which is not executed");
  check_equal(process.hart.retired, 0, "nor counted");
  const Record& atomic = recorder.ring[0];
  check(atomic.kind == InstructionClass::atomic && atomic.size == 4 && atomic.has(Trait::halts_stream) &&
            atomic.has(Trait::writes_integer),
        "its record");
  check_bits(atomic.address, base | (data + 4), "its address");
  check(process.interpreter.step(process.hart) == Stop::budget && recorder.end == 1,
        "step executes it without a record");
  std::uint32_t found = 0;
  process.memory.read(data + 4, &found, 4);
  check_equal(found, 4, "in memory");
  check(recorder.run(process) == Stop::ordered && recorder.ring[1].kind == InstructionClass::fence,
        "halts at the fence");
  process.interpreter.step(process.hart);
  check(recorder.run(process) == Stop::system_call, "goes on");
  check_producers(recorder.ring[2], {2, 2, 0}, "what uses the atomic's result");
  check_equal(process.hart.retired, 3, "instructions");
}

// However few records fit at a time, they are the same.
TEST(the_rings_end_is_kept) {
  const std::vector<std::uint32_t> words = {encode_i("addi", a0, a0, 1),  encode_s("sd", a0, a2, 0),
                                            encode_i("ld", a1, a2, 0),    encode("add", a3, a3, a1),
                                            encode_b("blt", a0, t0, -16), encode("ecall")};
  auto all = [&words](u64 room) {
    TestProcess process(words);
    process.hart.x[a2] = data;
    process.hart.x[t0] = 50;
    RecordRing ring(512);
    u64 end = 0;
    Producers producers;
    Stop stop = Stop::budget;
    while (stop == Stop::budget) {
      const u64 before = end;
      stop = process.interpreter.record(process.hart, ~u64{0}, ring, end, end + room, producers, 0);
      if (stop == Stop::budget)
        check_equal(end - before, static_cast<std::int64_t>(room), "the room is used");
    }
    check(stop == Stop::system_call && end == 251, "all records");
    std::vector<Record> records;
    for (u64 i = 0; i < end; ++i) records.push_back(ring[i]);
    return records;
  };
  const std::vector<Record> whole = all(512);
  for (const u64 room : {1, 2, 3, 7, 64}) {
    const std::vector<Record> found = all(room);
    const bool equal = std::equal(
        whole.begin(), whole.end(), found.begin(), found.end(), [](const Record& a, const Record& b) {
          return a.pc == b.pc && a.address == b.address && a.producers == b.producers && a.kind == b.kind &&
                 a.flags == b.flags;
        });
    check(equal, "the same records, " + std::to_string(room) + " at a time");
  }
}

TEST(recorded_and_plain_runs_agree) {
  const std::vector<std::uint32_t> words = {encode_i("addi", a0, a0, 7),
                                            encode("mul", a1, a0, a0),
                                            encode("xor", a3, a3, a1),
                                            encode_i("andi", t0, a1, 64),
                                            encode_b("beq", t0, zero, -16),
                                            encode_b("blt", a0, a2, -20),
                                            encode("ecall")};
  TestProcess plain(words), recorded(words);
  plain.hart.x[a2] = recorded.hart.x[a2] = 7 * 300;
  check(plain.interpreter.run(plain.hart, 100'000) == Stop::system_call, "plain");
  Recorder recorder;
  while (recorder.run(recorded) == Stop::budget) {
  }
  check(plain.hart.x == recorded.hart.x && plain.hart.pc == recorded.hart.pc &&
            plain.hart.retired == recorded.hart.retired,
        "same state");
}

}  // namespace
