// SPDX-License-Identifier: Apache-2.0
#include "gpu/lower/sequence.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "gpu/lower/expansions_sm70.hpp"

namespace manyscale::gpu {

using ptx::Operand;
using ptx::OperandKind;
using ptx::Type;

namespace {

// Rows of kExpansions by opcode.
const std::unordered_map<std::string_view, std::vector<const ExpandedInstruction*>>& expansions_by_opcode() {
  static const auto table = [] {
    std::unordered_map<std::string_view, std::vector<const ExpandedInstruction*>> result;
    for (const ExpandedInstruction& row : kExpansions) result[row.opcode].push_back(&row);
    return result;
  }();
  return table;
}

Sequence alone(InstructionKind kind) {
  return {{}, kind, 1};
}

// Whether a value of 16 bits has the bits above them as a comparison needs them: a load extends it.
bool is_extended(const Values& values, const Source& source, bool is_signed) {
  if (source.kind != SourceKind::reg) return true;
  const std::uint32_t made = values.definition(source.reg());
  return made != kNoOperation && values.info(made).kind == Class::load &&
         !(is_signed && values.type(made) == Type::u16);
}

InstructionKind memory_kind(const Values& values, std::uint32_t op) {
  const OpInfo& info = values.info(op);
  const std::string_view name = values.opcode(op);
  const bool shared = values.has(op, "shared") || values.has(op, "shared::cta");
  if (info.kind == Class::atomic) {
    if (shared) return InstructionKind::atomic_shared;
    const bool used = !values.writes(op).empty() && !values.users(values.result(op)).empty();
    return name == "red" || !used ? InstructionKind::reduce_global : InstructionKind::atomic_global;
  }
  const bool load = info.kind == Class::load;
  if (shared || name == "ldmatrix" || name == "stmatrix")
    return load ? InstructionKind::load_shared : InstructionKind::store_shared;
  if (values.has(op, "local") || values.has(op, "param"))
    return load ? InstructionKind::load_local : InstructionKind::store_local;
  if (load && values.has(op, "const")) return InstructionKind::load_constant;
  return load ? InstructionKind::load_global : InstructionKind::store_global;
}

// A conversion between integers is a shift or a permutation; with floats it takes the slow lanes.
Sequence conversion(const Values& values, std::uint32_t op) {
  const Type to = values.type(op, 0);
  const Type from = values.type(op, 1);
  if (!ptx::is_float(to) && !ptx::is_float(from)) {
    const unsigned to_bytes = ptx::size_of(to);
    const unsigned from_bytes = ptx::size_of(from);
    if (from_bytes == 4 && values.is_narrow(values.result(op))) return {};
    const bool narrow_signed = ptx::is_signed(from) && from_bytes <= 2;
    if (to_bytes == 8) return {narrow_signed ? ">LOP3 >LOP3"_steps : ">LOP3"_steps};
    if (to_bytes == 1 || (from_bytes == 1 && to_bytes == 2))
      return {ptx::is_signed(to_bytes == 1 ? to : from) ? ">LOP3 >LOP3"_steps : ">LOP3"_steps};
    return {">LOP3"_steps};
  }
  if (to == Type::f32 && from == Type::f32)
    return {values.has(op, "sat") || values.has(op, "ftz") ? ">FFMA"_steps : ">F2F"_steps};
  if (from == Type::f16 && to == Type::f32) return {">HFMA2"_steps};
  if (to == Type::f16x2 || to == Type::bf16x2 || to == Type::tf32) return {">FFMA"_steps};
  if (!ptx::is_float(to) && ptx::size_of(to) == 1)
    return {ptx::is_signed(to) ? ">F2F >LOP3 >LOP3"_steps : ">F2F >LOP3"_steps};
  return {">F2F"_steps};
}

void read_shape(std::string_view modifier, unsigned& m, unsigned& n, unsigned& k) {
  unsigned sizes[3] = {0, 0, 0};
  int index = -1;
  for (char c : modifier) {
    if (c == 'm' || c == 'n' || c == 'k') {
      index = c == 'm' ? 0 : c == 'n' ? 1 : 2;
    } else if (c >= '0' && c <= '9' && index >= 0) {
      sizes[index] = std::min(1024U, sizes[index] * 10 + static_cast<unsigned>(c - '0'));
    } else {
      return;
    }
  }
  if (sizes[0] == 0 || sizes[1] == 0 || sizes[2] == 0) return;
  m = sizes[0];
  n = sizes[1];
  k = sizes[2];
}

// Steps of a tensor core: a Volta HMMA does 8 x 8 x 4 for the warp's four quads in two steps or four.
Sequence tensor(const Values& values, std::uint32_t op) {
  const bool shared = values.has(op, "shared") || values.has(op, "shared::cta");
  const std::string_view name = values.opcode(op);
  if ((name == "wmma" && values.has(op, "load")) || name == "ldmatrix")
    return alone(shared || name == "ldmatrix" ? InstructionKind::load_shared : InstructionKind::load_global);
  if ((name == "wmma" && values.has(op, "store")) || name == "stmatrix")
    return alone(shared || name == "stmatrix" ? InstructionKind::store_shared
                                              : InstructionKind::store_global);
  unsigned m = 8;
  unsigned n = 8;
  unsigned k = 4;
  for (std::string_view modifier : values.module().modifiers_of(*values.text(op)))
    read_shape(modifier, m, n, k);
  const InstructionKind kind = values.has(op, "f64")   ? InstructionKind::tensor_double
                               : values.has(op, "s32") ? InstructionKind::tensor_integer
                                                       : InstructionKind::tensor_half;
  return {{}, kind, std::max(1U, m * n * k / 256)};
}

Sequence comparison(const Values& values, std::uint32_t op) {
  const Type type = values.type(op);
  if (type == Type::f64) return {">DFMA"_steps};
  if (type == Type::f32) return {">FFMA"_steps};
  if (ptx::size_of(type) == 8) return {">IADD3 >IADD3"_steps};
  if (ptx::size_of(type) == 2 && !ptx::is_float(type)) {
    const Sources from = values.sources(op);
    const auto extensions = std::ranges::count_if(
        from.all(), [&](const Source& source) { return !is_extended(values, source, ptx::is_signed(type)); });
    return {extensions == 0   ? ">IADD3"_steps
            : extensions == 1 ? ">LOP3 >IADD3"_steps
                              : "LOP3 >LOP3 >IADD3"_steps};
  }
  return {">IADD3"_steps};
}

Sequence integer(const Values& values, Form form, std::uint32_t op) {
  const Type type = values.type(op);
  const bool wide = ptx::size_of(type) == 8 && !values.is_narrow(values.result(op));
  if (type == Type::f64) return {">DFMA"_steps};
  if (type == Type::f32) return {">FFMA"_steps};
  if (form == Form::multiply_add) return {wide ? ">IMAD.WIDE"_steps : ">IMAD"_steps};
  // A pointer that moves on in a loop: the pair of registers is written elsewhere and half of it moved back.
  const bool moves_on = values.definition(values.result(op)) == kNoOperation &&
                        values.sources(op).list[0] == Source{SourceKind::reg, values.result(op)};
  if (wide && form == Form::plain && moves_on) return {">IADD3 >IADD3 IADD3"_steps};
  return {wide ? ">IADD3 >IADD3"_steps : ">IADD3"_steps};
}

Sequence move(const Values& values, std::uint32_t op) {
  const ptx::Instruction& text = *values.text(op);
  const auto operands = values.module().operands_of(text);
  if (operands.size() > 1 && operands[1].kind == OperandKind::special)
    return alone(InstructionKind::move_special);
  // Pairs of registers are taken as they are.
  if (operands.size() > 1 &&
      (operands[0].kind == OperandKind::vector || operands[1].kind == OperandKind::vector))
    return {};
  const bool wide = !values.writes(op).empty() && values.words(values.result(op)) == 2;
  // One instruction clears a pair.
  if (wide && text.opcode == "mov" && values.sources(op).list[0].is_zero())
    return alone(InstructionKind::move_special);
  if (text.opcode == "selp" && values.type(op) == Type::f32) return {">FFMA"_steps};
  return {wide ? ">IADD3 IADD3"_steps : ">IADD3"_steps};
}

bool fits(const Values& values, const ExpandedInstruction& row, std::uint32_t op, Type type) {
  if (!row.type.empty() && ptx::name_of(type) != row.type) return false;
  if (!row.modifier.empty() && !values.has(op, row.modifier)) return false;
  if (!row.constant) return true;
  const Sources from = values.sources(op);
  return from.count != 0 && from.list[from.count - 1].is_constant();
}

// What the assembler makes of an instruction that has rows in the table of expansions; nothing if none fits.
std::optional<Sequence> expanded(const Values& values, std::uint32_t op) {
  const std::string_view name = values.opcode(op);
  const auto found = expansions_by_opcode().find(name);
  if (found == expansions_by_opcode().end()) return std::nullopt;
  const Type type = values.type(op);
  const bool flushes = values.has(op, "ftz") && type == Type::f32;
  for (const ExpandedInstruction* row : found->second) {
    if (!fits(values, *row, op, type)) continue;
    // Without denormal numbers an approximation is the special function alone.
    if (flushes && row->modifier == "approx")
      return Sequence{name == "div" ? ">MUFU >FFMA"_steps : ">MUFU"_steps};
    if (flushes && row->modifier == "full") return Sequence{"FFMA FFMA FFMA >MUFU >FFMA"_steps};
    if (flushes && (name == "rsqrt" || name == "lg2" || name == "ex2")) return Sequence{">MUFU"_steps};
    return Sequence{row->expansion};
  }
  return std::nullopt;
}

// Whether the result of an operation takes one register although its type has two words.
bool is_narrow(const Values& values, std::uint32_t op) {
  return values.writes(op).size() == 1 && values.is_narrow(values.result(op));
}
bool is_wide(const Values& values, std::uint32_t op) {
  return ptx::size_of(values.type(op)) == 8 && !is_narrow(values, op);
}

Sequence memory(const Values& values, std::uint32_t op) {
  // Arguments and results of functions are in registers.
  if (values.has(op, "param") && values.reads(op).size() <= 1 && !values.has(op, "v4"))
    return {is_wide(values, op) ? ">IADD3 IADD3"_steps : ">IADD3"_steps};
  return alone(memory_kind(values, op));
}

Sequence atomic(const Values& values, std::uint32_t op) {
  const InstructionKind kind = memory_kind(values, op);
  // Shared memory has no addition of floats: a loop of compare and swap.
  if (kind == InstructionKind::atomic_shared && ptx::is_float(values.type(op)))
    return {"IADD3 >FFMA >IADD3 BRA"_steps, kind, 1};
  return alone(kind);
}

Sequence product(const Values& values, std::uint32_t op) {
  if (is_narrow(values, op)) return {">IMAD"_steps};
  if (values.opcode(op) == "mad" && values.has(op, "wide")) return {">IMAD.WIDE >IADD3 >IADD3"_steps};
  const bool two_words = values.has(op, "wide") || values.has(op, "hi") || is_wide(values, op);
  return {two_words ? ">IMAD.WIDE"_steps : ">IMAD"_steps};
}

Sequence logic(const Values& values, Form form, std::uint32_t op) {
  if (!values.writes(op).empty() && values.is_predicate(values.result(op))) return {">LOP3"_steps};
  if (form == Form::test) return {">LOP3"_steps};
  const std::string_view name = values.opcode(op);
  const Sources from = values.sources(op);
  const bool far = (name == "shl" || name == "shr") && from.list[1].kind == SourceKind::immediate &&
                   from.list[1].value >= 32;
  return {is_wide(values, op) && !far ? ">LOP3 LOP3"_steps : ">LOP3"_steps};
}

InstructionKind branch_kind(Flow flow, bool is_kernel) {
  return flow == Flow::exit || (flow == Flow::ret && is_kernel) ? InstructionKind::exit
                                                                : InstructionKind::branch;
}

Sequence warp_instruction(std::string_view name) {
  if (name == "bar" || name == "barrier") return alone(InstructionKind::other);
  return alone(name == "shfl" ? InstructionKind::shuffle : InstructionKind::vote);
}

}  // namespace

const WarpAggregatedAtomic* warp_aggregated_atomic(const Values& values, std::uint32_t op) {
  if (values.info(op).kind != Class::atomic || values.is_guarded(op)) return nullptr;
  const Type type = values.type(op);
  if (ptx::is_float(type) || ptx::size_of(type) != 4) return nullptr;
  const bool used = !values.writes(op).empty() && !values.users(values.result(op)).empty();
  const auto operands = values.module().operands_of(*values.text(op));
  const bool constant = !operands.empty() && values.source(operands.back(), type).is_constant();
  for (const WarpAggregatedAtomic& row : kWarpAggregatedAtomics)
    if (values.has(op, row.operation) && row.has_result == used && row.constant == constant) return &row;
  return nullptr;
}

Sequence sequence_of(const Values& values, const Selection& selection, std::uint32_t op, bool is_kernel) {
  const Op& operation = values.code().ops[op];
  if (operation.flow == Flow::join || selection.is_nothing(op) || selection.loaded_with(op) != kNoOperation)
    return {};
  if (values.text(op) == nullptr)
    return alone(operation.flow == Flow::ret ? branch_kind(operation.flow, is_kernel)
                                             : InstructionKind::other);
  if (const std::optional<Sequence> found = expanded(values, op)) return *found;
  const std::string_view name = values.opcode(op);
  const Form form = selection.form(op);
  switch (values.info(op).kind) {
    case Class::load:
    case Class::store:
      return memory(values, op);
    case Class::atomic:
      return atomic(values, op);
    case Class::texture:
      return alone(name == "suld"   ? InstructionKind::load_global
                   : name == "sust" ? InstructionKind::store_global
                                    : InstructionKind::texture);
    case Class::warp:
      return warp_instruction(name);
    case Class::barrier:
      return {"NOP"_steps, InstructionKind::barrier, 1};
    case Class::fence:
      return {values.has(op, "cta") ? ""_steps : "NOP NOP"_steps, InstructionKind::fence, 1};
    case Class::branch:
      return alone(branch_kind(operation.flow, is_kernel));
    case Class::tensor:
      return tensor(values, op);
    case Class::fp64:
      return {">DFMA"_steps};
    case Class::fp32:
      return {">FFMA"_steps};
    case Class::fp16:
      return {">HFMA2"_steps};
    case Class::special_function:
      return {">MUFU"_steps};
    case Class::convert:
      return conversion(values, op);
    case Class::move:
      return move(values, op);
    case Class::multiply:
      return product(values, op);
    case Class::logic:
      return logic(values, form, op);
    case Class::compare:
      if (name == "selp") return move(values, op);
      return form == Form::test ? Sequence{">LOP3"_steps} : comparison(values, op);
    case Class::integer:
      return integer(values, form, op);
    default:
      return alone(InstructionKind::other);
  }
}

namespace {

// The operands of an operation with those of the operations it has taken in.
void collect(const Values& values, const Selection& selection, std::uint32_t op, std::vector<Source>& found,
             unsigned depth) {
  const Sources from = values.sources(op);
  const std::string_view name = values.opcode(op);
  const bool shifts = name == "shl" || name == "shr";
  for (unsigned i = 0; i < from.count; ++i) {
    const Source& source = from.list[i];
    if (shifts && i == 1) continue;  // has a field of its own
    if (source.kind == SourceKind::reg && depth < 4) {
      const std::uint32_t inlined = selection.inlined(source.reg());
      if (inlined != kNoOperation) {
        collect(values, selection, inlined, found, depth + 1);
        continue;
      }
    }
    if (source.is_constant() && !source.is_zero() && std::ranges::find(found, source) == found.end())
      found.push_back(source);
  }
}

// What an address is the sum of, besides numbers.
Source base_of(const Values& values, const Selection& selection, Source base) {
  while (base.kind == SourceKind::reg) {
    const std::uint32_t sum = selection.inlined(base.reg());
    if (sum == kNoOperation || values.opcode(sum) != "add") break;
    const Sources from = values.sources(sum);
    const bool first = from.list[0].kind == SourceKind::immediate;
    if (from.count != 2 || first == (from.list[1].kind == SourceKind::immediate)) break;
    base = from.list[first ? 1 : 0];
  }
  return base;
}

}  // namespace

Constants constants_of(const Values& values, const Selection& selection, std::uint32_t op) {
  Constants result;
  if (selection.is_nothing(op) || values.text(op) == nullptr || selection.loaded_with(op) != kNoOperation)
    return result;
  const OpInfo& info = values.info(op);
  const std::string_view name = values.opcode(op);
  switch (info.kind) {
    case Class::load:
    case Class::store:
    case Class::atomic: {
      std::int64_t offset = 0;
      const Source base = base_of(values, selection, values.address(op, offset));
      if (base.kind == SourceKind::bank) result.list.push_back({base, 2});
      const auto operands = values.module().operands_of(*values.text(op));
      const unsigned words = std::max(1U, ptx::size_of(values.type(op)) / 4);
      auto add = [&](const Operand& operand) {
        const Source source = values.source(operand, values.type(op));
        if (source.is_constant() && !source.is_zero() && result.list.size() < 4)
          result.list.push_back({source, words});
      };
      for (std::size_t i = 1; i < operands.size() && info.kind != Class::load; ++i) {
        if (operands[i].kind == OperandKind::vector)
          for (const Operand& part : values.module().children(operands[i])) add(part);
        else
          add(operands[i]);
      }
      return result;
    }
    case Class::integer:
    case Class::logic:
    case Class::multiply:
    case Class::compare:
    case Class::fp32:
    case Class::fp64:
    case Class::fp16:
      break;
    case Class::move:
      if (name != "selp") return result;
      break;
    default:
      return result;
  }
  if (expansions_by_opcode().contains(name) && name != "min" && name != "max" && name != "mul") return result;
  std::vector<Source> found;
  collect(values, selection, op, found, 0);
  if (found.size() < 2) return result;
  // Of an immediate and a parameter, a product keeps the parameter and others the immediate.
  const bool product = selection.form(op) == Form::multiply_add;
  const auto kept =
      std::ranges::find(found, product ? SourceKind::bank : SourceKind::immediate, &Source::kind);
  if (kept != found.end()) std::swap(*kept, found.front());
  const bool wide = values.type(op) == Type::f64 || (!product && ptx::size_of(values.type(op)) == 8);
  for (const Source& source : found)
    if (result.list.size() < 4) result.list.push_back({source, wide ? 2U : 1U});
  result.keeps_one = true;
  return result;
}

}  // namespace manyscale::gpu
