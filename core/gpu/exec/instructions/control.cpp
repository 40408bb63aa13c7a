// SPDX-License-Identifier: Apache-2.0
// Branches, calls and the end. The flow itself is carried out by the warp; here it is only described.
#include "gpu/exec/builtins.hpp"
#include "gpu/exec/fault.hpp"
#include "gpu/exec/function_decoder.hpp"
#include "gpu/exec/opcodes.hpp"
#include "gpu/exec/warp.hpp"

namespace manyscale::gpu {
namespace {

using ptx::Operand;
using ptx::OperandKind;
using ptx::Type;

void decode_bra(Builder& builder) {
  builder.ignore({"uni"});
  builder.expect_operands(1);
  const Operand& target = builder.operand(0);
  if (target.kind != OperandKind::label) builder.unsupported("its target is not a label");
  builder.emit(nullptr, Class::branch, Flow::branch).aux = target.id;
}

void decode_brx(Builder& builder) {
  if (!builder.accept("idx")) builder.unsupported("only brx.idx is known");
  builder.ignore({"uni"});
  builder.expect_operands(2);
  const Slot index = builder.source(0, Type::b32);
  const Operand& table = builder.operand(1);
  if (table.kind != OperandKind::table || table.id >= builder.decoder().code().branch_tables.size())
    builder.unsupported("its second operand is not a list of .branchtargets");
  Op& op = builder.emit(nullptr, Class::branch, Flow::branch_table);
  op.src[0] = index;
  op.aux = table.id;
}

void decode_ret(Builder& builder) {
  builder.ignore({"uni"});
  builder.emit(nullptr, Class::branch, Flow::ret);
}

void decode_exit(Builder& builder) {
  builder.emit(nullptr, Class::branch, Flow::exit);
}

void trap(Warp& warp, const Op&) {
  throw Fault("trap: the program gave up", static_cast<unsigned>(std::countr_zero(warp.mask)),
              FaultKind::trap);
}

void decode_trap(Builder& builder) {
  builder.emit(trap, Class::branch);
}

void do_nothing(Warp&, const Op&) {}

void decode_brkpt(Builder& builder) {
  builder.emit(do_nothing, Class::other);
}

// Where the variables between the parentheses of a call lie in the caller's frame; registers come with their
// slots.
void decode_arguments(Builder& builder, const Operand& list, bool written,
                      std::vector<ParameterLocation>& locations, std::vector<Slot>& registers,
                      std::vector<unsigned>& bytes) {
  FunctionDecoder& decoder = builder.decoder();
  for (const Operand& argument : builder.children(list)) {
    if (argument.kind == OperandKind::variable && argument.is_local &&
        decoder.in_frame(decoder.variable(argument))) {
      locations.push_back(
          {decoder.frame_offset(argument.id), static_cast<std::uint32_t>(decoder.variable(argument).size)});
    } else if (argument.kind == OperandKind::reg) {
      bytes.push_back(builder.register_bytes(argument, 0));
      registers.push_back(written ? decoder.write(argument.id, 0) : decoder.read(argument.id, 0));
    } else {
      builder.unsupported("'" + std::string(argument.text) + "' cannot be passed to a function");
    }
  }
}

// `call (results), callee, (arguments), table;` of which everything but the callee may be missing.
void decode_call(Builder& builder) {
  builder.ignore({"uni"});
  builder.expect_operands(1, 4);
  CallSite site;
  std::vector<unsigned> result_bytes;
  std::vector<unsigned> argument_bytes;
  const Operand* callee = nullptr;
  for (unsigned i = 0; i < builder.operands(); ++i) {
    const Operand& operand = builder.operand(i);
    if (operand.kind == OperandKind::list && callee == nullptr) {
      decode_arguments(builder, operand, true, site.results, site.register_results, result_bytes);
    } else if (operand.kind == OperandKind::list) {
      decode_arguments(builder, operand, false, site.arguments, site.register_arguments, argument_bytes);
    } else if (callee == nullptr) {
      callee = &operand;
    }
  }
  if (callee == nullptr) builder.unsupported("it names no function");
  FunctionDecoder& decoder = builder.decoder();
  if (callee->kind == OperandKind::reg) {
    const Slot address = builder.source(*callee, Type::b64);
    site.callee = ptx::kNone;
    Op& op = builder.emit(nullptr, Class::branch, Flow::call_indirect);
    op.src[0] = address;
    op.aux = decoder.new_call(std::move(site));
    return;
  }
  if (callee->kind != OperandKind::function) builder.unsupported("it calls something that is not a function");
  const ptx::Function& function = builder.decoder().module().functions[callee->id];
  site.callee = decoder.program().program.code_of(callee->id);
  if (!function.has_body) return decode_builtin(builder, function.name, std::move(site));
  if (function.register_parameters) {
    auto check = [&](const std::vector<std::uint32_t>& ids, const std::vector<unsigned>& given) {
      if (ids.size() != given.size())
        builder.unsupported("it passes another number of values than the function takes");
      for (std::size_t i = 0; i < ids.size(); ++i) {
        const Type type = function.registers[ids[i]].type;
        const unsigned bytes = type == Type::pred ? 0 : std::max(ptx::size_of(type), 2U);
        if (bytes != given[i])
          builder.unsupported("it passes a value of another size than the function takes");
      }
    };
    check(function.parameters, argument_bytes);
    check(function.results, result_bytes);
  } else if (function.parameters.size() != site.arguments.size() ||
             function.results.size() < site.results.size()) {
    builder.unsupported("it passes another number of values than the function takes");
  }
  Op& op = builder.emit(nullptr, Class::branch, Flow::call);
  op.aux = decoder.new_call(std::move(site));
}

constexpr Opcode kOpcodes[] = {
    {"bra", decode_bra},   {"brx", decode_brx},   {"ret", decode_ret},     {"exit", decode_exit},
    {"trap", decode_trap}, {"call", decode_call}, {"brkpt", decode_brkpt},
};

}  // namespace

std::span<const Opcode> control_opcodes() {
  return kOpcodes;
}

}  // namespace manyscale::gpu
