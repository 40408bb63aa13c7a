// SPDX-License-Identifier: Apache-2.0
#include "gpu/lower/counted_loop.hpp"

#include <algorithm>
#include <optional>

namespace manyscale::gpu {

using ptx::Function;
using ptx::Instruction;
using ptx::Module;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Type;

namespace {

constexpr unsigned kLongestBody = 38;  // machine instructions, about

// Instructions whose first operand is their result, or that have none, and nothing else besides.
constexpr std::string_view kPlain[] = {"ld",   "st",  "add",  "sub",  "mul", "mad", "fma", "mov",  "cvt",
                                       "cvta", "shl", "shr",  "and",  "or",  "xor", "not", "neg",  "abs",
                                       "min",  "max", "setp", "selp", "div", "rem", "rcp", "sqrt", "rsqrt",
                                       "ex2",  "lg2", "sin",  "cos",  "bfe", "prmt"};

class Finder {
 public:
  Finder(const Module& module, const Function& function) : module_(module), function_(function) {}

  std::vector<CountedLoop> run() {
    count_mentions();
    std::vector<CountedLoop> loops;
    for (std::uint32_t i = 0; i < function_.instructions.size(); ++i)
      if (auto loop = find_loop(i)) loops.push_back(std::move(*loop));
    return loops;
  }

 private:
  void count_mentions() {
    targets_.assign(function_.instructions.size() + 1, 0);
    mentions_.assign(function_.registers.size(), 0);
    for (const Instruction& instruction : function_.instructions) {
      if (instruction.guard != ptx::kNone) ++mentions_[instruction.guard];
      for (const Operand& operand : module_.operands_of(instruction))
        for_each_operand(module_, operand, [&](const Operand& part) {
          if (part.kind == OperandKind::label) ++targets_[part.id];
          if (part.kind == OperandKind::reg) ++mentions_[part.id];
        });
    }
    for (const ptx::BranchTable& table : function_.branch_tables)
      for (std::uint32_t target : table.targets) ++targets_[target];
  }

  // The text between two instructions says whether a loop must not be unrolled.
  bool is_forbidden(std::uint32_t first) const {
    const std::string_view text(*module_.text);
    const char* end = function_.instructions[first].opcode.data();
    if (end < text.data() || end > text.data() + text.size()) return true;
    const auto at = static_cast<std::size_t>(end - text.data());
    std::size_t from =
        first == 0 ? (at > 200 ? at - 200 : 0)
                   : static_cast<std::size_t>(function_.instructions[first - 1].opcode.data() - text.data());
    if (from > at) from = at;
    return text.substr(from, at - from).find("nounroll") != std::string_view::npos;
  }

  std::optional<CountedLoop> find_loop(std::uint32_t last) const {
    const Instruction& branch = function_.instructions[last];
    if (branch.opcode != "bra" || branch.guard == ptx::kNone || branch.guard_negated || branch.operands != 1)
      return {};
    const Operand& target = module_.operands_of(branch)[0];
    if (target.kind != OperandKind::label || target.id >= last) return {};
    CountedLoop loop;
    loop.first = target.id;
    loop.last = last;
    unsigned length = 0;
    for (std::uint32_t i = loop.first; i < last; ++i) {
      const Instruction& instruction = function_.instructions[i];
      if (i > loop.first && targets_[i] != 0) return {};
      if (std::ranges::find(kPlain, instruction.opcode) == std::end(kPlain) ||
          has_modifier(module_, instruction, "cc"))
        return {};
      const OperandKind kind =
          instruction.operands == 0 ? OperandKind::sink : module_.operands_of(instruction)[0].kind;
      if (has_result(instruction) && kind != OperandKind::reg && kind != OperandKind::vector) return {};
      const bool wide = ptx::size_of(type_of(module_, instruction)) == 8;
      length += (instruction.opcode == "add" || instruction.opcode == "mov") && wide ? 2 : 1;
      if (length > kLongestBody) return {};
    }
    if (targets_[last] != 0 || is_forbidden(loop.first)) return {};
    find_writers(loop);
    find_locals(loop);
    find_inductions(loop);
    if (!find_test(loop)) return {};
    return loop;
  }

