// SPDX-License-Identifier: Apache-2.0
// Stages of a streaming multiprocessor, each alone: when they accept, and when what they give is ready.
#include "gpu/sm/constant_cache.hpp"
#include "gpu/sm/data_stage.hpp"
#include "gpu/sm/dependence_counters.hpp"
#include "gpu/sm/execution_pipes.hpp"
#include "gpu/sm/instruction_fetch.hpp"
#include "gpu/sm/memory_queue.hpp"
#include "gpu/sm/scoreboard.hpp"
#include "test_checks.hpp"

using namespace manyscale;
using namespace manyscale::gpu;
using manyscale::test::check;
using manyscale::test::check_equal;

namespace {

constexpr std::uint8_t kLimited = 1;  // counter 0 is waited for in part

// Parameters of a small SM, whose caches hold a few lines.
SmSpec small_sm() {
  SmSpec spec;
  spec.sub_cores = 2;
  spec.memory_queue = 2;
  spec.address_interval = 4;
  spec.instruction_line = 128;
  spec.instruction_ways = 2;
  spec.fetched_lines = 2;
  spec.l0_instructions = 512;
  spec.l1_instructions = 4096;
  spec.l0_miss_latency = 16;
  spec.l1_miss_latency = 200;
  spec.constant_size = 128;
  spec.constant_line = 64;
  spec.constant_ways = 2;
  spec.constant_latency = 27;
  spec.constant_l15_latency = 89;
  spec.constant_miss_latency = 245;
  spec.timing.integer = {4, 2};
  spec.timing.other_unit = 1;
  spec.timing.queued_unit = 2;
  return spec;
}

// A warp whose next instruction waits for dependence counters.
struct WaitingWarp {
  DependenceCounters counters;
  IssueControl next;
  Stall why = Stall::barrier;  // of the last question

