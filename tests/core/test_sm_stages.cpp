// SPDX-License-Identifier: Apache-2.0
// Stages of a streaming multiprocessor, each alone: when they accept, and when what they give is ready.
#include "gpu/sm/coalesce.hpp"
#include "gpu/sm/constant_cache.hpp"
#include "gpu/sm/data_stage.hpp"
#include "gpu/sm/dependence_counters.hpp"
#include "gpu/sm/execution_pipes.hpp"
#include "gpu/sm/instruction_fetch.hpp"
#include "gpu/sm/mio_queue.hpp"
#include "gpu/sm/scoreboard.hpp"
#include "gpu/sm/tag_stage.hpp"
#include "gpu/sm/warp_states.hpp"
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
  spec.prefetched_lines = 0;
  spec.l0_instructions = 512;
  spec.l1_instructions = 4096;
  spec.l0_miss_latency = 16;
  spec.l1_miss_latency = 200;
  spec.constant_size = 128;
  spec.constant_line = 64;
  spec.constant_ways = 2;
  spec.constant_latency = 27;
  spec.constant_l15_latency = 89;
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

// Cycles at which warps of some sub-cores issue memory instructions one after the other: Huerta et al., MICRO
// 2025, Table 1.
std::vector<std::vector<Cycle>> issue_cycles(std::size_t sub_cores, unsigned instructions) {
  SmSpec spec;
  spec.memory_queue = 5;
  spec.timing.operand_read = 11;
  std::vector<MioQueue> queues(sub_cores, MioQueue(spec));
  std::vector<std::vector<Cycle>> issued(sub_cores);
  std::vector<Cycle> next(sub_cores, 2);
  Cycle lsu_free = 0;
  while (issued.back().size() < instructions) {
    std::size_t first = 0;  // sub-cores that could issue in one cycle do so in their order
    for (std::size_t i = 0; i < sub_cores; ++i) {
      next[i] = std::max(next[i], queues[i].free_at());
      if (next[i] < next[first]) first = i;
    }
    const Cycle begin = std::max(queues[first].enter(next[first], MioUnit::address, 4), lsu_free);
    lsu_free = begin + 2;
    queues[first].leave(begin);
    issued[first].push_back(next[first]++);
  }
  return issued;
}

TEST(the_mio_queue_accepts_until_it_is_full) {
  const auto alone = issue_cycles(1, 8);
  const std::vector<Cycle> published{2, 3, 4, 5, 6, 13, 17, 21};
  for (std::size_t i = 0; i < published.size(); ++i) check_equal(alone[0][i], published[i], "one sub-core");
  const auto together = issue_cycles(4, 8);
  for (std::size_t sub_core = 0; sub_core < 4; ++sub_core) {
    check_equal(together[sub_core][4], 6, "five are taken at once");
    check_equal(together[sub_core][5], 13 + 2 * static_cast<Cycle>(sub_core), "the sixth waits for the LSU");
    check_equal(together[sub_core][6], 21 + 2 * static_cast<Cycle>(sub_core),
                "the LSU takes one every two cycles");
  }
}

TEST(instructions_of_the_mio_queue_do_not_overtake) {
  SmSpec spec;
  spec.memory_queue = 4;
  spec.timing.operand_read = 0;
  MioQueue queue(spec);
  const auto enter = [&](Cycle now, MioUnit unit, Cycle interval) {
    const Cycle begin = queue.enter(now, unit, interval);
    queue.leave(begin);
    return begin;
  };
  check_equal(enter(0, MioUnit::xu, 8), 0, "a special function begins at once");
  check_equal(enter(1, MioUnit::xu, 8), 8, "the next when the XU pipe is free");
  check_equal(enter(2, MioUnit::address, 4), 8, "a load behind it not before it");
  check_equal(enter(3, MioUnit::address, 4), 12, "and the address unit takes one every four cycles");
  check_equal(queue.free_at(), 0, "the first has left");
  check_equal(enter(4, MioUnit::shuffle, 2), 12, "a shuffle does not need the address unit");
  check_equal(queue.free_at(), 8, "the slot of the second is free at 8, and not at 7");
}

TEST(the_tag_stage_takes_four_lines_a_cycle_after_the_first) {
  TagStage tags(4);
  check_equal(tags.enter(10, 1), 10, "a free stage");
  check_equal(tags.enter(10, 9), 11, "a line takes a cycle");
  check_equal(tags.look_up(0), 11, "the first line");
  check_equal(tags.look_up(3), 11, "the fourth in the same cycle");
  check_equal(tags.look_up(4), 12, "the fifth in the next");
  check_equal(tags.look_up(8), 13, "the ninth");
  check_equal(tags.free_at(), 14, "nine lines take 1 + 8 / 4 cycles");
  tags.enter(14, 2);
  check_equal(tags.free_at(), 15, "fractions add up: two lines take a cycle and a quarter");
  for (int i = 0; i < 3; ++i) tags.enter(14, 2);
  check_equal(tags.free_at(), 19, "four of them five cycles");
}

