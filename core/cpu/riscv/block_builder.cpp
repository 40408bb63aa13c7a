// SPDX-License-Identifier: Apache-2.0
#include "cpu/riscv/block_builder.hpp"

#include <cstring>
#include <stdexcept>
#include <string>

#include "cpu/riscv/handlers.hpp"
#include "cpu/riscv/interpreter.hpp"

namespace manyscale::cpu::riscv {

namespace {

constexpr std::uint8_t return_address = 1, other_return_address = 5;

bool is_link(std::uint8_t index) {
  return index == return_address || index == other_return_address;
}

// Instructions that do nothing if they write to x0.
bool is_pure(const Row& row) {
  const bool computes = row.kind == InstructionClass::integer || row.kind == InstructionClass::multiply ||
                        row.kind == InstructionClass::divide;
  return computes && row.shape->immediate != Immediate::csr;
}

// A marker instruction: slti x0, rs1, code, with a code above 0.
bool is_marker(const Instruction& instruction) {
  return instruction.is("slti") && instruction.rd == 0 && instruction.immediate > 0;
}

// Ends a block: what follows is not executed next, or must be looked for.
bool ends_block(const Instruction& instruction, bool records) {
  const InstructionClass kind = instruction.row->kind;
  if (kind == InstructionClass::indirect || kind == InstructionClass::system || instruction.is("fence.i"))
    return true;
  return records && (kind == InstructionClass::atomic || kind == InstructionClass::fence);
}

std::uint8_t source(File file, std::uint8_t index) {
  if (file == File::none) return 0;
  return file == File::floating ? index + 32 : index;
}

Note note_of(const Instruction& instruction) {
  const Row& row = *instruction.row;
  const Shape& shape = *row.shape;
  Note note;
  note.kind = row.kind;
  note.size = row.size;
  note.format = row.format;
  note.destination = source(shape.rd, instruction.rd);
  const std::uint8_t first = source(shape.rs1, instruction.rs1);
  const std::uint8_t second = source(shape.rs2, instruction.rs2);
  note.sources = {first, second, source(shape.rs3, instruction.rs3)};
  if (row.kind == InstructionClass::store) note.sources = {second, first, 0};  // data first
  if (instruction.length == 2) note.flags |= Trait::compressed;
  if (note.destination >= 32) {
    note.flags |= Trait::writes_float;
  } else if (note.destination != 0) {
    note.flags |= Trait::writes_integer;
  }
  const bool calls = is_link(instruction.rd);
  if ((row.kind == InstructionClass::jump || row.kind == InstructionClass::indirect) && calls)
    note.flags |= Trait::call;
  if (row.kind == InstructionClass::indirect && is_link(instruction.rs1) &&
      !(calls && instruction.rd == instruction.rs1)) {
    note.flags |= Trait::returns;
  }
  if (row.kind == InstructionClass::system || row.kind == InstructionClass::atomic ||
      row.kind == InstructionClass::fence) {
    note.flags |= Trait::halts_stream;
  }
  return note;
}

template <class Op>
void annotate(Op& operation, const Instruction& instruction) {
  if constexpr (Op::records) operation.note = note_of(instruction);
}

// The operation of one instruction, apart from its index in the block.
template <class Op>
Op translate(const Instruction& instruction, std::uint64_t pc) {
  const SpecialHandlers<Op>& special = special_handlers<Op>();
  Op operation;
  operation.pc = pc;
  if (instruction.row == nullptr) {
    const bool known = !instruction.unsupported.empty();
    operation.run = special.illegal;
    operation.immediate =
        static_cast<std::int32_t>(known ? Fault::Cause::unsupported : Fault::Cause::illegal);
    return operation;
  }
  const Row& row = *instruction.row;
  const Handler<Op>& handler = handler_of<Op>(row);
  operation.run = handler.run;
  operation.rd = instruction.rd;
  operation.rs1 = instruction.rs1;
  operation.rs2 = instruction.rs2;
  operation.immediate = static_cast<std::int32_t>(instruction.immediate);
  annotate(operation, instruction);
  if (row.shape->rounds) {
    operation.immediate = instruction.rs3 << 8 | instruction.rounding;
    if (instruction.rounding != Rounding::dynamic) operation.run = handler.run_rounded;
  } else if (is_pure(row) && instruction.rd == 0) {
    operation.run = special.nothing;
  } else if (row.kind == InstructionClass::branch) {
    operation.link = &BlockCache<Op>::nowhere;
  } else if (row.kind == InstructionClass::jump) {
    operation.value = pc + instruction.length;
  } else if (row.kind == InstructionClass::indirect) {
    operation.value = pc + instruction.length;
    if (instruction.rd == 0) operation.run = special.jump_register;
  } else if (instruction.is("lui")) {
    operation.value = static_cast<std::uint64_t>(instruction.immediate);
  } else if (instruction.is("auipc")) {
    operation.value = pc + static_cast<std::uint64_t>(instruction.immediate);
  } else if (instruction.is("addi") && instruction.rs1 == 0) {
    operation.run = special.constant;
    operation.value = static_cast<std::uint64_t>(instruction.immediate);
  } else if (instruction.is("addi") && instruction.immediate == 0) {
    operation.run = special.copy;
  } else if (instruction.is("add") && (instruction.rs1 == 0 || instruction.rs2 == 0)) {
    operation.run = special.copy;
    operation.rs1 = instruction.rs1 | instruction.rs2;
  }
  return operation;
}

// An operation that is not an instruction, after so many of the block.
template <class Op>
Op pseudo(Run<Op> run, std::uint64_t pc, std::int64_t done) {
  Op operation;
  operation.run = run;
  operation.pc = pc;
  operation.done = static_cast<std::uint8_t>(done);
  return operation;
}

}  // namespace

template <class Op>
const Handler<Op>& handler_of(const Row& row) {
  static const std::vector<Handler<Op>> by_row = [] {
    std::vector<Handler<Op>> found;
    for (const Row& each : instruction_rows()) {
      for (const auto group :
           {integer_handlers<Op>(), memory_handlers<Op>(), control_handlers<Op>(), float_handlers<Op>()}) {
        for (const Handler<Op>& handler : group) {
          if (handler.name == each.name) found.push_back(handler);
        }
      }
    }
    if (found.size() != instruction_rows().size())
      throw std::logic_error("an instruction has not one handler");
    return found;
  }();
  return by_row[&row - instruction_rows().data()];
}

std::optional<Instruction> BlockBuilder::fetch(std::uint64_t pc) {
  auto half = [this](std::uint64_t at) -> std::optional<std::uint32_t> {
    const std::uint8_t* host = memory_.host(at, Permission::execute);
    if (host == nullptr) return std::nullopt;
    std::uint16_t bits = 0;
    std::memcpy(&bits, host, 2);
    return bits;
  };
  const auto low = half(pc);
  if (!low) return std::nullopt;
  if (is_compressed(*low)) return decode(*low);
  const auto high = half(pc + 2);
  if (!high) return std::nullopt;
  return decode(*low | *high << 16);
}

template <class Op>
std::int64_t BlockBuilder::build(std::uint64_t pc, std::int64_t most, std::vector<Op>& operations,
                                 bool& marked) {
  const SpecialHandlers<Op>& special = special_handlers<Op>();
  operations.clear();
  marked = false;
  std::int64_t done = 0;
  bool open = true;
  while (open && done < most) {
    const std::optional<Instruction> fetched = fetch(pc);
    if (!fetched) break;
    const Instruction& instruction = *fetched;
    const bool is_mark = is_marker(instruction);
    if (is_mark || watched_.contains(pc)) {
      if (done != 0) break;  // markers are only at the start of blocks
      Op stop = pseudo<Op>(special.marker, pc, 1);
      stop.rs1 = is_mark ? instruction.rs1 : 0;
      stop.immediate = is_mark ? static_cast<std::int32_t>(instruction.immediate) : -1;
      operations.push_back(stop);
      marked = true;
    }
    Op operation = translate<Op>(instruction, pc);
    operation.done = static_cast<std::uint8_t>(++done);
    pc += instruction.length;
    if (instruction.row == nullptr) {
      operations.push_back(operation);
      open = false;
      break;
    }
    const Row& row = *instruction.row;
    const bool is_jump = row.kind == InstructionClass::jump;
    if (is_jump) pc += static_cast<std::uint64_t>(instruction.immediate) - instruction.length;
    // What has no effect needs no operation, unless it has a record.
    const bool silent = !Op::records && instruction.rd == 0 && (is_jump || is_pure(row));
    if (!silent) operations.push_back(operation);
    open = !ends_block(instruction, Op::records);
    if (open && row.shape->rd == File::integer && instruction.rd == 0 && !is_jump && !is_pure(row)) {
      operations.push_back(pseudo<Op>(special.clear_zero, pc, done));
    }
  }
  if (done != 0 && open) operations.push_back(going_on<Op>(pc, done));
  return done;
}

template <class Op>
Op BlockBuilder::going_on(std::uint64_t pc, std::int64_t done) {
  Op operation = pseudo<Op>(special_handlers<Op>().go_on, pc, done);
  operation.link = &BlockCache<Op>::nowhere;
  return operation;
}

template RecordingOperation BlockBuilder::going_on(std::uint64_t, std::int64_t);
template std::int64_t BlockBuilder::build(std::uint64_t, std::int64_t, std::vector<PlainOperation>&, bool&);
template std::int64_t BlockBuilder::build(std::uint64_t, std::int64_t, std::vector<RecordingOperation>&,
                                          bool&);

}  // namespace manyscale::cpu::riscv
