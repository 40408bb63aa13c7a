// SPDX-License-Identifier: Apache-2.0
#include "gpu/lower/selection.hpp"

#include <algorithm>
#include <map>

namespace manyscale::gpu {

using ptx::Type;

namespace {

constexpr std::uint32_t kNear = 32;  // operations between which nothing else is taken into account

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

bool is_word(Type type) {
  return type == Type::s32 || type == Type::u32 || type == Type::b32;
}

bool is_double_word(Type type) {
  return type == Type::s64 || type == Type::u64 || type == Type::b64;
}

}  // namespace

Selection::Selection(const Values& values) : values_(values) {
  nothing_.assign(values.code().ops.size(), 0);
  forms_.assign(nothing_.size(), Form::plain);
  loaded_with_.assign(nothing_.size(), kNoOperation);
  inlined_.assign(values.count(), kNoOperation);
  for (std::uint32_t op = 0; op < nothing_.size(); ++op)
    nothing_[op] = values.is_copy(op) || values.is_unused(op);
  put_pairs_together();
  put_offsets_into_addresses();
  put_products_into_sums();
  put_shifts_into_sums();
  put_extensions_into_sums();
  put_signs_into_users();
  put_sums_into_sums();
  put_logic_into_logic();
  put_choices_into_sources();
  put_masks_into_tests();
  put_comparisons_into_predicates();
  join_shared_loads();
}

// Whether an operation could be left to those that use its one result.
bool Selection::can_vanish(std::uint32_t op) const {
  return !nothing_[op] && forms_[op] == Form::plain && values_.is_pure(op) &&
         values_.writes(op).size() == 1 && values_.definition(values_.result(op)) == op;
}

void Selection::inline_into_users(std::uint32_t op, Form form) {
  const std::uint32_t result = values_.result(op);
  nothing_[op] = 1;
  inlined_[result] = op;
  for (std::uint32_t user : values_.users(result)) forms_[user] = form;
}

// Operands of an operation that are not registers, with those of one it takes in: all but one need a
// register.
unsigned Selection::constants(std::uint32_t op, std::uint32_t with) const {
  std::vector<Source> found;
  for (std::uint32_t part : {op, with}) {
    if (part == kNoOperation) continue;
    const Sources sources = values_.sources(part);
    for (const Source& source : sources.all())
      if (source.is_constant() && !source.is_zero() && std::ranges::find(found, source) == found.end())
        found.push_back(source);
  }
  return static_cast<unsigned>(found.size());
}

// Two registers are taken as a pair.
void Selection::put_pairs_together() {
  for (std::uint32_t op = 0; op < nothing_.size(); ++op) {
    if (!can_vanish(op) || values_.opcode(op) != "mov") continue;
    const auto operands = values_.module().operands_of(*values_.text(op));
    if (operands.size() != 2 || operands[1].kind != ptx::OperandKind::vector) continue;
    nothing_[op] = 1;
    inlined_[values_.result(op)] = op;
  }
}

// A constant added to an address is in the addressing mode.
void Selection::put_offsets_into_addresses() {
  std::vector<std::uint32_t> as_base(values_.count(), 0);
  for (std::uint32_t op = 0; op < nothing_.size(); ++op) {
    if (nothing_[op] || values_.text(op) == nullptr) continue;
    const Class kind = values_.info(op).kind;
    if (kind != Class::load && kind != Class::store && kind != Class::atomic) continue;
    std::int64_t offset = 0;
    const Source base = values_.address(op, offset);
    if (base.kind != SourceKind::reg) continue;
    // Not if it is also what is stored.
    std::size_t uses = 0;
    for (std::uint32_t id : values_.reads(op)) uses += values_.resolve(id) == base;
    if (uses == 1) ++as_base[base.reg()];
  }
  for (std::uint32_t op = static_cast<std::uint32_t>(nothing_.size()); op-- > 0;) {
    if (!can_vanish(op) || values_.opcode(op) != "add" || values_.has(op, "cc")) continue;
    const Type type = values_.type(op);
    if (!is_word(type) && !is_double_word(type)) continue;
    const std::uint32_t result = values_.result(op);
    if (values_.users(result).empty() || as_base[result] != values_.users(result).size()) continue;
    const Sources from = values_.sources(op);
    if (from.count != 2) continue;
    const bool first = from.list[0].kind == SourceKind::immediate;
    const bool second = from.list[1].kind == SourceKind::immediate;
    if (first == second) continue;
    const Source& base = from.list[first ? 1 : 0];
    if (base.kind == SourceKind::none) continue;
    nothing_[op] = 1;
    inlined_[result] = op;
    if (base.kind == SourceKind::reg) ++as_base[base.reg()];
  }
}

void Selection::put_products_into_sums() {
  for (std::uint32_t op = 0; op < nothing_.size(); ++op) {
    if (!can_vanish(op) || values_.opcode(op) != "mul") continue;
    const Type type = values_.type(op);
    const bool is_float = type == Type::f32 || type == Type::f64;
    const bool wide = values_.has(op, "wide") && is_word(type);
    const bool low = values_.has(op, "lo") && is_word(type);
    if (is_float && (values_.has(op, "rn") || values_.has(op, "rz") || values_.has(op, "rm") ||
                     values_.has(op, "rp") || values_.has(op, "sat")))
      continue;
    if (!is_float && !wide && !low) continue;
    const std::uint32_t result = values_.result(op);
    const Sources factors = values_.sources(op);
    const bool has_constant = std::ranges::any_of(
        factors.all(), [](const Source& factor) { return factor.kind == SourceKind::immediate; });
    const bool fits =
        !values_.users(result).empty() && std::ranges::all_of(values_.users(result), [&](std::uint32_t user) {
          if (nothing_[user] || forms_[user] != Form::plain || values_.text(user) == nullptr) return false;
          const std::string_view name = values_.opcode(user);
          if (name != "add" && name != "sub") return false;
          const Type sum = values_.type(user);
          const Sources from = values_.sources(user);
          if (from.count != 2 || from.list[0] == from.list[1] || values_.has(user, "cc")) return false;
          if (is_float)
            return sum == type && !values_.has(user, "rn") && !values_.has(user, "rz") &&
                   !values_.has(user, "rm") && !values_.has(user, "rp") && !values_.has(user, "sat");
          // A product that is subtracted is added with its constant negated.
          if (name == "sub" && !(from.list[0] == Source{SourceKind::reg, result}) && (wide || !has_constant))
            return false;
          if (wide) return is_double_word(sum) && name == "add";
          return is_word(sum);
        });
    if (fits) inline_into_users(op, Form::multiply_add);
  }
}

void Selection::put_shifts_into_sums() {
  for (std::uint32_t op = 0; op < nothing_.size(); ++op) {
    const bool left = values_.opcode(op) == "shl";
    // LEA.HI adds the upper bits of a word.
    const bool right =
        values_.opcode(op) == "shr" && values_.text(op) != nullptr && ptx::size_of(values_.type(op)) == 4;
    if (!can_vanish(op) || (!left && !right)) continue;
    const Sources from = values_.sources(op);
    if (from.count != 2 || from.list[1].kind != SourceKind::immediate || from.list[0].is_constant()) continue;
    const std::uint32_t result = values_.result(op);
    if (values_.users(result).size() != 1) continue;
    const std::uint32_t user = values_.users(result)[0];
    if (nothing_[user] || forms_[user] != Form::plain || values_.text(user) == nullptr) continue;
    const std::string_view name = values_.opcode(user);
    const Type sum = values_.type(user);
    const Sources terms = values_.sources(user);
    if (terms.count != 2 || terms.list[0] == terms.list[1] || values_.has(user, "cc")) continue;
    if (ptx::size_of(sum) != ptx::size_of(values_.type(op))) continue;
    const bool shifted_first = terms.list[0] == Source{SourceKind::reg, result};
    if (name == "add" || (left && name == "sub" && shifted_first)) inline_into_users(op, Form::shift_add);
  }
}

// An addition of 64 bits can extend the sign of one operand (LEA.HI.X.SX32).
void Selection::put_extensions_into_sums() {
  for (std::uint32_t op = 0; op < nothing_.size(); ++op) {
    if (!can_vanish(op) || values_.opcode(op) != "cvt" || values_.type(op, 1) != Type::s32 ||
        ptx::size_of(values_.type(op)) != 8 || ptx::is_float(values_.type(op)))
      continue;
    const std::uint32_t result = values_.result(op);
    const bool fits = std::ranges::all_of(values_.users(result), [&](std::uint32_t user) {
      return !nothing_[user] && forms_[user] == Form::plain && values_.opcode(user) == "add" &&
             is_double_word(values_.type(user)) && !values_.has(user, "cc");
    });
    if (fits) inline_into_users(op, Form::shift_add);
  }
}

// Most instructions can negate what they read; logic can complement it.
void Selection::put_signs_into_users() {
  for (std::uint32_t op = static_cast<std::uint32_t>(nothing_.size()); op-- > 0;) {
    if (!can_vanish(op) || !is_one_of(values_.opcode(op), {"neg", "abs", "not"})) continue;
    const bool is_not = values_.opcode(op) == "not";
    const Type type = values_.type(op);
    const bool is_float = type == Type::f32 || type == Type::f64;
    if (values_.opcode(op) == "abs" && !is_float) continue;
    const std::uint32_t result = values_.result(op);
    const bool fits = std::ranges::all_of(values_.users(result), [&](std::uint32_t user) {
      if (values_.text(user) == nullptr) return false;
      const std::string_view name = values_.opcode(user);
      if (is_float)
        return is_one_of(name, {"add", "sub", "mul", "fma", "mad", "setp", "min", "max", "div", "cvt", "rcp",
                                "ex2", "lg2", "sqrt", "selp"});
      if (is_not) return is_one_of(name, {"and", "or", "xor"});
      return is_one_of(name, {"add", "sub", "selp"}) &&
             ptx::size_of(values_.type(user)) == ptx::size_of(type);
    });
    if (!fits) continue;
    nothing_[op] = 1;
    inlined_[result] = op;
  }
}

// IADD3 adds three, of which one may be a constant.
void Selection::put_sums_into_sums() {
  for (std::uint32_t op = static_cast<std::uint32_t>(nothing_.size()); op-- > 0;) {
    if (!can_vanish(op) || !is_one_of(values_.opcode(op), {"add", "sub"}) || values_.has(op, "cc")) continue;
    const Type type = values_.type(op);
    if (!is_word(type) && !is_double_word(type)) continue;
    const std::uint32_t result = values_.result(op);
    if (values_.users(result).size() != 1) continue;
    const std::uint32_t user = values_.users(result)[0];
    if (nothing_[user] || forms_[user] != Form::plain || values_.text(user) == nullptr ||
        values_.has(user, "cc"))
      continue;
    if (!is_one_of(values_.opcode(user), {"add", "sub"})) continue;
    if (ptx::size_of(values_.type(user)) != ptx::size_of(type)) continue;
    const Sources terms = values_.sources(user);
    if (terms.count != 2 || terms.list[0] == terms.list[1] || constants(user, op) > 1) continue;
    inline_into_users(op, Form::add3);
  }
}

// Instead of choosing between two registers, what computes one of them is executed under the predicate and
// writes it over the other, if that is not needed any more.
void Selection::put_choices_into_sources() {
  for (std::uint32_t op = 0; op < nothing_.size(); ++op) {
    if (!can_vanish(op) || values_.opcode(op) != "selp" || values_.words(values_.result(op)) != 1) continue;
    const Sources from = values_.sources(op);
    if (from.count != 3 || from.list[0].kind != SourceKind::reg || from.list[1].kind != SourceKind::reg)
      continue;
    for (unsigned k : {0U, 1U}) {
      const std::uint32_t made = values_.definition(from.list[k].reg());
      if (made == kNoOperation || made + kNear < op || made > op || nothing_[made] ||
          !values_.is_pure(made) || values_.users(from.list[k].reg()).size() != 1)
        continue;
      const auto& others = values_.users(from.list[1 - k].reg());
      if (std::ranges::any_of(others, [&](std::uint32_t user) { return user > op || user + kNear < op; }))
        continue;
      if (values_.words(from.list[1 - k].reg()) != 1) continue;
      nothing_[op] = 1;
      inlined_[values_.result(op)] = op;
      break;
    }
  }
}

void Selection::put_logic_into_logic() {
  for (std::uint32_t op = 0; op < nothing_.size(); ++op) {
    if (!can_vanish(op) || !is_one_of(values_.opcode(op), {"and", "or", "xor"})) continue;
    const std::uint32_t result = values_.result(op);
    if (values_.is_predicate(result) || values_.users(result).size() != 1) continue;
    const std::uint32_t user = values_.users(result)[0];
    if (nothing_[user] || forms_[user] != Form::plain || values_.text(user) == nullptr) continue;
    if (!is_one_of(values_.opcode(user), {"and", "or", "xor"})) continue;
    const Sources terms = values_.sources(user);
    if (terms.count != 2 || terms.list[0] == terms.list[1] || constants(user, op) > 1) continue;
    inline_into_users(op, Form::logic3);
  }
}

// LOP3 says whether what it computes is zero.
void Selection::put_masks_into_tests() {
  for (std::uint32_t op = 0; op < nothing_.size(); ++op) {
    if (nothing_[op] || !values_.is_pure(op) || !is_one_of(values_.opcode(op), {"and", "or", "xor"}))
      continue;
    if (values_.writes(op).size() != 1 || values_.definition(values_.result(op)) != op) continue;
    const std::uint32_t result = values_.result(op);
    if (values_.is_predicate(result) || ptx::size_of(values_.type(op)) == 8) continue;
    if (values_.users(result).size() != 1) continue;
    const std::uint32_t user = values_.users(result)[0];
    if (nothing_[user] || forms_[user] != Form::plain || values_.opcode(user) != "setp") continue;
    if (!values_.has(user, "eq") && !values_.has(user, "ne")) continue;
    const Sources terms = values_.sources(user);
    if (terms.count == 2 && terms.list[1].is_zero()) inline_into_users(op, Form::test);
  }
}

// A comparison combines its result with another predicate.
void Selection::put_comparisons_into_predicates() {
  std::vector<char> combined(nothing_.size(), 0);
  for (std::uint32_t op = 0; op < nothing_.size(); ++op) {
    if (!can_vanish(op) || !is_one_of(values_.opcode(op), {"and", "or", "xor"})) continue;
    const std::uint32_t result = values_.result(op);
    if (!values_.is_predicate(result)) continue;
    for (std::uint32_t id : values_.reads(op)) {
      const Source source = values_.resolve(id);
      if (source.kind != SourceKind::reg) continue;
      const std::uint32_t made = values_.definition(source.reg());
      if (made == kNoOperation || combined[made] || values_.opcode(made) != "setp" ||
          values_.users(source.reg()).size() != 1)
        continue;
      if (values_.sources(made).count != 2) continue;
      combined[made] = 1;
      nothing_[op] = 1;
      inlined_[result] = op;
      break;
    }
  }
}

// Loads of neighbouring words of shared memory become one, where the address is known to be aligned.
void Selection::join_shared_loads() {
  struct Load {
    std::int64_t offset;
    std::uint32_t op;
  };
  std::map<std::pair<std::uint64_t, unsigned>, std::vector<Load>> loads;  // by base and size
  auto join_all = [&] {
    for (auto& [key, list] : loads) {
      if (list.size() < 2) continue;
      const unsigned bytes = key.second;
      std::ranges::sort(list, {}, [](const Load& load) { return std::pair(load.offset, load.op); });
      const unsigned zeros = values_.trailing_zeros({SourceKind::reg, key.first});
      for (std::size_t i = 0; i < list.size();) {
        std::size_t taken = 1;
        for (unsigned total : {16U, 8U}) {
          const std::size_t count = total / bytes;
          if (count < 2 || (1U << std::min(zeros, 4U)) < total || list[i].offset % total != 0 ||
              i + count > list.size())
            continue;
          bool whole = true;
          for (std::size_t k = 1; k < count; ++k)
            whole &= list[i + k].offset == list[i].offset + static_cast<std::int64_t>(k * bytes);
          if (!whole) continue;
          std::uint32_t first = list[i].op;
          for (std::size_t k = 1; k < count; ++k) first = std::min(first, list[i + k].op);
          for (std::size_t k = 0; k < count; ++k)
            if (list[i + k].op != first) loaded_with_[list[i + k].op] = first;
          taken = count;
          break;
        }
        i += taken;
      }
    }
    loads.clear();
  };
  for (std::uint32_t op = 0; op < nothing_.size(); ++op) {
    const Op& operation = values_.code().ops[op];
    if (operation.flow != Flow::next) {
      join_all();
      continue;
    }
    const Class kind = values_.info(op).kind;
    if (kind == Class::store || kind == Class::atomic || kind == Class::barrier || kind == Class::fence ||
        kind == Class::tensor)
      join_all();
    if (kind != Class::load || values_.opcode(op) != "ld" || !values_.has(op, "shared") ||
        values_.is_guarded(op) || values_.writes(op).size() != 1)
      continue;
    if (values_.has(op, "volatile") || values_.has(op, "relaxed") || values_.has(op, "acquire")) continue;
    const unsigned bytes = ptx::size_of(values_.type(op));
    if (bytes != 4 && bytes != 8) continue;
    std::int64_t offset = 0;
    Source base = values_.address(op, offset);
    for (unsigned depth = 0;
         depth < 8 && base.kind == SourceKind::reg && inlined_[base.reg()] != kNoOperation; ++depth) {
      const Sources terms = values_.sources(inlined_[base.reg()]);
      const bool first = terms.list[0].kind == SourceKind::immediate;
      // A variable's address has its own number above the offset.
      offset += static_cast<std::int64_t>(terms.list[first ? 0 : 1].value & ~(std::uint64_t{1} << 62));
      base = terms.list[first ? 1 : 0];
    }
    if (base.kind == SourceKind::reg) loads[{base.value, bytes}].push_back({offset, op});
  }
  join_all();
}

}  // namespace manyscale::gpu
