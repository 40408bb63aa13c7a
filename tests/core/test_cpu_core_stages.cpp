// SPDX-License-Identifier: Apache-2.0
// The stages of a core, each alone: fetch, dispatch, issue queues, the writing of committed stores, and the
// causes of cycles.
#include "cpu/core/cycle_account.hpp"
#include "cpu/core/dispatch_stage.hpp"
#include "cpu/core/fetch_stage.hpp"
#include "cpu/core/issue_queues.hpp"
#include "cpu/core/store_writer.hpp"
#include "test_checks.hpp"

using namespace manyscale;
using namespace manyscale::cpu;
using namespace manyscale::test;

namespace {

CoreSpec narrow() {
  CoreSpec spec;
  spec.fetch_width = spec.dispatch_width = 2;
  spec.fetch_bytes = 64;
  spec.reorder_buffer = 8;
  spec.issue_queue = 2;
  spec.load_queue = 1;
  spec.integer_registers = 33;
  spec.stores_per_cycle = 1;
  spec.outstanding_stores = 2;
  return spec;
}

Record of(InstructionClass kind, std::uint8_t flags = 0) {
  Record record;
  record.kind = kind;
  record.flags = flags;
  return record;
}

TEST(fetch_goes_on_when_the_branch_is_resolved) {
  FetchStage fetch(narrow());
  fetch.resume(10, Cause::idle);
  fetch.find_slot({}, {});
  fetch.take({});
  check_equal(fetch.cycle(), 10, "the first record");
  check(fetch.has_fetched(), "it waits for dispatch");
  Operation operation;
  fetch.hand_over(operation);
  check(!fetch.has_fetched() && operation.fetched == 10 && operation.front_cause == Cause::idle,
        "dispatch takes its cycle and cause");
  fetch.redirect_after(0);
  check(fetch.is_redirecting(), "behind a mispredicted branch");
  fetch.end_redirect(25, true);
  fetch.find_slot({}, {});
  check_equal(fetch.cycle(), 25, "when the branch is complete");
  fetch.take({});
  fetch.hand_over(operation);
  check(operation.front_cause == Cause::branch, "the branch is the cause");
}

TEST(a_missed_line_stalls_fetch_by_what_exceeds_a_hit) {
  CoreSpec spec = narrow();
  spec.l1i.tag_latency = 1;
  spec.l1i.data_latency = 2;
  FetchStage fetch(spec);
  fetch.resume(100, Cause::idle);
  check(fetch.needs_line(0x1004), "no line is there at first");
  fetch.begin_line(100);
  fetch.line_arrived(103);
  check_equal(fetch.cycle(), 100, "a hit of three cycles is part of the front end");
  check(fetch.enter_arrived_line(0x1004) && !fetch.needs_line(0x1000), "all of the line is there");
  check(fetch.needs_line(0x1040), "the next line is not");
  fetch.begin_line(100);
  fetch.wait_for_line();
  check(fetch.waits_for_line() && !fetch.enter_arrived_line(0x1040), "it is outstanding");
  fetch.line_arrived(120);
  check_equal(fetch.cycle(), 117, "17 cycles more than a hit");
  Operation operation;
  fetch.hand_over(operation);
  check(operation.stall_cause == Cause::fetch && operation.stall_cycles == 17, "for the CPI stack");
  fetch.translated(120);
  check_equal(fetch.cycle(), 120, "a translation takes until then");
}

TEST(dispatch_waits_for_each_buffer) {
  const CoreSpec spec = narrow();
  Window window(16);
  StoreQueue stores(1, false);
  const auto earliest = [&](DispatchStage& stage, const Record& record, std::uint64_t next) {
    return stage.earliest(record, {}, 5, window, next, stores);
  };
  const Record load = of(InstructionClass::load), add = of(InstructionClass::integer, Trait::writes_integer);
  DispatchStage loads(spec);
  check_equal(earliest(loads, load, 0), 5, "all is free");
  loads.take(load, {}, 5);
  check_equal(earliest(loads, load, 1), unknown, "the load queue is full until the first commits");
  loads.commit(load, 40);
  check_equal(earliest(loads, load, 1), 40, "and not a cycle longer");
  check_equal(loads.stall(DispatchStage::load_queue), 35, "cycles of the stall");
  DispatchStage registers(spec);
  registers.take(add, {}, 5);
  check_equal(earliest(registers, add, 1), unknown, "no physical register");
  registers.commit(add, 12);
  check_equal(earliest(registers, add, 1), 12, "one is free");
  check_equal(registers.stall(DispatchStage::registers), 7, "cycles of the stall");
  DispatchStage queue(spec);
  const Record plain = of(InstructionClass::integer);
  queue.take(plain, {}, 5);
  check_equal(earliest(queue, plain, 1), 5, "two a cycle");
  queue.take(plain, {}, 5);
  check_equal(earliest(queue, plain, 2), unknown, "the issue queue is full");
  queue.issue(plain, 9);
  check_equal(earliest(queue, plain, 2), 9, "until one issues");
  const Record store = of(InstructionClass::store);
  DispatchStage behind(spec);
  check_equal(earliest(behind, store, 0), 5, "a store queue entry");
  stores.enter(64, 8, 0, 0);
  check_equal(earliest(behind, store, 0), unknown, "the only one is taken");
  stores.write(0, 30);
  check_equal(earliest(behind, store, 0), 30, "until the store is written");
  check_equal(behind.stall(DispatchStage::store_queue), 25, "cycles of the stall");
}

TEST(classes_have_queues_of_their_own) {
  CoreSpec spec = narrow();
  spec.issue_queue = 1;
  spec.memory_queue = 1;
  IssueQueues queues(spec);
  queues.enter(InstructionClass::load, {});
  check_equal(queues.earliest(InstructionClass::integer, 3), 3, "a load takes no entry of the others");
  check_equal(queues.earliest(InstructionClass::store, 3), unknown, "but one of memory accesses");
  ElasticTiming waited;
  waited.waiters = 2;
  queues.enter(InstructionClass::divide, waited);
  queues.issue(InstructionClass::divide, 5);
  check_equal(queues.earliest(InstructionClass::integer, 6), unknown, "compacted waiters have entries");
  queues.complete(waited, 20);
  check_equal(queues.earliest(InstructionClass::integer, 6), 20, "until the result is there");
  spec.in_order = true;
  IssueQueues in_order(spec);
  in_order.enter(InstructionClass::divide, waited);
  in_order.issue(InstructionClass::divide, 5);
  check_equal(in_order.earliest(InstructionClass::integer, 6), 6, "in order they have none");
}

TEST(stores_are_written_in_order_and_within_limits) {
  StoreWriter writer(narrow());
  check(!writer.may_write(), "nothing has committed");
  for (int i = 0; i < 4; ++i) writer.commit();
  check_equal(writer.cycle_for(7, 0), 8, "a cycle after commit");
  writer.take(8);
  check_equal(writer.cycle_for(7, 0), 9, "one a cycle");
  check_equal(writer.cycle_for(7, 30), 30, "not in the past");
  writer.accept_part();
  writer.block();
  check(!writer.may_write() && writer.part() == 1, "the second part is blocked");
  writer.unblock();
  writer.take(9);
  check(writer.part() == 0 && writer.next() == 2, "the next store begins with its first part");
  writer.begin_miss();
  check(writer.may_write(), "one is outstanding");
  writer.begin_miss();
  check(!writer.may_write(), "two are the most");
  writer.end_miss();
  check(writer.may_write(), "until one is written");
}

TEST(every_cycle_has_one_cause) {
  CycleAccount account(true);
  Operation operation;
  operation.record.pc = 0x100;
  operation.dispatched = 9;
  operation.stall_cycles = 4;
  operation.front_cause = Cause::branch;
  operation.stall_cause = Cause::fetch;
  operation.ready = 15;
  operation.wait_cause = Cause::dependency;
  operation.issued = 17;
  operation.complete = 40;
  operation.cause = Cause::dram;
  operation.committed = 42;
  account.commit(operation);
  const CpiStack& stack = account.stack();
  check_equal(stack[Cause::branch], 6, "until it was fetched");
  check_equal(stack[Cause::fetch], 4, "the stall before dispatch");
  check_equal(stack[Cause::dependency], 5, "its operands");
  check_equal(stack[Cause::unit], 2, "a port");
  check_equal(stack[Cause::dram], 23, "its data");
  check_equal(stack[Cause::base], 2, "its commit");
  check_equal(stack.sum(), 42, "all of them");
  operation.committed = 43;
  account.commit(operation);
  check_equal(stack[Cause::base], 3, "the next cycle");
  account.charge(50, Cause::idle);
  check(account.until() == 50 && stack[Cause::idle] == 7, "nothing to do");
  const auto lines = account.hot_lines();
  check(lines.size() == 1 && lines[0].instructions == 2 && lines[0].misses == 2, "by address");
  check_equal(lines[0].stack.sum(), 43, "without the idle cycles");
}

}  // namespace