// An access of all lanes with a stride.
Access strided(std::uint64_t stride, std::uint8_t bytes) {
  Access access;
  access.mask = kAllLanes;
  access.bytes = bytes;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    access.addresses[lane] = (std::uint64_t{1} << 32) + lane * stride;
  return access;
}

// Cycles of a load from the L1 by stride, as gpu-strides of RRZE-HPC/gpu-benches measured them on an A100.
TEST(passes_over_the_banks_of_the_l1_follow_the_stride) {
  for (const unsigned stride : {1U, 2U, 4U, 8U, 16U, 32U})
    check_equal(bank_passes(strided(4 * stride, 4), 32).taken, stride, "floats, powers of two");
  check_equal(bank_passes(strided(4 * 3, 4), 32).taken, 1U, "odd strides have no conflicts");
  check_equal(bank_passes(strided(4 * 33, 4), 32).taken, 1U, "nor do they with a line each");
  check_equal(bank_passes(strided(0, 8), 32).taken, 2U,
              "a double takes two passes, even if all want the same");
  check_equal(bank_passes(strided(8, 8), 32).taken, 2U, "doubles beside each other");
  check_equal(bank_passes(strided(8 * 2, 8), 32).taken, 4U, "every second double");
  check_equal(bank_passes(strided(8 * 6, 8), 32).taken, 4U, "every sixth");
  check_equal(bank_passes(strided(8 * 16, 8), 32).taken, 32U, "a line each");
  Access half = strided(8, 8);
  half.mask = 0xffff;
  check_equal(bank_passes(half, 32).taken, 1U, "half a warp of doubles");
}

// NVIDIA developer forum 77228: loads of shared memory whose lanes want the same in pairs return two
// registers at once.
TEST(shared_loads_pack_registers_of_lanes_that_want_the_same) {
  const auto passes = [](const Access& access) { return bank_passes(access, 32, false, true).taken; };
  check_equal(passes(strided(16, 16)), 4U, "LDS.128 of neighbours");
  check_equal(passes(strided(0, 16)), 2U, "of one address");
  check_equal(passes(strided(0, 8)), 1U, "LDS.64 of one address");
  Access pairs = strided(0, 16);
  for (unsigned lane = 0; lane < kLanes; ++lane) pairs.addresses[lane] += lane / 2 * 16;
  check_equal(passes(pairs), 2U, "in pairs");
  Access fours = strided(0, 16);
  for (unsigned lane = 0; lane < kLanes; ++lane) fours.addresses[lane] += lane % 8 * 16;
  check_equal(passes(fours), 4U, "eight addresses, but not in pairs");
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
  check_equal(caches.fetch(0, 0, 0, statistics), 200, "the first fetch misses both");
  check_equal(caches.fetch(0, 0, 50, statistics), 150, "another warp waits for the same line");
  check_equal(caches.fetch(1, 0, 50, statistics), 150, "and so does another sub-core");
  check_equal(caches.fetch(0, 0, 200, statistics), 0, "then the L0 has the line");
  check_equal(caches.fetch(1, 4096, 300, statistics), 200, "elsewhere");
  check_equal(caches.fetch(1, 0, 300, statistics), 0, "a line stays");
  check_equal(statistics.fetch_l0_misses.value(), 3, "misses of the L0s");
  check_equal(statistics.fetch_l1_misses.value(), 2, "misses of the L1");
}

TEST(a_stream_buffer_fetches_the_lines_that_follow) {
  SmSpec spec = small_sm();
  spec.prefetched_lines = 2;
  spec.fetch_interval = 3;
  InstructionCaches caches(spec);
  SmStatistics statistics;
  check_equal(caches.fetch(0, 0, 0, statistics), 200, "the first line");
  check_equal(caches.fetch(0, 128, 202, statistics), 1, "the second comes three cycles later");
  check_equal(caches.fetch(0, 256, 206, statistics), 0, "the third is there at 206");
  check_equal(caches.fetch(0, 384, 210, statistics), 192,
              "the fourth was asked for when the second was used");
  check_equal(statistics.fetch_prefetched.value(), 3, "lines of the stream buffer");
  check_equal(statistics.fetch_l0_misses.value(), 1, "one miss");
  check_equal(caches.fetch(0, 2048, 500, statistics), 200, "a branch to elsewhere");
  check_equal(caches.fetch(0, 512, 800, statistics), 16, "what was fetched before is in the L1");
}

TEST(warm_caches_have_the_end_of_what_they_cannot_hold) {
  SmSpec spec = small_sm();
  spec.sub_cores = 1;
  spec.l0_instructions = 256;
  InstructionCaches caches(spec);
  SmStatistics statistics;
  caches.warm(128, 512);
  check_equal(caches.fetch(0, 512, 0, statistics), 0, "the last line is in the L0");
  check_equal(caches.fetch(0, 128, 0, statistics), 16, "the first one in the L1");
  check_equal(caches.fetch(0, 0, 0, statistics), 200, "what lies before it nowhere");
}