  // The first cycle at which the instruction can issue.
  Cycle issue() {
    Waiting waiting{0};
    counters.wait(next, waiting);
    why = waiting.why;
    return waiting.until;
  }
};

TEST(the_memory_queue_accepts_until_it_is_full) {
  MemoryQueue queue(small_sm());
  check_equal(queue.enter(10), 10, "the first passes at once");
  check(queue.free_at() <= 10, "a second slot is free");
  check_equal(queue.enter(10), 14, "address generation takes one every four cycles");
  check_equal(queue.free_at(), 11, "the first has left a cycle after it passed");
  check_equal(queue.enter(11), 18, "in order");
  check_equal(queue.free_at(), 15, "the second leaves at 15, and not at 14");
}

TEST(the_data_stage_tells_conflicts_apart) {
  DataStage stage;
  SmStatistics statistics;
  check_equal(stage.begin(5), 5, "a free stage");
  stage.use(5, 8, 1, statistics);
  check_equal(stage.conflict(), 7, "seven wavefronts of eight are conflicts");
  check_equal(stage.begin(6), 13, "the next waits for all of them");
  check_equal(stage.conflict(), 7, "and would have begun at 6 without");
  stage.use(13, 1, 1, statistics);
  check_equal(stage.begin(20), 20, "later ones do not notice");
  check_equal(stage.conflict(), 0, "no conflict is left");
  check_equal(statistics.data_cycles.value(), 9, "busy cycles");
}

TEST(instructions_come_from_l0_l1_or_beyond) {
  InstructionCaches caches(small_sm());
  SmStatistics statistics;
  check_equal(caches.fetch(0, 0, statistics), 200, "the first fetch misses both");
  check_equal(caches.fetch(0, 0, statistics), 0, "then the L0 has the line");
  check_equal(caches.fetch(0, 128, statistics), 0, "and the one behind it");
  check_equal(caches.fetch(1, 128, statistics), 16, "another sub-core finds it in the L1");
  check_equal(caches.fetch(0, 256, statistics), 16, "which fetched the next line too");
  check_equal(caches.fetch(0, 512, statistics), 200, "and no third one");
  check_equal(statistics.fetch_l0_misses.value(), 4, "misses of the L0");
  check_equal(statistics.fetch_l1_misses.value(), 2, "misses of the L1");
}

TEST(warm_caches_have_the_end_of_what_they_cannot_hold) {
  SmSpec spec;
  spec.sub_cores = 1;
  spec.instruction_line = 128;
  spec.instruction_ways = 2;
  spec.fetched_lines = 1;
  spec.l0_instructions = 256;
  spec.l1_instructions = 4096;
  spec.l0_miss_latency = 16;
  spec.l1_miss_latency = 200;
  InstructionCaches caches(spec);
  SmStatistics statistics;
  caches.warm(128, 512);
  check_equal(caches.fetch(0, 512, statistics), 0, "the last line is in the L0");
  check_equal(caches.fetch(0, 128, statistics), 16, "the first one in the L1");
  check_equal(caches.fetch(0, 0, statistics), 200, "what lies before it nowhere");
}

TEST(constants_share_the_l1_of_instructions) {
  SmSpec spec = small_sm();
  spec.instruction_line = 256;
  InstructionCaches behind(spec);
  ConstantCache cache(spec);
  check_equal(cache.look_up(0, behind), 245, "the first load");
  check_equal(cache.look_up(63, behind), 27, "a line of 64 bytes");
  check_equal(cache.look_up(64, behind), 89, "the next line of 64 is in the L1's line of 256");
  check_equal(cache.look_up(128, behind), 89, "it takes the entry of the oldest");
  check_equal(cache.look_up(0, behind), 89, "which is gone");
  check_equal(cache.look_up(256, behind), 245, "beyond the L1's line");
}

TEST(a_counter_holds_until_the_last_result) {
  WaitingWarp warp;
  warp.next.waits = 1 << 2;
  check_equal(warp.issue(), 0, "nothing is counted");
  warp.counters.count(2, {.done = 30, .why = Stall::short_scoreboard}, 0, 0);
  warp.counters.count(2, {.done = 20, .why = Stall::wait}, 0, 0);
  check_equal(warp.issue(), 30, "the later of both");
  check(warp.why == Stall::short_scoreboard, "its reason");
  warp.counters.count(2, {.done = kPending, .why = Stall::long_scoreboard, .number = 7}, 0, 0);
  check_equal(warp.issue(), kPending, "a load that missed");
  warp.counters.count_down(2, 400, false, 7);
  check_equal(warp.issue(), 400, "until it is there, not before");
  check(warp.why == Stall::long_scoreboard, "and why");
  warp.next.waits = 1;
  check_equal(warp.issue(), 0, "other counters do not matter");
}

TEST(a_counter_can_be_waited_for_in_part) {
  WaitingWarp warp;
  warp.next.limited = 0;
  warp.next.remaining = 1;
  for (const std::uint32_t load : {1U, 2U, 3U})
    warp.counters.count(0, {.done = kPending, .why = Stall::long_scoreboard, .number = load}, kLimited, 0);
  warp.counters.count_down(0, 50, false, 1);
  check_equal(warp.issue(), kPending, "two are left, one may be");
  warp.counters.count_down(0, 60, false, 3);
  check_equal(warp.issue(), 60, "one is left");
}

TEST(copies_are_counted_by_group) {
  WaitingWarp warp;
  warp.next.waits = 1;
  const std::uint32_t first = warp.counters.begin_copy();
  const std::uint32_t second = warp.counters.begin_copy();
  warp.counters.close_copies(0, 10, 0, 0);
  const std::uint32_t third = warp.counters.begin_copy();
  warp.counters.copy_arrived(second, 80, false);
  check_equal(warp.issue(), kPending, "the group has two copies");
  warp.counters.copy_arrived(first, 70, false);
  check_equal(warp.issue(), 80, "it is done with the later one");
  warp.counters.copy_arrived(third, 500, false);
  check_equal(warp.issue(), 80, "a copy behind the group does not matter");
}

TEST(results_take_longer_to_other_pipes) {
  const PipeTable pipes(small_sm());
  check(pipes.pipe_of(InstructionKind::multiply_add) == Pipe::fma, "IMAD runs on the FMA pipe");
  check_equal(pipes.crossing(Pipe::alu, Pipe::alu), 0, "within a pipe");
  check_equal(pipes.crossing(Pipe::alu, Pipe::fma), 1, "to another one");
  check_equal(pipes.crossing(Pipe::fma, Pipe::lsu), 2, "to one with a queue");
  SassInstruction instruction;
  instruction.kind = InstructionKind::integer;
  instruction.control.read_cycles = 3;
  instruction.control.read_cycles_cached = 1;
  check_equal(pipes.interval(instruction, false), 3, "operands of one bank take three cycles");
  check_equal(pipes.interval(instruction, true), 2, "less what the reuse cache has");
}

TEST(the_scoreboard_waits_for_operands_and_guards) {
  const PipeTable pipes(small_sm());
  Scoreboard board;
  const std::uint8_t registers[] = {5, 6};
  board.set(registers, 1, 40, Stall::wait, Pipe::fma, 0);
  board.set_predicates(1 << 3, 50);
  SassInstruction instruction;
  instruction.kind = InstructionKind::integer;
  instruction.reads = 1;
  const auto issue = [&] {
    Waiting waiting{0};
    board.wait(instruction, registers, pipes, 8, waiting);
    return waiting.until;
  };
  check_equal(issue(), 41, "a value of the FMA pipe, read by the ALU");
  instruction.reads_predicates = 1 << 3;
  check_equal(issue(), 50, "a predicate as an operand");
  instruction.guards = 1 << 3;
  check_equal(issue(), 58, "a predicate that guards");
}

}  // namespace
