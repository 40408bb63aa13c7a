// SPDX-License-Identifier: Apache-2.0
#include "gpu/lower/unroll.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "gpu/lower/counted_loop.hpp"

namespace manyscale::gpu {

using ptx::Function;
using ptx::Instruction;
using ptx::Module;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Type;

namespace {

constexpr unsigned kCopies = 4;
class Unroller {
 public:
  Unroller(Module& module, Function& function) : module_(module), function_(function) {}

  void run() {
    const std::vector<CountedLoop> loops = find_counted_loops(module_, function_);
    if (!loops.empty()) rewrite(loops);
  }

 private:
  std::uint32_t new_register(Type type) {
    function_.registers.push_back({"%unrolled", type, 1});
    return static_cast<std::uint32_t>(function_.registers.size() - 1);
  }

  static Operand register_operand(std::uint32_t id) {
    Operand operand;
    operand.kind = OperandKind::reg;
    operand.id = id;
    return operand;
  }
  static Operand integer_operand(std::int64_t value) {
    Operand operand;
    operand.kind = OperandKind::integer;
    operand.value = value;
    return operand;
  }
  static Operand label_operand(std::uint32_t id) {
    Operand operand;
    operand.kind = OperandKind::label;
    operand.id = id;
    return operand;
  }

  // Like another instruction in where it stands, with operands of its own.
  Instruction make(const Instruction& like, std::string_view opcode,
                   std::initializer_list<std::string_view> modifiers,
                   std::initializer_list<Operand> operands) {
    Instruction made;
    made.opcode = opcode;
    made.where = like.where;
    made.source = like.source;
    made.first_modifier = static_cast<std::uint32_t>(module_.modifiers.size());
    made.modifiers = static_cast<std::uint16_t>(modifiers.size());
    module_.modifiers.insert(module_.modifiers.end(), modifiers);
    made.first_operand = static_cast<std::uint32_t>(module_.operands.size());
    made.operands = static_cast<std::uint16_t>(operands.size());
    module_.operands.insert(module_.operands.end(), operands);
    return made;
  }

  Instruction sum(const Instruction& like, std::uint32_t to, std::uint32_t from, std::int64_t value) {
    const bool wide = ptx::size_of(function_.registers[to].type) == 8;
    return make(like, "add", {wide ? "s64" : "s32"},
                {register_operand(to), register_operand(from), integer_operand(value)});
  }

  // One iteration of the unrolled loop, with names of its own for what it computes.
  class Names {
   public:
    std::uint32_t of(std::uint32_t id) const {
      const auto found = current_.find(id);
      return found == current_.end() ? id : found->second;
    }
    void set(std::uint32_t id, std::uint32_t name) { current_[id] = name; }

   private:
    std::map<std::uint32_t, std::uint32_t> current_;
  };

  Operand copy_operand(const CountedLoop& loop, Operand operand, std::uint32_t at, unsigned copy,
                       Names& names, bool result, std::vector<Instruction>& out) {
    if (operand.kind == OperandKind::address) {
      // An induction in an address becomes an offset.
      const Operand base = module_.children(operand).empty() ? Operand{} : module_.children(operand)[0];
      if (base.kind == OperandKind::reg && operand.count == 1 && loop.inductions.contains(base.id)) {
        operand.value += offset(loop, base.id, at, copy);
        const std::uint32_t name = origin(loop, base.id, names);
        operand.first = static_cast<std::uint32_t>(module_.operands.size());
        Operand renamed = base;
        renamed.id = name;
        module_.operands.push_back(renamed);
        return operand;
      }
    }
    if (operand.kind == OperandKind::reg) {
      if (!result && loop.inductions.contains(operand.id)) {
        const std::int64_t distance = offset(loop, operand.id, at, copy);
        const std::uint32_t name = origin(loop, operand.id, names);
        if (distance == 0) {
          operand.id = name;
          return operand;
        }
        const std::uint32_t sum_name = new_register(function_.registers[operand.id].type);
        out.push_back(sum(function_.instructions[at], sum_name, name, distance));
        operand.id = sum_name;
        return operand;
      }
      operand.id = names.of(operand.id);
      return operand;
    }
    if (operand.count == 0) return operand;
    std::vector<Operand> children;
    for (std::uint32_t i = 0; i < operand.count; ++i)
      children.push_back(
          copy_operand(loop, module_.operands[operand.first + i], at, copy, names, result, out));
    operand.first = static_cast<std::uint32_t>(module_.operands.size());
    module_.operands.insert(module_.operands.end(), children.begin(), children.end());
    return operand;
  }

