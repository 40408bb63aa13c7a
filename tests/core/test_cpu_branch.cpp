// SPDX-License-Identifier: Apache-2.0
// The branch predictor on programs whose predictability is known: loops, correlated and random branches,
// calls deeper than the return stack, more jumps than the target buffer holds.
#include <array>

#include "cpu/core/branch_predictor.hpp"
#include "engine/random.hpp"
#include "test_checks.hpp"

using namespace manyscale;
using namespace manyscale::cpu;
using namespace manyscale::test;

namespace {

Record branch(std::uint64_t pc, bool taken) {
  Record record;
  record.kind = InstructionClass::branch;
  record.pc = pc;
  record.address = taken ? pc + 64 : pc + 4;
  record.flags = taken ? Trait::taken : 0;
  return record;
}

Record jump(std::uint64_t pc, std::uint64_t target, std::uint8_t flags = 0) {
  Record record;
  record.kind = InstructionClass::jump;
  record.pc = pc;
  record.address = target;
  record.flags = flags;
  return record;
}

Record indirect(std::uint64_t pc, std::uint64_t target, std::uint8_t flags = 0) {
  Record record = jump(pc, target, flags);
  record.kind = InstructionClass::indirect;
  return record;
}

bool wrong(BranchPredictor& predictor, const Record& record) {
  return predictor.predict(record) == Prediction::mispredict;
}

BranchSpec of_kind(const std::string& kind) {
  BranchSpec spec;
  spec.kind = kind;
  return spec;
}

// Wrong predictions in the last `counted` of `rounds` rounds of a loop branch with so many iterations.
int wrong_at_loop(const BranchSpec& spec, int iterations, int rounds, int counted) {
  BranchPredictor predictor(spec);
  int count = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < iterations; ++i) {
      const bool is_wrong = wrong(predictor, branch(0x1000, i + 1 < iterations));
      if (round >= rounds - counted) count += is_wrong;
    }
  }
  return count;
}

TEST(loops_within_the_history_are_predicted) {
  for (const int iterations : {2, 3, 5, 7, 8, 16, 31, 64, 120, 200}) {
    check_equal(wrong_at_loop(of_kind("tage"), iterations, 400, 20), 0,
                "tage, loop of " + std::to_string(iterations));
  }
  // Each table sees as far as its history: beyond it, the end of the loop comes as a surprise every time.
  BranchSpec spec;
  spec.tables = 4;
  spec.longest_history = 32;
  check_equal(wrong_at_loop(spec, 30, 400, 20), 0, "a loop of 30 and a history of 32");
  check_equal(wrong_at_loop(spec, 100, 400, 20), 20, "a loop of 100 and a history of 32");
  check_equal(wrong_at_loop(of_kind("bimodal"), 10, 100, 20), 20, "bimodal misses each end");
  check_equal(wrong_at_loop(of_kind("gshare"), 10, 400, 20), 0, "gshare, loop of 10 and a history of 12");
  check_equal(wrong_at_loop(of_kind("gshare"), 30, 400, 20), 20, "gshare, loop of 30 and a history of 12");
  check_equal(wrong_at_loop(of_kind("static_not_taken"), 10, 100, 20), 180, "only the end is not taken");
}

TEST(the_loop_predictor_knows_long_loops) {
  BranchSpec spec;
  check_equal(wrong_at_loop(spec, 1000, 40, 20), 20, "a loop of 1000 without a loop predictor");
  spec.loop_entries = 16;
  check_equal(wrong_at_loop(spec, 1000, 40, 20), 0, "a loop of 1000 with one");
  check_equal(wrong_at_loop(spec, 7, 400, 20), 0, "a short loop with both");
}

TEST(nested_loops_are_predicted) {
  BranchPredictor predictor(of_kind("tage"));
  int late_wrong = 0;
  for (int round = 0; round < 600; ++round) {
    for (int i = 0; i < 5; ++i) {
      for (int j = 0; j < 7; ++j) {
        const bool is_wrong = wrong(predictor, branch(0x2000, j + 1 < 7));
        late_wrong += round >= 500 && is_wrong;
      }
      const bool is_wrong = wrong(predictor, branch(0x2010, i + 1 < 5));
      late_wrong += round >= 500 && is_wrong;
    }
  }
  check_equal(late_wrong, 0, "loops of 5 and 7, one within the other");
}

