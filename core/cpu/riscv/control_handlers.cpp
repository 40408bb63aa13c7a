// SPDX-License-Identifier: Apache-2.0
// Constants, branches, jumps, fences, control registers, and operations that are not instructions.
#include <array>
#include <cstdint>
#include <optional>

#include "cpu/riscv/handlers.hpp"
#include "cpu/riscv/host_float.hpp"
#include "cpu/riscv/machine.hpp"

namespace manyscale::cpu::riscv {

namespace {

constexpr auto equal = [](u64 a, u64 b) { return a == b; };
constexpr auto not_equal = [](u64 a, u64 b) { return a != b; };
constexpr auto less = [](u64 a, u64 b) { return static_cast<i64>(a) < static_cast<i64>(b); };
constexpr auto not_less = [](u64 a, u64 b) { return static_cast<i64>(a) >= static_cast<i64>(b); };
constexpr auto less_unsigned = [](u64 a, u64 b) { return a < b; };
constexpr auto not_less_unsigned = [](u64 a, u64 b) { return a >= b; };

template <class Op>
u64 behind(const Op* op) {
  if constexpr (Op::records) return op->pc + ((op->note.flags & Trait::compressed) != 0 ? 2 : 4);
  return 0;  // only records ask
}

template <class Op, auto condition>
const Op* branch(const Op* op, Hart* h, Machine* m) {
  if (condition(h->x[op->rs1], h->x[op->rs2])) {
    note_jump(op, m, op->pc + static_cast<i64>(op->immediate), true);
    return follow_link(op, h, m);
  }
  note_jump(op, m, behind(op), false);
  return next(op, h, m);
}

// The block follows the jump, so only the return address and the record are left to do.
template <class Op>
const Op* jump(const Op* op, Hart* h, Machine* m) {
  note_jump(op, m, op->pc + static_cast<i64>(op->immediate), true);
  if (op->rd != 0) h->x[op->rd] = op->value;
  return next(op, h, m);
}

template <class Op, bool links>
const Op* jump_register(const Op* op, Hart* h, Machine* m) {
  const u64 target = (h->x[op->rs1] + static_cast<u64>(static_cast<i64>(op->immediate))) & ~u64{1};
  if constexpr (links) h->x[op->rd] = op->value;
  note_jump(op, m, target, true);
  const Block<Op>* block = m->cache<Op>().jump(target);
  const i64 remaining = m->remaining - op->done;
  if (block->pc != target || remaining < block->length) [[unlikely]]
    return find_block(op, h, m, target, false);
  m->remaining = remaining;
  return enter(block->operations, h, m);
}

template <class Op>
const Op* go_on(const Op* op, Hart* h, Machine* m) {
  return follow_link(op, h, m);
}

template <class Op>
const Op* fence(const Op* op, Hart* h, Machine* m) {
  if constexpr (Op::records) {
    note(op, m);
    return stop_before(op, h, m, Stop::ordered);
  }
  return next(op, h, m);
}

template <class Op>
const Op* fence_instructions(const Op* op, Hart* h, Machine* m) {
  if constexpr (Op::records) return fence(op, h, m);
  find_block(op, h, m, op->pc + 4, false);
  m->pause = Pause::drop_code;
  return nullptr;
}

template <class Op>
const Op* system_call(const Op* op, Hart* h, Machine* m) {
  note(op, m);
  return stop_before(op, h, m, Stop::system_call);
}

template <class Op>
const Op* breakpoint(const Op* op, Hart* h, Machine* m) {
  return stop_before(op, h, m, Stop::breakpoint);
}

template <class Op>
std::optional<u64> read_control(const Op* op, Hart* h, Machine* m, std::uint32_t number) {
  const u64 executed = static_cast<u64>(m->budget - m->remaining) + op->done - 1;
  // Without a simulated time, instructions count for it; else the caller's time is exact.
  const u64 passed = Op::records ? 0 : executed;
  switch (number) {
    case ControlRegister::fflags:
    case ControlRegister::frm:
    case ControlRegister::fcsr:
      host_float::collect(*h);
      if (number == ControlRegister::fflags) return h->fcsr & 0x1f;
      return number == ControlRegister::frm ? h->fcsr >> 5 & 7 : h->fcsr & 0xff;
    case ControlRegister::cycle:
      return m->cycles + passed;
    case ControlRegister::time:
      return m->ticks + passed;
    case ControlRegister::instret:
      return h->retired + executed;
    default:
      return std::nullopt;
  }
}

bool write_control(Hart* h, Machine* m, std::uint32_t number, u64 value) {
  const auto bits = static_cast<std::uint32_t>(value);
  if (number == ControlRegister::fflags) {
    h->fcsr = (h->fcsr & ~0x1fU) | (bits & 0x1f);
  } else if (number == ControlRegister::frm) {
    h->fcsr = (h->fcsr & ~0xe0U) | (bits & 7) << 5;
  } else if (number == ControlRegister::fcsr) {
    h->fcsr = bits & 0xff;
  } else {
    return false;
  }
  host_float::set_rounding(rounding_of(*h));
  m->unusual_rounding = rounding_of(*h) > Rounding::up;
  return true;
}

// Registers of the vector extension, whose absence is not the program's mistake.
bool is_vector_register(std::uint32_t number) {
  return (number >= 0x008 && number <= 0x00f) || (number >= 0xc20 && number <= 0xc22);
}

enum class Change : std::uint8_t { write, set, clear };

template <class Op, Change change, bool from_register>
const Op* control_register(const Op* op, Hart* h, Machine* m) {
  const auto number = static_cast<std::uint32_t>(op->immediate);
  const std::optional<u64> old = read_control(op, h, m, number);
  if (!old) {
    return fault(op, h, m, is_vector_register(number) ? Fault::Cause::unsupported : Fault::Cause::illegal,
                 op->pc);
  }
  const u64 operand = from_register ? h->x[op->rs1] : op->rs1;
  if (change == Change::write || op->rs1 != 0) {
    const u64 value = change == Change::write ? operand
                      : change == Change::set ? *old | operand
                                              : *old & ~operand;
    if (!write_control(h, m, number, value)) return fault(op, h, m, Fault::Cause::illegal, op->pc);
  }
  note(op, m);
  if (op->rd != 0) h->x[op->rd] = *old;
  return next(op, h, m);
}

template <class Op>
const Op* nothing(const Op* op, Hart* h, Machine* m) {
  note(op, m);
  return next(op, h, m);
}

template <class Op>
const Op* constant(const Op* op, Hart* h, Machine* m) {
  note(op, m);
  h->x[op->rd] = op->value;
  return next(op, h, m);
}

template <class Op>
const Op* copy(const Op* op, Hart* h, Machine* m) {
  note(op, m);
  h->x[op->rd] = h->x[op->rs1];
  return next(op, h, m);
}

template <class Op>
const Op* clear_zero(const Op* op, Hart* h, Machine* m) {
  h->x[0] = 0;
  return next(op, h, m);
}

template <class Op>
const Op* marker(const Op* op, Hart* h, Machine* m) {
  m->marker = {op->pc, h->x[op->rs1], op->immediate};
  return stop_before(op, h, m, Stop::marker);
}

template <class Op>
const Op* illegal(const Op* op, Hart* h, Machine* m) {
  return fault(op, h, m, static_cast<Fault::Cause>(op->immediate), op->pc);
}

}  // namespace

template <class Op>
std::span<const Handler<Op>> control_handlers() {
  static constexpr auto handlers = std::to_array<Handler<Op>>({
      {"lui", constant<Op>},
      {"auipc", constant<Op>},
      {"jal", jump<Op>},
      {"jalr", jump_register<Op, true>},
      {"beq", branch<Op, equal>},
      {"bne", branch<Op, not_equal>},
      {"blt", branch<Op, less>},
      {"bge", branch<Op, not_less>},
      {"bltu", branch<Op, less_unsigned>},
      {"bgeu", branch<Op, not_less_unsigned>},
      {"fence", fence<Op>},
      {"fence.i", fence_instructions<Op>},
      {"ecall", system_call<Op>},
      {"ebreak", breakpoint<Op>},
      {"csrrw", control_register<Op, Change::write, true>},
      {"csrrs", control_register<Op, Change::set, true>},
      {"csrrc", control_register<Op, Change::clear, true>},
      {"csrrwi", control_register<Op, Change::write, false>},
      {"csrrsi", control_register<Op, Change::set, false>},
      {"csrrci", control_register<Op, Change::clear, false>},
  });
  return handlers;
}

template <class Op>
const SpecialHandlers<Op>& special_handlers() {
  static constexpr SpecialHandlers<Op> handlers{
      nothing<Op>, constant<Op>,   copy<Op>,   jump_register<Op, false>,
      go_on<Op>,   clear_zero<Op>, marker<Op>, illegal<Op>};
  return handlers;
}

template std::span<const Handler<PlainOperation>> control_handlers();
template std::span<const Handler<RecordingOperation>> control_handlers();
template const SpecialHandlers<PlainOperation>& special_handlers();
template const SpecialHandlers<RecordingOperation>& special_handlers();

}  // namespace manyscale::cpu::riscv
