// SPDX-License-Identifier: Apache-2.0
// What operands wait for when their producers are compacted, step by step.
#include "cpu/trace/operand_resolver.hpp"
#include "test_checks.hpp"
#include "test_compaction.hpp"

using namespace manyscale;
using namespace manyscale::cpu;
using namespace manyscale::test;

namespace {

const Latencies& table() {
  static const Latencies latencies{CoreSpec{}};
  return latencies;
}

constexpr CompactionLimits limits{
    .width = 4, .window = 64, .reorder_buffer = 64, .model_ports = false, .tuning = fitted};

// A window with the instructions of a test, four to a cycle.
struct Stream {
  CompactionWindow window{table(), limits};
  OperandResolver resolver{window};
  std::uint64_t slot = 0;

  std::uint64_t add(InstructionClass kind, bool is_node, const Dependences& dependences = {}) {
    TraceNode record;
    record.kind = kind;
    CompactionEntry& entry = window.push(record, {});
    entry.is_node = is_node;
    entry.dependences = dependences;
    entry.dispatch_slot = slot++;
    entry.complete = entry.dispatch_slot / limits.width + 1 + window.hit_latency(record);
    window.advance_next();
    return window.next() - 1;
  }
  // One that is about to be resolved.
  std::uint64_t add_last() { return add(InstructionClass::integer, false); }
};

std::uint16_t back(std::uint64_t from, std::uint64_t to) {
  return static_cast<std::uint16_t>(from - to);
}

TEST(a_node_is_waited_for_itself) {
  Stream stream;
  const std::uint64_t load = stream.add(InstructionClass::load, true), last = stream.add_last();
  const SourceOperand operand{back(last, load), 3, 1};
  const auto found = stream.resolver.collect(last, {&operand, 1}, {});
  check_equal(found.count, std::size_t{1}, "dependences");
  check(found.nodes[0].node == load && found.nodes[0].delay == 3 && found.nodes[0].l1_hits == 1,
        "the load, with the latency between");
  check(stream.window[last].waits_for_memory, "which comes from memory");
}

TEST(a_compacted_producer_hands_its_dependences_on) {
  Stream stream;
  const std::uint64_t load = stream.add(InstructionClass::load, true);
  const std::uint64_t sum = stream.add(InstructionClass::integer, false, {{{load, 2}}});
  const std::uint64_t last = stream.add_last();
  const SourceOperand operand{back(last, sum)};
  const auto found = stream.resolver.collect(last, {&operand, 1}, {});
  check_equal(found.count, std::size_t{1}, "dependences");
  check_equal(found.nodes[0].node, load, "what the sum waits for");
  check_equal(found.nodes[0].delay, 3u, "with the latency of the sum on top");
  check_equal(found.heaviest, sum, "the only compacted producer");
}

TEST(the_longest_delay_on_a_node_counts) {
  Stream stream;
  const std::uint64_t load = stream.add(InstructionClass::load, true);
  const std::uint64_t fast = stream.add(InstructionClass::integer, false, {{{load, 1}}});
  const std::uint64_t slow = stream.add(InstructionClass::multiply, false, {{{load, 1}}});
  const std::uint64_t last = stream.add_last();
  const SourceOperand operands[] = {{back(last, slow)}, {back(last, fast)}};
  const auto found = stream.resolver.collect(last, operands, {});
  check_equal(found.count, std::size_t{1}, "one node");
  check_equal(found.nodes[0].delay, 4u, "three cycles of the multiplication");
}

TEST(a_chain_from_dispatch_is_what_is_left_of_it) {
  Stream stream;
  const std::uint64_t first = stream.add(InstructionClass::divide, false);
  const std::uint64_t last = stream.add_last();
  const SourceOperand operand{back(last, first)};
  const auto found = stream.resolver.collect(last, {&operand, 1}, {});
  TraceNode divide;
  divide.kind = InstructionClass::divide;
  check_equal(found.count, std::size_t{0}, "no node");
  check_equal(found.dispatch.chain_start, first, "the chain begins with the division");
  check_equal(found.dispatch.delay, table().latency(divide), "a quarter of a cycle of it has passed");
}

TEST(nodes_that_are_over_are_dropped) {
  Stream stream;
  const std::uint64_t early = stream.add(InstructionClass::integer, true);
  const std::uint64_t load = stream.add(InstructionClass::load, true);
  stream.slot += 400;
  const std::uint64_t last = stream.add_last();
  const SourceOperand operands[] = {{back(last, early)}, {back(last, load)}};
  auto found = stream.resolver.collect(last, operands, {});
  check_equal(found.count, std::size_t{2}, "before");
  stream.resolver.drop_covered(last, found);
  check_equal(found.count, std::size_t{1}, "an addition is over long before dispatch");
  check_equal(found.nodes[0].node, load, "of a load nobody knows");
}

TEST(a_later_node_covers_what_it_waits_for) {
  Stream stream;
  const std::uint64_t first = stream.add(InstructionClass::load, true);
  const std::uint64_t second = stream.add(InstructionClass::load, true, {{{first, 5}}});
  const std::uint64_t last = stream.add_last();
  const SourceOperand operands[] = {{back(last, first), 5}, {back(last, second)}};
  auto found = stream.resolver.collect(last, operands, {});
  stream.resolver.drop_covered(last, found);
  check_equal(found.count, std::size_t{1}, "dependences");
  check_equal(found.nodes[0].node, second, "the second load waits as long for the first");
  const SourceOperand longer[] = {{back(last, first), 6}, {back(last, second)}};
  found = stream.resolver.collect(last, longer, {});
  stream.resolver.drop_covered(last, found);
  check_equal(found.count, std::size_t{2}, "a cycle more is not covered");
}

TEST(a_node_covers_a_shorter_delay_after_dispatch) {
  Stream stream;
  const std::uint64_t load = stream.add(InstructionClass::load, true);
  const std::uint64_t last = stream.add_last();
  const SourceOperand operand{back(last, load)};
  TraceNode record;
  record.kind = InstructionClass::load;
  const std::uint32_t hit = stream.window.hit_latency(record);
  for (const std::uint32_t delay : {hit, hit + 1}) {
    const Dependence own{Dependence::on_dispatch, delay, 0, last, 0};
    auto found = stream.resolver.collect(last, {&operand, 1}, own);
    stream.resolver.drop_covered_dispatch(last, found);
    check_equal(found.dispatch.delay, delay == hit ? 0u : delay, "delay after dispatch");
  }
}

TEST(too_many_dependences_split_the_heaviest_producer) {
  Stream stream;
  std::uint64_t loads[4];
  for (std::uint64_t& load : loads) load = stream.add(InstructionClass::load, true);
  const std::uint64_t one = stream.add(InstructionClass::integer, false, {{{loads[0], 0}}});
  const std::uint64_t three =
      stream.add(InstructionClass::integer, false, {{{loads[1], 0}, {loads[2], 0}, {loads[3], 0}}});
  const std::uint64_t last = stream.add_last();
  const SourceOperand operands[] = {{back(last, one)}, {back(last, three)}};
  Dependences dependences{};
  check(!stream.resolver.resolve(last, operands, {}, dependences, false), "four do not fit");
  check(!stream.window[three].is_node, "nothing becomes a node unless it may");
  check(stream.resolver.resolve(last, operands, {}, dependences, true), "they fit with one more node");
  check(stream.window[three].is_node && !stream.window[one].is_node, "the producer with three");
  check(dependences[0].node == loads[0] && dependences[1].node == three, "what is waited for");
}

TEST(a_long_chain_is_split_at_its_start) {
  Stream stream;
  const std::uint64_t first = stream.add(InstructionClass::divide, false);
  const std::uint64_t last = stream.add_last();
  const SourceOperand operand{back(last, first)};
  Dependences dependences{};
  check(stream.resolver.resolve(last, {&operand, 1}, {}, dependences, true), "resolved");
  check(stream.window[first].is_node, "a division takes longer than a delay after dispatch may");
  check(dependences[0].node == first && dependences[0].delay == 0, "its result is waited for");
}

}  // namespace