  // How far an induction is beyond its value at the start of the unrolled iteration.
  static std::int64_t offset(const CountedLoop& loop, std::uint32_t id, std::uint32_t at, unsigned copy) {
    const Induction& induction = loop.inductions.at(id);
    const bool updated = !induction.derived && at > induction.update;
    return induction.step * (static_cast<std::int64_t>(copy) + (updated ? 1 : 0));
  }

  static std::uint32_t origin(const CountedLoop& loop, std::uint32_t id, const Names& names) {
    return loop.inductions.at(id).derived ? names.of(id) : id;
  }

  void add_copies(const CountedLoop& loop, std::vector<Instruction>& out) {
    auto can_be_renamed = [&](std::uint32_t id) {
      const auto& where = loop.writers.at(id);
      return where.size() == 1 && function_.instructions[where[0]].guard == ptx::kNone;
    };
    Names names;
    for (unsigned copy = 0; copy < kCopies; ++copy) {
      for (std::uint32_t i = loop.first; i < loop.last; ++i) {
        if (i == loop.test) continue;
        Instruction made = function_.instructions[i];
        const auto written = has_result(made) ? module_.operands_of(made)[0] : Operand{};
        const auto induction =
            written.kind == OperandKind::reg ? loop.inductions.find(written.id) : loop.inductions.end();
        if (induction != loop.inductions.end() && (!induction->second.derived || copy != 0)) continue;
        std::vector<Operand> operands;
        for (std::uint32_t k = has_result(made) ? 1 : 0; k < made.operands; ++k)
          operands.push_back(
              copy_operand(loop, module_.operands[made.first_operand + k], i, copy, names, false, out));
        if (made.guard != ptx::kNone) made.guard = names.of(made.guard);
        if (has_result(made)) {
          for_each_operand(module_, written, [&](const Operand& part) {
            if (part.kind != OperandKind::reg || !can_be_renamed(part.id)) return;
            names.set(part.id, copy + 1 == kCopies && !loop.locals.contains(part.id)
                                   ? part.id
                                   : new_register(function_.registers[part.id].type));
          });
          operands.insert(operands.begin(), copy_operand(loop, written, i, copy, names, true, out));
        }
        made.first_operand = static_cast<std::uint32_t>(module_.operands.size());
        module_.operands.insert(module_.operands.end(), operands.begin(), operands.end());
        out.push_back(made);
      }
    }
    for (const auto& [id, induction] : loop.inductions)
      if (!induction.derived)
        out.push_back(sum(function_.instructions[induction.update], id, id, induction.step * kCopies));
  }

  // Whether enough iterations are left for another round: the counter is further from its end than all steps
  // but one.
  std::uint32_t add_guard(const CountedLoop& loop, std::vector<Instruction>& out) {
    const Instruction& test = function_.instructions[loop.test];
    const std::int64_t step = loop.inductions.at(loop.counter).step;
    const std::uint32_t left = new_register(Type::s32);
    const std::uint32_t enough = new_register(Type::pred);
    const Operand counter = register_operand(loop.counter);
    if (step > 0)
      out.push_back(make(test, "sub", {"s32"}, {register_operand(left), loop.bound, counter}));
    else
      out.push_back(make(test, "sub", {"s32"}, {register_operand(left), counter, loop.bound}));
    const std::int64_t steps = (kCopies - 1) * (step > 0 ? step : -step);
    const bool is_unsigned = type_of(module_, test) == Type::u32 && !has_modifier(module_, test, "ne");
    out.push_back(make(test, "setp", {"gt", is_unsigned ? "u32" : "s32"},
                       {register_operand(enough), register_operand(left), integer_operand(steps)}));
    if (has_modifier(module_, test, "ne")) return enough;
    // The difference is only one if the counter has not passed its end.
    const std::uint32_t before = new_register(Type::pred);
    const std::uint32_t both = new_register(Type::pred);
    Instruction repeated = test;
    repeated.first_operand = static_cast<std::uint32_t>(module_.operands.size());
    for (const Operand& operand : {register_operand(before), counter, loop.bound})
      module_.operands.push_back(operand);
    out.push_back(repeated);
    out.push_back(make(test, "and", {"pred"},
                       {register_operand(both), register_operand(enough), register_operand(before)}));
    return both;
  }