  void find_writers(CountedLoop& loop) const {
    for (std::uint32_t i = loop.first; i < loop.last; ++i) {
      const Instruction& instruction = function_.instructions[i];
      if (!has_result(instruction)) continue;
      for_each_operand(module_, module_.operands_of(instruction)[0], [&](const Operand& part) {
        if (part.kind == OperandKind::reg) loop.writers[part.id].push_back(i);
      });
    }
  }

  void find_inductions(CountedLoop& loop) const {
    const auto& writers = loop.writers;
    auto changes = [&](const Operand& operand) {
      return operand.kind == OperandKind::reg && writers.contains(operand.id);
    };
    for (const auto& [id, where] : writers) {
      if (where.size() != 1) continue;
      const Instruction& update = function_.instructions[where[0]];
      const auto operands = module_.operands_of(update);
      if (update.opcode != "add" || update.guard != ptx::kNone || operands.size() != 3 ||
          has_modifier(module_, update, "sat"))
        continue;
      const Type type = type_of(module_, update);
      if (ptx::is_float(type) || ptx::size_of(type) < 4) continue;
      if (operands[1].kind == OperandKind::reg && operands[1].id == id &&
          operands[2].kind == OperandKind::integer)
        loop.inductions[id] = {operands[2].value, where[0], false};
    }
    // What is computed from these and from what does not change, if only the loop uses it.
    for (std::uint32_t i = loop.first; i < loop.last; ++i) {
      const Instruction& made = function_.instructions[i];
      const auto operands = module_.operands_of(made);
      if (operands.size() != 3 || made.guard != ptx::kNone || operands[0].kind != OperandKind::reg) continue;
      const std::uint32_t id = operands[0].id;
      if (loop.inductions.contains(id) || writers.at(id).size() != 1 || !loop.locals.contains(id)) continue;
      const Type type = type_of(module_, made);
      if (ptx::is_float(type) || ptx::size_of(type) < 4) continue;
      auto step = [&](const Operand& operand) -> std::optional<std::int64_t> {
        if (operand.kind != OperandKind::reg)
          return operand.kind == OperandKind::integer ? std::optional<std::int64_t>(0) : std::nullopt;
        const auto found = loop.inductions.find(operand.id);
        if (found == loop.inductions.end())
          return changes(operand) ? std::nullopt : std::optional<std::int64_t>(0);
        return found->second.derived || found->second.update > i ? std::optional(found->second.step)
                                                                 : std::nullopt;
      };
      const auto first = step(operands[1]);
      const auto second = step(operands[2]);
      if (!first || !second) continue;
      const bool scaled =
          operands[2].kind == OperandKind::integer && operands[2].value >= 0 && operands[2].value < (1 << 16);
      std::int64_t result = 0;
      if (made.opcode == "add" && !has_modifier(module_, made, "sat"))
        result = *first + *second;
      else if (made.opcode == "sub" && !has_modifier(module_, made, "sat"))
        result = *first - *second;
      else if (made.opcode == "shl" && scaled && operands[2].value < 16)
        result = *first * (std::int64_t{1} << operands[2].value);
      else if (made.opcode == "mul" && has_modifier(module_, made, "lo") && scaled)
        result = *first * operands[2].value;
      else
        continue;
      constexpr std::int64_t kFarthest = 1 << 20;  // offsets in addresses have 24 bits
      if (result != 0 && result < kFarthest && result > -kFarthest) loop.inductions[id] = {result, i, true};
    }
  }