TEST(random_branches_are_wrong_half_the_time) {
  for (const char* kind : {"tage", "gshare", "bimodal"}) {
    BranchPredictor predictor(of_kind(kind));
    Random random(1, 2);
    int count = 0;
    for (int i = 0; i < 40'000; ++i) count += wrong(predictor, branch(0x3000, random.below(2) == 1));
    check_between(count / 40'000.0, 0.48, 0.52, std::string(kind) + " on a random branch");
  }
}

TEST(biased_branches_are_wrong_about_as_often_as_the_rare_case) {
  BranchPredictor predictor(of_kind("tage"));
  Random random(1, 3);
  int count = 0;
  for (int i = 0; i < 200'000; ++i) {
    const bool is_wrong = wrong(predictor, branch(0x3000, random.below(10) != 0));
    if (i >= 100'000) count += is_wrong;
  }
  check_between(count / 100'000.0, 0.095, 0.16, "taken nine times out of ten");
}

TEST(correlated_branches_are_predicted) {
  Random random(4, 5);
  for (const auto& [kind, most] : {std::pair{"tage", 0.01}, {"gshare", 0.04}}) {
    BranchPredictor predictor(of_kind(kind));
    int count = 0;
    for (int i = 0; i < 60'000; ++i) {
      const bool a = random.below(2) == 1, b = random.below(2) == 1;
      predictor.predict(branch(0x4000, a));
      predictor.predict(branch(0x4010, b));
      const bool is_wrong = wrong(predictor, branch(0x4020, a != b));
      count += i >= 30'000 && is_wrong;
    }
    check_between(count / 30'000.0, 0, most, std::string(kind) + ": the third is the exclusive or of two");
  }
}

TEST(branches_that_share_a_counter_disturb_each_other) {
  for (const std::int64_t entries : {1, 2}) {
    BranchSpec spec = of_kind("bimodal");
    spec.base_entries = entries;
    BranchPredictor predictor(spec);
    int count = 0;
    for (int i = 0; i < 1000; ++i) {
      count += wrong(predictor, branch(0x10, true)) + wrong(predictor, branch(0x12, false));
    }
    // One counter goes up and down between 1 (not taken) and 2: it is always one step behind.
    check_equal(count, entries == 1 ? 2000 : 1, std::to_string(entries) + " counters for two branches");
  }
}

TEST(calls_deeper_than_the_return_stack_lose_the_outermost) {
  for (const int depth : {1, 4, 5, 6, 8}) {
    BranchSpec spec;
    spec.return_stack = 4;
    BranchPredictor predictor(spec);
    for (int repeat = 0; repeat < 3; ++repeat) {
      const std::int64_t before = predictor.statistics().return_mispredicts.value();
      for (int i = 0; i < depth; ++i) predictor.predict(jump(0x100 * (i + 1), 0x100 * (i + 2), Trait::call));
      for (int i = depth; i-- > 0;) {
        const std::uint64_t back = 0x100 * (i + 1) + 4;
        predictor.predict(indirect(0x100 * (i + 2) + 0x80, back, Trait::returns));
      }
      check_equal(predictor.statistics().return_mispredicts.value() - before, std::max(0, depth - 4),
                  "returns of " + std::to_string(depth) + " calls, a stack of 4");
    }
  }
  BranchPredictor predictor(BranchSpec{});
  check(wrong(predictor, indirect(0x100, 0x5000, Trait::returns)), "a return without a call");
  BranchSpec none;
  none.return_stack = 0;
  BranchPredictor without(none);
  without.predict(jump(0x100, 0x200, Trait::call));
  check(wrong(without, indirect(0x200, 0x104, Trait::returns)), "a return without a stack");
}

TEST(compressed_calls_return_two_bytes_on) {
  BranchPredictor predictor(BranchSpec{});
  predictor.predict(indirect(0x100, 0x200, Trait::call | Trait::compressed));
  check(!wrong(predictor, indirect(0x200, 0x102, Trait::returns)), "back to pc + 2");
  // A coroutine's jump returns and calls at once.
  predictor.predict(jump(0x100, 0x200, Trait::call));
  check(!wrong(predictor, indirect(0x200, 0x104, Trait::returns | Trait::call)), "returns to 0x104");
  check(!wrong(predictor, indirect(0x110, 0x204, Trait::returns)), "and back to 0x204");
}

TEST(the_target_buffer_holds_what_fits) {
  BranchSpec spec;
  spec.btb_entries = 16;
  spec.btb_ways = 4;
  const auto misses = [&](int jumps, std::uint64_t step) {
    BranchPredictor predictor(spec);
    std::array<std::int64_t, 3> per_pass{};
    for (auto& count : per_pass) {
      const std::int64_t before = predictor.statistics().btb_misses.value();
      for (int i = 0; i < jumps; ++i) predictor.predict(jump(static_cast<std::uint64_t>(i) * step, 0x9000));
      count = predictor.statistics().btb_misses.value() - before;
    }
    check_equal(per_pass[0], jumps, "the first pass misses each jump");
    check_equal(per_pass[1], per_pass[2], "later passes are alike");
    return per_pass[2];
  };
  check_equal(misses(16, 2), 0, "16 jumps in 16 entries");
  check_equal(misses(17, 2), 5, "the 17th and the four of its set push each other out");
  check_equal(misses(5, 8), 5, "five jumps in one set of four");
  check_equal(misses(4, 8), 0, "four jumps in one set of four");
  spec.btb_ways = 0;
  check_equal(misses(16, 8), 0, "any 16 jumps where there is one set");
  check_equal(misses(17, 8), 17, "LRU over one more than fits");
}

TEST(a_correct_direction_without_a_target_is_a_misfetch) {
  BranchPredictor predictor(of_kind("bimodal"));
  check(predictor.predict(branch(0x10, true)) == Prediction::mispredict, "counters begin at not taken");
  check(predictor.predict(branch(0x10, true)) == Prediction::correct, "and its target is known by now");
  check(predictor.predict(jump(0x40, 0x80)) == Prediction::misfetch, "a jump seen for the first time");
  check(predictor.predict(jump(0x40, 0x80)) == Prediction::correct, "and for the second");
  check(predictor.predict(branch(0x14, false)) == Prediction::correct, "not taken needs no target");
  check_equal(predictor.statistics().misfetches.value(), 1, "misfetches");
  check_equal(predictor.statistics().btb_misses.value(), 2, "targets not known");
}

TEST(indirect_jumps_follow_the_path) {
  for (const std::int64_t tables : {0, 3}) {
    BranchSpec spec;
    spec.indirect_tables = tables;
    BranchPredictor predictor(spec);
    Random random(7, 8);
    int count = 0, in_turn = 0;
    for (int i = 0; i < 20'000; ++i) {
      // A switch whose case is told by two branches before it, and one that goes to four targets in turn.
      std::uint64_t which = 0;
      for (int bit = 0; bit < 2; ++bit) {
        const bool taken = random.below(2) == 1;
        predictor.predict(branch(0x5000 + 16 * static_cast<std::uint64_t>(bit), taken));
        which = which * 2 + taken;
      }
      const bool is_wrong = wrong(predictor, indirect(0x6000, 0x7000 + 256 * which));
      count += i >= 10'000 && is_wrong;
    }
    for (int i = 0; i < 20'000; ++i) {
      const bool is_wrong =
          wrong(predictor, indirect(0x6100, 0x8000 + 256 * (static_cast<std::uint64_t>(i) % 4)));
      in_turn += i >= 10'000 && is_wrong;
    }
    const double expected = tables == 0 ? 3.0 / 4 : 0;
    check_between(count / 10'000.0, expected - 0.02, expected + 0.02,
                  std::to_string(tables) + " tables, one of four cases");
    check_equal(in_turn, tables == 0 ? 10'000 : 0, std::to_string(tables) + " tables, four targets in turn");
  }
}

TEST(perfect_and_always_wrong_do_as_they_say) {
  BranchPredictor perfect(of_kind("perfect")), awful(of_kind("always_wrong"));
  Random random(9, 9);
  for (int i = 0; i < 1000; ++i) {
    const Record records[] = {branch(random.below(1000) * 2, random.below(2) == 1),
                              jump(random.below(1000) * 2, random.below(1000) * 2),
                              indirect(random.below(1000) * 2, random.below(1000) * 2),
                              indirect(random.below(1000) * 2, random.below(1000) * 2, Trait::returns)};
    for (const Record& record : records) {
      check(perfect.predict(record) == Prediction::correct, "perfect");
      check(awful.predict(record) == Prediction::mispredict, "always wrong");
    }
  }
  const BranchStatistics& counted = awful.statistics();
  check_equal(counted.conditional.value(), 1000, "conditional");
  check_equal(counted.conditional_mispredicts.value(), 1000, "conditional_mispredicts");
  check_equal(counted.jumps.value(), 1000, "jumps");
  check_equal(counted.indirect_mispredicts.value(), 1000, "indirect_mispredicts");
  check_equal(counted.return_mispredicts.value(), 1000, "return_mispredicts");
}

TEST(recorded_predictions_are_believed) {
  BranchPredictor predictor(of_kind("recorded"));
  const Record seen = branch(0x10, true);
  for (const Prediction each : {Prediction::correct, Prediction::misfetch, Prediction::mispredict}) {
    check(predictor.predict(seen, each) == each, "the outcome that was recorded");
  }
  check_equal(predictor.statistics().conditional.value(), 3, "branches");
  check_equal(predictor.statistics().conditional_mispredicts.value(), 1, "of them wrong");
}

TEST(wrong_parameters_are_refused) {
  const auto refuse = [](auto change, const std::string& word) {
    BranchSpec spec;
    change(spec);
    check_refused([&] { BranchPredictor predictor(spec); }, word);
  };
  refuse([](BranchSpec& spec) { spec.kind = "oracle"; }, "perfect");
  refuse([](BranchSpec& spec) { spec.base_entries = 1000; }, "base_entries");
  refuse([](BranchSpec& spec) { spec.table_entries = 1000; }, "table_entries");
  refuse([](BranchSpec& spec) { spec.longest_history = 6; }, "longest_history");
  refuse([](BranchSpec& spec) { spec.btb_ways = 3; }, "btb_ways");
  refuse([](BranchSpec& spec) { spec.indirect_history = 2; }, "indirect_history");
}

}  // namespace
