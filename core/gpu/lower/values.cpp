// SPDX-License-Identifier: Apache-2.0
#include "gpu/lower/values.hpp"

#include <algorithm>
#include <bit>

#include "gpu/lower/constant_folding.hpp"

namespace manyscale::gpu {

using ptx::Operand;
using ptx::OperandKind;
using ptx::Type;

namespace {

// Offsets in the constant bank that no parameter has.
constexpr std::uint64_t kShapeBank = std::uint64_t{1} << 32;
constexpr std::uint64_t kConstantMemory = std::uint64_t{1} << 61;
constexpr std::uint64_t kWideConstants = std::uint64_t{1} << 63;
// An immediate that is the address of a variable: which, and the offset in it.
constexpr std::uint64_t kVariable = std::uint64_t{1} << 62;
constexpr std::uint64_t kOffsets = (std::uint64_t{1} << 40) - 1;
constexpr unsigned kDeepest = 24;  // copies of copies, terms of an address

}  // namespace

Values::Values(const Program& program, const Code& code, const ptx::Function& function, bool is_kernel)
    : program_(program), module_(*program.module), code_(code), function_(function), is_kernel_(is_kernel) {
  for (const ptx::Register& r : function.registers) {
    first_element_.push_back(static_cast<std::uint32_t>(bytes_.size()));
    bytes_.insert(bytes_.end(), std::max<unsigned>(r.elements, 1),
                  static_cast<std::uint8_t>(r.type == Type::pred ? 0 : ptx::size_of(r.type)));
  }
  declared_ = static_cast<std::uint32_t>(bytes_.size());
  for (std::uint32_t id : code.registers)
    if (id >= bytes_.size()) bytes_.resize(id + 1, 4);
  find_definitions();
  find_copies();
  unused_.assign(code.ops.size(), 0);
  find_users();
  find_unused();
  find_narrow();
}

const ptx::Instruction* Values::text(std::uint32_t op) const {
  if (code_.ops[op].flow == Flow::join) return nullptr;
  const std::uint32_t index = info(op).instruction;
  return index == ptx::kNone ? nullptr : &function_.instructions[index];
}

std::string_view Values::opcode(std::uint32_t op) const {
  const ptx::Instruction* found = text(op);
  return found == nullptr ? std::string_view() : found->opcode;
}

bool Values::has(std::uint32_t op, std::string_view modifier) const {
  const auto modifiers = module_.modifiers_of(*text(op));
  return std::ranges::find(modifiers, modifier) != modifiers.end();
}

Type Values::type(std::uint32_t op, unsigned index) const {
  for (std::string_view modifier : module_.modifiers_of(*text(op))) {
    const Type found = ptx::type_named(modifier);
    if (found != Type::none && index-- == 0) return found;
  }
  return Type::none;
}

std::span<const std::uint32_t> Values::reads(std::uint32_t op) const {
  if (code_.ops[op].flow == Flow::join) return {};
  return std::span(code_.registers).subspan(info(op).first_read, info(op).reads);
}

std::span<const std::uint32_t> Values::writes(std::uint32_t op) const {
  if (code_.ops[op].flow == Flow::join) return {};
  return std::span(code_.registers).subspan(info(op).first_write, info(op).writes);
}

std::uint32_t Values::guard(std::uint32_t op) const {
  const ptx::Instruction* found = text(op);
  if (found == nullptr || found->guard == ptx::kNone || !is_guarded(op)) return kNoOperation;
  return first_element_[found->guard];
}

void Values::find_definitions() {
  writers_.assign(bytes_.size(), 0);
  definitions_.assign(bytes_.size(), kNoOperation);
  readers_.assign(bytes_.size(), 0);
  for (std::uint32_t op = 0; op < code_.ops.size(); ++op) {
    for (std::uint32_t id : reads(op)) ++readers_[id];
    for (std::uint32_t id : writes(op)) {
      ++writers_[id];
      definitions_[id] = writers_[id] == 1 && !is_guarded(op) ? op : kNoOperation;
    }
  }
}

Source Values::resolve(std::uint32_t element) const {
  Source found{SourceKind::reg, element};
  for (unsigned depth = 0; depth < kDeepest && found.kind == SourceKind::reg; ++depth) {
    const Source& next = meanings_[found.reg()];
    if (next.kind == SourceKind::none) break;
    found = next;
  }
  return found;
}

Source Values::source(const Operand& operand, Type type) const {
  switch (operand.kind) {
    case OperandKind::reg: {
      const unsigned component = operand.component == 255 ? 0 : operand.component;
      return resolve(first_element_[operand.id] + component);
    }
    case OperandKind::integer:
      return {SourceKind::immediate, static_cast<std::uint64_t>(operand.value)};
    case OperandKind::floating: {
      const auto bits = static_cast<std::uint64_t>(operand.value);
      if (type == Type::f64 && !operand.is_f32 && (bits & 0xffffffff) != 0)
        return {SourceKind::bank, bits | kWideConstants};  // does not fit into an instruction
      return {SourceKind::immediate, bits};
    }
    case OperandKind::variable:
      return {SourceKind::immediate, kVariable | std::uint64_t{operand.id} << 40 |
                                         (static_cast<std::uint64_t>(operand.value) & kOffsets)};
    case OperandKind::special: {
      const bool shape = operand.text.starts_with("%ntid") || operand.text.starts_with("%nctaid");
      if (!shape) return {};
      return {SourceKind::bank,
              kShapeBank + (operand.text[1] == 'n' && operand.text[2] == 't' ? 0U : 8U) + operand.component};
    }
    default:
      return {};
  }
}

Sources Values::sources(std::uint32_t op) const {
  Sources result;
  const ptx::Instruction* found = text(op);
  if (found == nullptr) return result;
  const auto operands = module_.operands_of(*found);
  const Type of = type(op);
  for (std::size_t i = 1; i < operands.size() && result.count < result.list.size(); ++i)
    result.list[result.count++] = source(operands[i], of);
  return result;
}

Source Values::address(std::uint32_t op, std::int64_t& offset) const {
  const ptx::Instruction* found = text(op);
  if (found == nullptr) return {};
  for (const Operand& operand : module_.operands_of(*found)) {
    if (operand.kind != OperandKind::address) continue;
    offset = operand.value;
    const auto children = module_.children(operand);
    return children.empty() ? Source{} : source(children[0], Type::none);
  }
  return {};
}

// Whether a conversion leaves the bits of a register as they are.
bool Values::is_free_conversion(std::uint32_t op) const {
  const Type to = type(op, 0);
  const Type from = type(op, 1);
  if (ptx::is_float(to) || ptx::is_float(from) || has(op, "sat") || reads(op).size() != 1) return false;
  const unsigned to_bytes = ptx::size_of(to);
  const unsigned from_bytes = ptx::size_of(from);
  if (to_bytes == from_bytes) return to_bytes >= 2;
  if (to_bytes < from_bytes) return to_bytes >= 2;
  if (from_bytes == 4) return to_bytes == 8 && !ptx::is_signed(from);  // the upper half is the zero register
  // A load extends what it loads.
  const std::uint32_t made = definitions_[reads(op)[0]];
  if (made == kNoOperation) return false;
  if (info(made).kind == Class::load)
    return ptx::size_of(type(made)) <= from_bytes &&
           (ptx::is_signed(type(made)) == ptx::is_signed(from) || ptx::size_of(type(made)) < from_bytes) &&
           to_bytes <= 4;
  return false;
}

bool Values::is_kernel_parameter(std::uint32_t op) const {
  if (!is_kernel_ || opcode(op) != "ld" || !has(op, "param")) return false;
  for (const Operand& operand : module_.operands_of(*text(op))) {
    if (operand.kind != OperandKind::address) continue;
    const auto children = module_.children(operand);
    return children.empty() || children[0].kind != OperandKind::variable ||
           children[0].id < function_.parameters.size();
  }
  return true;
}

bool Values::copy_of_move(std::uint32_t op, Source& to) const {
  const ptx::Instruction& found = *text(op);
  const std::string_view name = found.opcode;
  const bool parameter = is_kernel_parameter(op);
  const bool constant = name == "ld" && has(op, "const") && ptx::size_of(type(op)) >= 4;
  if ((parameter || constant) && reads(op).empty()) {
    for (const Operand& operand : module_.operands_of(found)) {
      if (operand.kind != OperandKind::address) continue;
      const auto children = module_.children(operand);
      if (children.empty() || children[0].kind != OperandKind::variable) return false;
      to = {SourceKind::bank, (std::uint64_t{children[0].id} << 16) +
                                  static_cast<std::uint64_t>(operand.value) +
                                  (constant ? kConstantMemory : 0)};
      return true;
    }
    return false;
  }
  const auto operands = module_.operands_of(found);
  if (operands.size() != 2 || operands[0].kind != OperandKind::reg) return false;
  if (name == "mov" || name == "cvta" || name == "not" || (name == "cvt" && is_free_conversion(op))) {
    if (name == "not" && !is_predicate(result(op))) return false;
    to = source(operands[1], type(op));
    if (operands[1].negated && name != "not") return false;
    return to.kind != SourceKind::none;
  }
  return false;
}

// Whether an operation names the halves of a pair of registers.
bool Values::is_taken_apart(std::uint32_t op) const {
  if (opcode(op) != "mov" || reads(op).size() != 1 || writers_[reads(op)[0]] > 1) return false;
  return std::ranges::all_of(writes(op), [&](std::uint32_t part) { return definitions_[part] == op; });
}

// Whether a copy is used only in the same block, before the original is written again.
bool Values::is_used_at_once(std::uint32_t op, std::uint32_t original) const {
  constexpr std::uint32_t kFarthest = 64;
  const std::uint32_t copy = result(op);
  std::uint32_t left = readers_[copy];
  for (std::uint32_t i = op + 1; left != 0 && i < code_.ops.size() && i <= op + kFarthest; ++i) {
    if (code_.ops[i].flow == Flow::join) return false;
    left -= static_cast<std::uint32_t>(std::ranges::count(reads(i), copy));
    if (left != 0 && std::ranges::find(writes(i), original) != writes(i).end()) return false;
    const Flow flow = code_.ops[i].flow;
    if (flow == Flow::branch || flow == Flow::branch_table || flow == Flow::call || flow == Flow::ret ||
        flow == Flow::exit)
      break;
  }
  return left == 0;
}

void Values::find_copies() {
  copies_.assign(code_.ops.size(), 0);
  meanings_.assign(bytes_.size(), Source{});
  for (std::uint32_t op = 0; op < code_.ops.size(); ++op) {
    if (text(op) == nullptr || writes(op).empty()) continue;
    if (writes(op).size() > 1) {
      copies_[op] = is_taken_apart(op);
      if (copies_[op])
        for (std::uint32_t part : writes(op)) meanings_[part] = resolve(reads(op)[0]);
      continue;
    }
    const std::uint32_t to = result(op);
    if (to >= declared_ && info(op).kind == Class::move) {
      // The decoder's own: it prepares an operand that hardware takes as it is.
      copies_[op] = 1;
      if (reads(op).size() == 1) meanings_[to] = resolve(reads(op)[0]);
      continue;
    }
    if (definitions_[to] != op) continue;
    if (const std::optional<std::uint32_t> known = folded(*this, op)) {
      copies_[op] = 1;
      meanings_[to] = {SourceKind::immediate, *known};
      continue;
    }
    Source from;
    if (!copy_of_move(op, from)) continue;
    // What is written several times may have changed before the copy is used.
    if (from.kind == SourceKind::reg && writers_[from.reg()] > 1 && !is_used_at_once(op, from.reg()))
      continue;
    copies_[op] = 1;
    meanings_[to] = from;
  }
}

void Values::find_users() {
  first_user_.assign(bytes_.size() + 1, 0);
  std::vector<std::uint32_t> last(bytes_.size(), kNoOperation);
  auto for_each_use = [&](auto&& visit) {
    std::ranges::fill(last, kNoOperation);
    for (std::uint32_t op = 0; op < code_.ops.size(); ++op) {
      if (copies_[op] || unused_[op]) continue;
      for (std::uint32_t id : reads(op)) {
        const Source used = resolve(id);
        if (used.kind != SourceKind::reg || last[used.reg()] == op) continue;
        last[used.reg()] = op;
        visit(used.reg(), op);
      }
    }
  };
  for_each_use([&](std::uint32_t id, std::uint32_t) { ++first_user_[id + 1]; });
  for (std::size_t i = 1; i < first_user_.size(); ++i) first_user_[i] += first_user_[i - 1];
  users_.resize(first_user_.back());
  std::vector<std::uint32_t> next(first_user_.begin(), first_user_.end() - 1);
  for_each_use([&](std::uint32_t id, std::uint32_t op) { users_[next[id]++] = op; });
  first_writer_.assign(bytes_.size() + 1, 0);
  for (std::size_t id = 0; id < bytes_.size(); ++id) first_writer_[id + 1] = first_writer_[id] + writers_[id];
  writing_.resize(first_writer_.back());
  next.assign(first_writer_.begin(), first_writer_.end() - 1);
  for (std::uint32_t op = 0; op < code_.ops.size(); ++op)
    for (std::uint32_t id : writes(op)) writing_[next[id]++] = op;
}

std::span<const std::uint32_t> Values::writing(std::uint32_t element) const {
  return std::span(writing_).subspan(first_writer_[element],
                                     first_writer_[element + 1] - first_writer_[element]);
}

std::span<const std::uint32_t> Values::users(std::uint32_t element) const {
  return std::span(users_).subspan(first_user_[element], first_user_[element + 1] - first_user_[element]);
}

bool Values::is_pure(std::uint32_t op) const {
  if (text(op) == nullptr || code_.ops[op].flow != Flow::next) return false;
  switch (info(op).kind) {
    case Class::load:
    case Class::store:
    case Class::atomic:
    case Class::texture:
    case Class::warp:
    case Class::barrier:
    case Class::fence:
    case Class::branch:
    case Class::tensor:
    case Class::other:
      return false;
    default:
      return true;
  }
}

bool Values::is_plain_load(std::uint32_t op) const {
  return text(op) != nullptr && opcode(op) == "ld" && code_.ops[op].flow == Flow::next &&
         !has(op, "volatile") && !has(op, "relaxed") && !has(op, "acquire");
}

// Operations whose results nobody uses, but for others of that kind.
void Values::find_unused() {
  std::vector<std::uint32_t> left(bytes_.size());
  for (std::uint32_t id = 0; id < left.size(); ++id) left[id] = static_cast<std::uint32_t>(users(id).size());
  bool found = false;
  for (auto op = static_cast<std::uint32_t>(code_.ops.size()); op-- > 0;) {
    if (copies_[op] || !(is_pure(op) || is_plain_load(op))) continue;
    if (std::ranges::any_of(writes(op), [&](std::uint32_t id) { return left[id] != 0; })) continue;
    unused_[op] = found = true;
    std::vector<std::uint32_t> used;
    for (std::uint32_t id : reads(op)) {
      const Source source = resolve(id);
      if (source.kind == SourceKind::reg && std::ranges::find(used, source.reg()) == used.end())
        used.push_back(source.reg());
    }
    for (std::uint32_t id : used) --left[id];
  }
  if (found) find_users();
}

// Whether an operation needs only the lower half of an operand.
bool Values::keeps_narrow(std::uint32_t op, std::uint32_t element) const {
  if (text(op) == nullptr) return false;
  const Class kind = info(op).kind;
  if (kind == Class::load || kind == Class::store || kind == Class::atomic) {
    std::int64_t offset = 0;
    const Source base = address(op, offset);
    const bool is_base = base == Source{SourceKind::reg, element};
    const auto uses = std::ranges::count_if(
        reads(op), [&](std::uint32_t id) { return resolve(id) == Source{SourceKind::reg, element}; });
    return is_base && uses == 1 && (has(op, "shared") || has(op, "const") || has(op, "local"));
  }
  const std::string_view name = opcode(op);
  if (name != "add" && name != "sub" && name != "mov" &&
      (name != "shl" || sources(op).list[0] != Source{SourceKind::reg, element}))
    return false;
  return writes(op).size() == 1 && ptx::size_of(type(op)) == 8 && narrow_[result(op)];
}

// All could be until somebody needs the other half.
void Values::find_narrow() {
  narrow_.assign(bytes_.size(), 0);
  std::vector<std::uint32_t> work;
  for (std::uint32_t id = 0; id < bytes_.size(); ++id)
    if (bytes_[id] == 8 && !users(id).empty()) {
      narrow_[id] = 1;
      work.push_back(id);
    }
  while (!work.empty()) {
    const std::uint32_t id = work.back();
    work.pop_back();
    if (!narrow_[id]) continue;
    if (std::ranges::all_of(users(id), [&](std::uint32_t op) { return keeps_narrow(op, id); })) continue;
    narrow_[id] = 0;
    // What this one is made of must be whole too; all that write it are found by looking again at what they
    // read.
    for (std::uint32_t op : writing(id))
      for (std::uint32_t read : reads(op)) {
        const Source source = resolve(read);
        if (source.kind == SourceKind::reg && narrow_[source.reg()]) work.push_back(source.reg());
      }
  }
}

unsigned Values::trailing_zeros(const Source& source, unsigned depth, std::uint32_t assumed) const {
  constexpr unsigned kMost = 16;
  constexpr std::uint32_t kMostWriters = 8;
  if (source.kind == SourceKind::immediate) {
    if (source.value >> 62 == 1)  // the assembler aligns variables to multiples of 16
      return std::min(4U, trailing_zeros({SourceKind::immediate, source.value & kOffsets}));
    return source.value == 0
               ? kMost
               : std::min<unsigned>(kMost, static_cast<unsigned>(std::countr_zero(source.value)));
  }
  if (source.kind != SourceKind::reg || depth > 8) return 0;
  if (source.reg() == assumed) return kMost;
  const std::uint32_t op = definitions_[source.reg()];
  if (op == kNoOperation && assumed == kNoOperation && writers_[source.reg()] > 1 &&
      writers_[source.reg()] <= kMostWriters) {
    // Changed in a loop: each change keeps as many zeros as it adds, if the value had them before.
    unsigned least = kMost;
    for (std::uint32_t writer : writing(source.reg()))
      least = std::min(least, trailing_zeros_of(writer, depth + 1, source.reg()));
    return least;
  }
  return op == kNoOperation ? 0 : trailing_zeros_of(op, depth, assumed);
}

// The zeros at the end of what an operation computes.
unsigned Values::trailing_zeros_of(std::uint32_t op, unsigned depth, std::uint32_t assumed) const {
  constexpr unsigned kMost = 16;
  if (text(op) == nullptr || writes(op).size() != 1) return 0;
  const Sources from = sources(op);
  const std::string_view name = opcode(op);
  auto zeros = [&](unsigned i) { return trailing_zeros(from.list[i], depth + 1, assumed); };
  if (name == "mov") return from.count == 1 ? zeros(0) : 0;
  if (name == "shl" && from.list[1].kind == SourceKind::immediate)
    return static_cast<unsigned>(std::min<std::uint64_t>(kMost, zeros(0) + from.list[1].value));
  if (name == "mul" && !has(op, "hi")) return std::min(kMost, zeros(0) + zeros(1));
  if (name == "mad" && !has(op, "hi")) return std::min(std::min(kMost, zeros(0) + zeros(1)), zeros(2));
  if (name == "add" || name == "sub" || name == "or") return std::min(zeros(0), zeros(1));
  if (name == "and") return std::max(zeros(0), zeros(1));
  return 0;
}

}  // namespace manyscale::gpu