  // Registers that nothing outside mentions and that are written before they are read.
  void find_locals(CountedLoop& loop) const {
    std::map<std::uint32_t, unsigned> inside;
    std::set<std::uint32_t> read_first;
    std::set<std::uint32_t> written;
    for (std::uint32_t i = loop.first; i <= loop.last; ++i) {
      const Instruction& instruction = function_.instructions[i];
      auto read = [&](std::uint32_t id) {
        ++inside[id];
        if (!written.contains(id)) read_first.insert(id);
      };
      if (instruction.guard != ptx::kNone) read(instruction.guard);
      const auto operands = module_.operands_of(instruction);
      for (std::size_t k = has_result(instruction) ? 1 : 0; k < operands.size(); ++k)
        for_each_operand(module_, operands[k], [&](const Operand& part) {
          if (part.kind == OperandKind::reg) read(part.id);
        });
      if (!has_result(instruction) || operands.empty()) continue;
      for_each_operand(module_, operands[0], [&](const Operand& part) {
        if (part.kind != OperandKind::reg) return;
        ++inside[part.id];
        if (instruction.guard == ptx::kNone) written.insert(part.id);
      });
    }
    for (std::uint32_t id : written)
      if (inside[id] == mentions_[id] && !read_first.contains(id)) loop.locals.insert(id);
  }

  bool find_test(CountedLoop& loop) const {
    const std::uint32_t predicate = function_.instructions[loop.last].guard;
    const auto& writers = loop.writers;
    const auto found = writers.find(predicate);
    if (found == writers.end() || found->second.size() != 1) return false;
    loop.test = found->second[0];
    const Instruction& test = function_.instructions[loop.test];
    const auto operands = module_.operands_of(test);
    if (test.opcode != "setp" || test.guard != ptx::kNone || operands.size() != 3 ||
        operands[0].kind != OperandKind::reg)
      return false;
    if (operands[1].kind != OperandKind::reg) return false;
    const auto counter = loop.inductions.find(operands[1].id);
    if (counter == loop.inductions.end() || counter->second.derived || counter->second.update > loop.test)
      return false;
    const bool fixed = operands[2].kind == OperandKind::integer ||
                       (operands[2].kind == OperandKind::reg && !writers.contains(operands[2].id));
    const Type type = type_of(module_, test);
    const std::int64_t step = counter->second.step;
    if (!fixed || ptx::size_of(type) != 4 || step == 0 || step > (1 << 20) || step < -(1 << 20)) return false;
    const bool is_signed = type == Type::s32;
    if (!(has_modifier(module_, test, "ne") || (has_modifier(module_, test, "lt") && step > 0) ||
          (has_modifier(module_, test, "gt") && step < 0 && is_signed)))
      return false;
    if (has_modifier(module_, test, "lt") && type == Type::b32) return false;
    // The predicate is for the branch alone.
    for (std::uint32_t i = loop.first; i < loop.last; ++i)
      if (function_.instructions[i].guard == predicate) return false;
    loop.counter = operands[1].id;
    loop.bound = operands[2];
    return true;
  }

  const Module& module_;
  const Function& function_;
  std::vector<std::uint32_t> targets_;   // branches to an instruction
  std::vector<std::uint32_t> mentions_;  // of a register
};

}  // namespace

bool has_result(const Instruction& instruction) {
  return instruction.opcode != "st" && instruction.operands != 0;
}

bool has_modifier(const Module& module, const Instruction& instruction, std::string_view modifier) {
  const auto modifiers = module.modifiers_of(instruction);
  return std::ranges::find(modifiers, modifier) != modifiers.end();
}

Type type_of(const Module& module, const Instruction& instruction) {
  for (std::string_view modifier : module.modifiers_of(instruction))
    if (const Type type = ptx::type_named(modifier); type != Type::none) return type;
  return Type::none;
}

std::vector<CountedLoop> find_counted_loops(const Module& module, const Function& function) {
  return Finder(module, function).run();
}

}  // namespace manyscale::gpu