TEST(constants_share_the_l1_of_instructions) {
  SmSpec spec = small_sm();
  spec.instruction_line = 256;
  InstructionCaches behind(spec);
  ConstantCache cache(spec);
  const auto check_found = [&](std::uint64_t address, Cycle latency, bool missed, const char* what) {
    const ConstantCache::Found found = cache.look_up(address, behind);
    check_equal(found.latency, latency, what);
    check_equal(found.missed, missed, what);
  };
  check_found(0, 89, true, "the first load");
  check_found(63, 27, false, "a line of 64 bytes");
  check_found(64, 89, false, "the next line of 64 is in the L1's line of 256");
  check_found(128, 89, false, "it takes the entry of the oldest");
  check_found(0, 89, false, "which is gone");
  check_found(256, 89, true, "beyond the L1's line");
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

// The L2 changes eight bytes of a sector in a round, and no word twice.
TEST(atomic_operations_take_rounds_of_so_many_words_of_a_sector) {
  const auto rounds = [](const Access& access) {
    Lines lines;
    coalesce(access, 128, lines);
    AtomicRounds all;
    for (unsigned i = 0; i < lines.count; ++i) {
      const AtomicRounds line = atomic_rounds(access, lines.at[i], 8);
      all.taken += line.taken;
      all.conflicts += line.conflicts;
    }
    return all;
  };
  check_equal(rounds(strided(4, 4)).taken, 16U, "a whole line of words: 128 of 8 bytes");
  check_equal(rounds(strided(4, 4)).conflicts, 0U, "none of them twice");
  check_equal(rounds(strided(8, 8)).taken, 32U, "two lines of double words");
  check_equal(rounds(strided(0, 4)).taken, 32U, "one word, as often as there are lanes");
  check_equal(rounds(strided(0, 4)).conflicts, 31U, "of which one would do");
  check_equal(rounds(strided(32, 4)).taken, 32U, "a sector each");
  Access one = strided(4, 4);
  one.mask = 1;
  check_equal(rounds(one).taken, 1U, "one lane");
}

TEST(stores_know_which_sectors_they_write_in_part) {
  const auto partial = [](const Access& access) {
    Lines lines;
    coalesce(access, 128, lines);
    find_partial_sectors(access, lines);
    unsigned sectors = 0;
    for (unsigned i = 0; i < lines.count; ++i)
      sectors += static_cast<unsigned>(std::popcount(lines.at[i].tag));
    return sectors;
  };
  check_equal(partial(strided(4, 4)), 0U, "a whole line");
  check_equal(partial(strided(16, 16)), 0U, "four whole lines");
  check_equal(partial(strided(8, 4)), 8U, "every second word of two lines");
  check_equal(partial(strided(128, 4)), 32U, "a word of a line each");
  Access part = strided(4, 4);
  part.mask = 0x000fffff;  // 20 words: two sectors and a half
  check_equal(partial(part), 1U, "the last sector");
}

// Cycles of warps in a state, of all intervals.
std::int64_t cycles_in(const WarpStates& states, WarpState state) {
  std::int64_t sum = 0;
  for (const WarpStates::Row& row : states.rows()) sum += row[static_cast<std::size_t>(state)];
  return sum;
}

TEST(states_of_warps_are_kept_in_a_bounded_number_of_intervals) {
  WarpStates states(1000);
  states.add(WarpState::drain, 1006, 1010);
  check_equal(states.interval(), 8, "the first intervals are short");
  check_equal(states.rows()[0][static_cast<std::size_t>(WarpState::drain)], 2, "two cycles in the first");
  check_equal(states.rows()[1][static_cast<std::size_t>(WarpState::drain)], 2, "and two in the second");
  states.add_issue(1010, WarpState::barrier, 1013, WarpState::not_selected, 1020);
  states.add(WarpState::wait, 1000 + 1024, 1000 + 1025);
  check_equal(states.interval(), 16, "128 of them reach 1,024 cycles, and not one more");
  states.add_issue(1000, WarpState::long_scoreboard, 101000, WarpState::lg_throttle, 101000);
  check(states.rows().size() <= WarpStates::most_intervals, "the number is bounded");
  check_equal(cycles_in(states, WarpState::drain), 4, "nothing is lost");
  check_equal(cycles_in(states, WarpState::barrier), 3, "the first reason");
  check_equal(cycles_in(states, WarpState::not_selected), 7, "the second");
  check_equal(cycles_in(states, WarpState::selected), 2, "two issues");
  check_equal(cycles_in(states, WarpState::long_scoreboard), 100000, "over many intervals");
  WarpStates other(1000);
  other.add(WarpState::wait, 1000, 1003);
  other.add(states);
  check_equal(other.interval(), states.interval(), "another SM takes the longer interval");
  check_equal(cycles_in(other, WarpState::wait), 4, "sums of both");
}

}  // namespace