  Instruction branch(const Instruction& like, std::uint32_t target, std::uint32_t guard, bool negated) {
    Instruction made = make(like, "bra", {}, {label_operand(target)});
    made.guard = guard;
    made.guard_negated = negated;
    return made;
  }

  void rewrite(const std::vector<CountedLoop>& loops) {
    std::vector<Instruction> out;
    const std::size_t count = function_.instructions.size();
    std::vector<std::uint32_t> index(count + 1);  // of an instruction, for branches to it
    std::map<std::uint32_t, std::uint32_t> body;  // of a loop's last instruction: where its original body is
    std::set<std::uint32_t> placed;               // operands of branches that have their index already
    struct Pending {
      std::size_t branch;
      std::uint32_t target;  // in the old numbering
    };
    std::vector<Pending> pending;
    auto next = loops.begin();
    for (std::uint32_t i = 0; i < count; ++i) {
      index[i] = static_cast<std::uint32_t>(out.size());
      if (next != loops.end() && next->first == i) {
        const CountedLoop& loop = *next++;
        const Instruction& test = function_.instructions[loop.test];
        const std::uint32_t enough = add_guard(loop, out);
        const std::size_t skip = out.size();
        out.push_back(branch(test, 0, enough, true));
        placed.insert(out.back().first_operand);
        const auto unrolled = static_cast<std::uint32_t>(out.size());
        add_copies(loop, out);
        const std::uint32_t again = add_guard(loop, out);
        out.push_back(branch(test, unrolled, again, false));
        placed.insert(out.back().first_operand);
        Instruction last_test = test;
        out.push_back(last_test);
        pending.push_back({out.size(), loop.last + 1});
        out.push_back(branch(test, 0, function_.instructions[loop.last].guard, true));
        placed.insert(out.back().first_operand);
        body[loop.last] = static_cast<std::uint32_t>(out.size());
        module_.operands[out[skip].first_operand].id = body[loop.last];
      }
      Instruction kept = function_.instructions[i];
      if (const auto back = body.find(i); back != body.end()) {
        kept = branch(kept, back->second, kept.guard, false);
        placed.insert(kept.first_operand);
      }
      out.push_back(kept);
    }
    index[count] = static_cast<std::uint32_t>(out.size());
    for (const Pending& wait : pending)
      module_.operands[out[wait.branch].first_operand].id = index[wait.target];
    std::set<std::uint32_t> seen;
    for (const Instruction& instruction : out)
      for (std::uint32_t k = 0; k < instruction.operands; ++k) {
        const std::uint32_t at = instruction.first_operand + k;
        Operand& operand = module_.operands[at];
        if (operand.kind == OperandKind::label && !placed.contains(at) && seen.insert(at).second)
          operand.id = index[operand.id];
      }
    for (ptx::BranchTable& table : function_.branch_tables)
      for (std::uint32_t& target : table.targets) target = index[target];
    function_.instructions = std::move(out);
  }

  Module& module_;
  Function& function_;
};

}  // namespace

void unroll_loops(Module& module) {
  for (Function& function : module.functions)
    if (function.has_body) Unroller(module, function).run();
}

}  // namespace manyscale::gpu
