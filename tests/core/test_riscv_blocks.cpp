// SPDX-License-Identifier: Apache-2.0
// Running programs: budgets, changed code, faults without effect, and markers.
#include <string>
#include <vector>

#include "test_riscv.hpp"

using namespace manyscale::test;

namespace {

using u64 = std::uint64_t;
constexpr u64 code = TestProcess::code, data = TestProcess::data;

// Counts a0 down to 0 and a1 up, with a store, a load and an indirect jump in each turn: 7 instructions.
std::vector<std::uint32_t> counting_loop() {
  return {
      encode_i("addi", a1, a1, 3),     encode_s("sd", a1, a2, 0),      encode_i("ld", a3, a2, 0),
      encode_i("addi", a0, a0, -1),    0x00000297 /* auipc t0, 0 */,   encode_i("jalr", zero, t0, 12),
      encode_i("slti", zero, zero, 0), encode_b("bne", a0, zero, -28), encode("ecall"),
  };
}

bool same(const Hart& a, const Hart& b) {
  return a.x == b.x && a.f == b.f && a.pc == b.pc && a.fcsr == b.fcsr && a.retired == b.retired;
}

TEST(any_budget_gives_the_same) {
  auto start = [](TestProcess& process) {
    process.hart.x[a0] = 40;
    process.hart.x[a2] = data;
  };
  std::vector<Hart> states;
  TestProcess stepped(counting_loop());
  start(stepped);
  while (true) {
    states.push_back(stepped.hart);
    const Stop stop = stepped.interpreter.step(stepped.hart);
    if (stop != Stop::budget) {
      check(stop == Stop::system_call, "stepping ends at the system call");
      break;
    }
  }
  // jalr goes to the branch three behind auipc, so the hint is never executed.
  check_equal(static_cast<std::int64_t>(states.size()), 40 * 7 + 1, "states");
  for (const u64 budget : {1, 2, 3, 5, 7, 11, 64, 100}) {
    TestProcess process(counting_loop());
    start(process);
    Stop stop = Stop::budget;
    while (stop == Stop::budget) {
      check(same(process.hart, states[process.hart.retired]),
            "state after " + std::to_string(process.hart.retired));
      const u64 before = process.hart.retired;
      stop = process.interpreter.run(process.hart, budget);
      if (stop == Stop::budget)
        check_equal(process.hart.retired - before, budget, "instructions of a budget");
    }
    check(stop == Stop::system_call && same(process.hart, states.back()),
          "the end with budget " + std::to_string(budget));
  }
}

TEST(long_runs_need_no_stack) {
  TestProcess process({encode_i("addi", a0, a0, 1), encode_b("bne", a0, zero, -4)});
  check(process.interpreter.run(process.hart, 20'000'000) == Stop::budget, "a long loop");
  check_bits(process.hart.x[a0], 10'000'000, "turns");
}

// Replaces the instruction at `code + 8` (a0 = 1) by one that makes a0 = 2; fence.i makes it count.
TEST(changed_code_is_seen) {
  const std::uint32_t one = encode_i("addi", a0, zero, 1), two = encode_i("addi", a0, zero, 2);
  TestProcess process({encode_s("sw", a1, a2, 12), encode("fence.i"), encode("ecall"), one, encode("ecall")});
  process.hart.pc = code + 12;
  process.interpreter.run(process.hart, 10);
  check_bits(process.hart.x[a0], 1, "before");
  process.hart.pc = code;
  process.hart.x[a1] = two;
  process.hart.x[a2] = code;
  process.interpreter.run(process.hart, 10);
  process.hart.pc = code + 12;
  process.interpreter.run(process.hart, 10);
  check_bits(process.hart.x[a0], 2, "after a store and fence.i");
  process.memory.copy_in(code + 12, &one, 4);
  process.hart.pc = code + 12;
  process.interpreter.run(process.hart, 10);
  check_bits(process.hart.x[a0], 1, "after a loader's write");
  const std::uint32_t three = encode_i("addi", a0, zero, 3);
  process.memory.write(code + 12, &three, 4);
  process.interpreter.drop_code();
  process.hart.pc = code + 12;
  process.interpreter.run(process.hart, 10);
  check_bits(process.hart.x[a0], 3, "after drop_code");
  process.memory.protect(code, page_bytes, Permission::read);
  process.hart.pc = code;
  check(process.interpreter.run(process.hart, 10) == Stop::fault &&
            process.interpreter.fault().cause == Fault::Cause::fetch,
        "not executable any more");
}

// A fault leaves all registers but pc, and memory, as they were.
TEST(faults_have_no_effect) {
  const u64 end = TestProcess::data_end;
  struct Case {
    std::uint32_t word;
    u64 a2_value;
    Fault::Cause kind;
    u64 address;
  };
  const std::vector<Case> cases = {
      {encode_i("ld", a0, a2, 0), 0, Fault::Cause::load, 0},
      {encode_i("lw", a0, a2, 0), end - 2, Fault::Cause::load, end},
      {encode_s("sd", a0, a2, 0), end - 4, Fault::Cause::store, end},
      {encode_s("sb", a0, a2, 0), ~u64{0}, Fault::Cause::store, ~u64{0}},
      {encode("amoadd.w", a0, a2, a1), data + 2, Fault::Cause::misaligned, data + 2},
      {encode("amoadd.w", a0, a2, a1), end, Fault::Cause::store, end},
      {encode("lr.d", a0, a2), end, Fault::Cause::load, end},
      {0xffffffff, 0, Fault::Cause::illegal, code + 4},
      {0x0d007057, 0, Fault::Cause::unsupported, code + 4},  // vsetvli
  };
  for (const Case& each : cases) {
    TestProcess process({encode_i("addi", a3, a3, 1), each.word});
    process.hart.x[a0] = 0x1234567890abcdef;
    process.hart.x[a2] = each.a2_value;
    const std::string what = disassemble(each.word, 0);
    check(process.interpreter.run(process.hart, 10) == Stop::fault, what + " stops");
    check(process.interpreter.fault().cause == each.kind, "kind of fault of " + what);
    check_bits(process.interpreter.fault().address, each.address, "address of " + what);
    check_bits(process.interpreter.fault().instruction, each.word, "instruction of " + what);
    check_bits(process.hart.pc, code + 4, "pc of " + what);
    check_bits(process.hart.x[a0], 0x1234567890abcdef, "a0 after " + what);
    check_equal(process.hart.retired, 1, "instructions before " + what);
    u64 last = 1;
    process.memory.read(end - 8, &last, 8);
    check_bits(last, 0, "memory after " + what);
  }
  TestProcess wild({encode_i("jalr", zero, a2, 0)});
  wild.hart.x[a2] = 0x123456;
  check(wild.interpreter.run(wild.hart, 10) == Stop::fault &&
            wild.interpreter.fault().cause == Fault::Cause::fetch &&
            wild.interpreter.fault().address == 0x123456,
        "a wild jump");
}

TEST(exhausted_memory_is_named) {
  // The limit allows the page of code and one of data.
  TestProcess process({encode_s("sb", a0, a2, 0), encode_s("sb", a0, a3, 0)}, 2 * page_bytes);
  process.hart.x[a2] = data;
  process.hart.x[a3] = data + page_bytes;
  check(process.interpreter.run(process.hart, 10) == Stop::fault, "the second page is refused");
  check(process.interpreter.fault().cause == Fault::Cause::exhausted, "as exhausted memory");
  check_equal(process.hart.retired, 1, "after the first");
}

// A block's pages may go away while it is in use.
TEST(unmapped_pages_are_not_used) {
  TestProcess process({encode_i("ld", a0, a2, 0), encode("ecall")});
  process.hart.x[a2] = data;
  check(process.interpreter.run(process.hart, 10) == Stop::system_call, "mapped");
  process.memory.unmap(data, page_bytes);
  process.hart.pc = code;
  check(process.interpreter.run(process.hart, 10) == Stop::fault, "unmapped");
  process.memory.map(data, page_bytes, Permission::read);
  process.hart.pc = code;
  check(process.interpreter.run(process.hart, 10) == Stop::system_call && process.hart.x[a0] == 0,
        "mapped again");
}

TEST(markers_stop) {
  TestProcess process({encode_i("addi", a0, a0, 1), encode_i("slti", zero, a0, 4),
                       encode_i("addi", a0, a0, 1), encode_i("addi", a0, a0, 1), encode("ecall")});
  process.interpreter.watch({code + 12, code + 4});
  check(process.interpreter.run(process.hart, 100) == Stop::marker, "the instruction stops");
  check_bits(process.hart.pc, code + 4, "at its pc");
  check_equal(process.interpreter.marker().code, 4, "code");
  check_bits(process.interpreter.marker().value, 1, "value");
  check(process.interpreter.run(process.hart, 100) == Stop::marker && process.hart.pc == code + 4,
        "again if not passed");
  check(process.interpreter.run(process.hart, 100, true) == Stop::marker, "the watched pc stops");
  check_bits(process.hart.pc, code + 12, "at its pc");
  check_equal(process.interpreter.marker().code, -1, "without a code");
  check_bits(process.hart.x[a0], 2, "before it is executed");
  check(process.interpreter.run(process.hart, 100, true) == Stop::system_call, "then on to the end");
  check_bits(process.hart.x[a0], 3, "all are executed");
  check_equal(process.hart.retired, 4, "and counted");
}

TEST(breakpoints_stop) {
  TestProcess process({encode("ebreak")});
  check(process.interpreter.run(process.hart, 1) == Stop::breakpoint && process.hart.pc == code, "ebreak");
}

// An instruction that lies in two pages, of which the second may not be executable.
TEST(instructions_may_cross_pages) {
  TestProcess process;
  const u64 at = code + page_bytes - 2;
  const std::uint32_t word = encode_i("addi", a0, zero, 7);
  process.memory.map(code + page_bytes, page_bytes, Permission::read);
  process.memory.copy_in(at, &word, 4);
  process.hart.pc = at;
  check(process.interpreter.run(process.hart, 1) == Stop::fault &&
            process.interpreter.fault().cause == Fault::Cause::fetch,
        "the second half cannot be fetched");
  process.memory.protect(code + page_bytes, page_bytes, Permission::read | Permission::execute);
  check(process.interpreter.run(process.hart, 1) == Stop::budget && process.hart.x[a0] == 7, "now it can");
}

}  // namespace
