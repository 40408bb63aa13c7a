// SPDX-License-Identifier: Apache-2.0
#include "gpu/lower/lower.hpp"

#include <algorithm>
#include <map>

#include "gpu/exec/register_limit.hpp"
#include "gpu/lower/expansions_sm70.hpp"
#include "gpu/lower/loop_heads.hpp"
#include "gpu/lower/reciprocals.hpp"
#include "gpu/lower/regions.hpp"
#include "gpu/lower/register_file.hpp"
#include "gpu/lower/scheduled.hpp"
#include "gpu/lower/selection.hpp"
#include "gpu/lower/sequence.hpp"
#include "gpu/lower/values.hpp"

namespace manyscale::gpu {

namespace {

constexpr std::uint64_t kInstructionBytes = 16;
// What an assembler uses beyond the values that live at the same time: the stack pointer, pairs that must be
// aligned, steps of longer sequences. Median over public kernels, see tools/compare_with_ptxas.py.
constexpr std::uint32_t kReservedRegisters = 5;

// An instruction whose operands are values.
struct Step {
  SassInstruction instruction;
  std::vector<std::uint32_t> reads;
  std::vector<std::uint32_t> writes;
  bool guarded = false;  // by the predicates that it reads
};

// Lowers one function: chooses its instructions first, in terms of values, and gives these registers then.
class FunctionLowering {
 public:
  FunctionLowering(const Program& program, std::uint32_t id, bool is_recursive)
      : code_(program.codes[id]),
        function_(program.module->functions[program.functions[id]]),
        is_kernel_(id == program.kernel),
        is_recursive_(is_recursive),
        values_(program, code_, function_, is_kernel_),
        selection_(values_),
        sequences_(sequences()),
        regions_(values_, lengths(), is_kernel_),
        turning_heads_(heads_that_turn(values_, regions_, sequences_)),
        reciprocals_(move_reciprocals(values_, regions_, sequences_)) {}

  SassFunction lower(std::uint32_t most_registers) {
    for (std::uint32_t id = 0; id < values_.count(); ++id)
      words_.push_back(static_cast<std::uint8_t>(values_.words(id)));
    for (std::uint32_t op = 0; op < code_.ops.size(); ++op)
      if (selection_.loaded_with(op) != kNoOperation) loads_with_[selection_.loaded_with(op)].push_back(op);
    for (std::uint32_t op = 0; op < code_.ops.size(); ++op) {
      first_.push_back(static_cast<std::uint32_t>(steps_.size()));
      choose(op);
    }
    first_.push_back(static_cast<std::uint32_t>(steps_.size()));
    give_registers(most_registers);
    return std::move(result_);
  }

 private:
  std::vector<Sequence> sequences() const {
    std::vector<Sequence> result;
    for (std::uint32_t op = 0; op < code_.ops.size(); ++op)
      result.push_back(sequence_of(values_, selection_, op, is_kernel_));
    return result;
  }

  // As the arrangement of branches needs them: what branches itself cannot be under a predicate.
  std::vector<std::uint32_t> lengths() const {
    constexpr std::uint32_t kTooLong = 1000;
    std::vector<std::uint32_t> result;
    for (const Sequence& sequence : sequences_)
      result.push_back(sequence.branches() ? kTooLong : static_cast<std::uint32_t>(sequence.length()));
    // Branches are arranged before minima and maxima become comparisons and choices.
    for (std::uint32_t op = 0; op < result.size(); ++op)
      if ((values_.opcode(op) == "min" || values_.opcode(op) == "max") && result[op] != kTooLong)
        result[op] = std::min(result[op], 1U);
    return result;
  }

  void add(InstructionKind kind, Step step = {}, bool executes = false) {
    step.instruction.kind = kind;
    step.instruction.executes = executes;
    steps_.push_back(std::move(step));
  }

  void read(Step& step, std::uint32_t element, unsigned depth = 0) const {
    const Source source = values_.resolve(element);
    if (source.kind == SourceKind::bank) step.instruction.reads_constant = true;
    if (source.kind != SourceKind::reg) return;
    const std::uint32_t inlined = selection_.inlined(source.reg());
    if (inlined != kNoOperation && depth < 8) {
      for (std::uint32_t id : values_.reads(inlined)) read(step, id, depth + 1);
    } else if (std::ranges::find(step.reads, source.reg()) == step.reads.end()) {
      step.reads.push_back(source.reg());
    }
  }

  void choose(std::uint32_t op) {
    if (!regions_.is_reached(op)) return;
    const std::size_t begin = steps_.size();
    if (code_.ops[op].flow == Flow::join) {
      for (unsigned i = 0; i < regions_.reconvergences(op); ++i) add(InstructionKind::branch);
      if (steps_.size() != begin) steps_.back().instruction.executes = true;
      return;
    }
    if (is_kernel_ && op == 0) {
      add(InstructionKind::integer);  // the stack pointer
      add(InstructionKind::shuffle);  // without effect, at the start of each kernel
    }
    if (turning_heads_[op]) add(InstructionKind::shuffle);  // without effect either
    for (unsigned i = 0; i < regions_.barriers_set(op); ++i) {
      add(InstructionKind::branch);
      add(InstructionKind::branch);
    }
    while (reciprocal_values_.size() < reciprocals_.list.size() &&
           reciprocals_.list[reciprocal_values_.size()].ahead_of == op)
      compute(reciprocals_.list[reciprocal_values_.size()]);
    const std::size_t own = steps_.size();
    std::size_t executes = own;
    if (!regions_.is_removed(op)) executes = choose_own(op);
    if (steps_.size() == begin) return;
    if (executes >= steps_.size()) executes = begin;
    steps_[executes].instruction.executes = true;
  }

  void compute(const Reciprocal& reciprocal) {
    const std::uint32_t value = new_value();
    reciprocal_values_.push_back(value);
    std::vector<std::uint32_t> needed;
    if (reciprocal.divisor.kind == SourceKind::reg) needed.push_back(reciprocal.divisor.reg());
    for (const ExpansionStep& own : reciprocal.steps) {
      Step step;
      step.instruction.reads_constant = needed.empty() && reciprocal.divisor.kind == SourceKind::bank;
      if (own.chained) {
        step.reads = needed;
        step.writes = needed = {value};
      }
      add(own.kind, std::move(step));
    }
  }

  std::uint32_t new_value() {
    words_.push_back(1);
    return static_cast<std::uint32_t>(words_.size() - 1);
  }

  // The operation's own instructions; returns the one with which it takes effect.
  std::size_t choose_own(std::uint32_t op) {
    const Sequence& sequence = sequences_[op];
    if (sequence.length() == 0) return steps_.size();
    Step whole;
    for (std::uint32_t id : values_.reads(op)) read(whole, id);
    whole.guarded = values_.is_guarded(op);
    if (const std::uint32_t predicate = regions_.predicate(op); predicate != kNoOperation) {
      read(whole, predicate);
      whole.guarded = true;
    }
    if (const std::uint32_t known = reciprocals_.of[op]; known != kNoOperation)
      whole.reads.push_back(reciprocal_values_[known]);
    for (std::uint32_t id : values_.writes(op)) whole.writes.push_back(id);
    if (const auto others = loads_with_.find(op); others != loads_with_.end()) {
      whole.instruction.vectorised = static_cast<std::uint8_t>(1 + others->second.size());
      for (std::uint32_t other : others->second)
        for (std::uint32_t id : values_.writes(other)) whole.writes.push_back(id);
    }
    const Constants constants = constants_of(values_, selection_, op);
    std::size_t kept = constants.keeps_one ? 0 : constants.list.size();
    if (constants.keeps_one && known_register(constants.list[0], op) != kNoOperation)
      for (std::size_t i = 1; i < constants.list.size(); ++i)
        if (known_register(constants.list[i], op) == kNoOperation) kept = i;
    for (std::size_t i = 0; i < constants.list.size(); ++i) {
      if (i == kept) continue;
      const std::uint32_t value = register_of(constants.list[i], op);
      if (std::ranges::find(whole.reads, value) == whole.reads.end()) whole.reads.push_back(value);
    }
    if (const WarpAggregatedAtomic* aggregated = warp_aggregated_atomic(values_, op);
        aggregated != nullptr && has_one_address(op))
      return choose_warp_aggregated(*aggregated, sequence.main, whole);
    // The first instruction reads what the operation reads. Each that needs the one before it waits for the
    // result's registers, and the last of these has the result.
    Expansion steps = sequence.steps;
    // Where all lanes go the same way, none has to wait for others behind the slow path.
    if (has_slow_path(steps) && !regions_.is_divergent(values_.result(op)))
      steps = steps.subspan(2, steps.size() - 3);
    const std::size_t first = steps_.size();
    const bool has_main = sequence.main != InstructionKind::count;
    std::size_t last = 0;
    for (std::size_t i = 0; i < steps.size(); ++i)
      if (steps[i].chained) last = i;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      Step step;
      const bool chained = steps[i].chained;
      if (i == 0 && !has_main) step = whole;
      if (i == 0 && i != last && !chained) step.writes.clear();
      if (chained && !has_main && i != 0) {
        step.reads = first_chained(steps) == i ? whole.reads : whole.writes;
        step.writes = whole.writes;
      }
      if (i == last && !has_main) step.writes = whole.writes;
      const InstructionKind kind = steps[i].kind;
      step.instruction.dual_pipe = steps.size() == 1 && selection_.form(op) == Form::plain &&
                                   (kind == InstructionKind::integer || kind == InstructionKind::logic) &&
                                   is_dual_pipe(op);
      add(kind, std::move(step));
    }
    if (!has_main) return first;
    const std::size_t main = steps_.size();
    for (unsigned i = 0; i < sequence.repeat; ++i) add(sequence.main, whole);
    return main;
  }

  // Whether all lanes of a warp use the same address.
  bool has_one_address(std::uint32_t op) const {
    std::int64_t offset = 0;
    const Source base = values_.address(op, offset);
    return base.is_constant() || (base.kind == SourceKind::reg && !regions_.is_divergent(base.reg()));
  }

  // An atomic operation that one lane makes for all; returns the instruction with which it takes effect.
  std::size_t choose_warp_aggregated(const WarpAggregatedAtomic& aggregated, InstructionKind kind,
                                     Step whole) {
    const std::uint32_t shared_value = new_value();  // what the lanes compute together
    std::vector<std::uint32_t> needed = whole.reads;
    bool decided = false;  // whether all lanes are here
    auto chain = [&](Expansion steps) {
      for (const ExpansionStep& own : steps) {
        Step step;
        if (own.chained) {
          step.reads = needed;
          step.writes = {shared_value};
          needed = {shared_value};
        }
        step.instruction.all_lanes = aggregated.alone_first && decided;
        add(own.kind, std::move(step));
        decided |= own.kind == InstructionKind::branch;
      }
    };
    chain(aggregated.before);
    const std::size_t main = steps_.size();
    whole.reads.push_back(shared_value);
    whole.instruction.warp_aggregated = true;
    add(kind, whole);
    if (aggregated.after.empty()) return main;
    needed = whole.writes;
    chain(aggregated.after);
    steps_.back().writes = whole.writes;
    return main;
  }

  // What ptxas gives to the FMA pipe where the ALU pipe has enough to do.
  bool is_dual_pipe(std::uint32_t op) const {
    const std::string_view opcode = values_.opcode(op);
    return opcode == "add" || opcode == "sub" || opcode == "mov" || opcode == "shl";
  }

  static std::size_t first_chained(Expansion steps) {
    const auto found = std::ranges::find(steps, true, &ExpansionStep::chained);
    return found == steps.end() ? 0 : static_cast<std::size_t>(found - steps.begin());
  }

  // Whether it begins with a convergence barrier and the branch to a slow path, and ends with a branch.
  static bool has_slow_path(Expansion steps) {
    auto jumps = [](const ExpansionStep& step) {
      return step.kind == InstructionKind::branch && !step.chained;
    };
    return steps.size() >= 3 && jumps(steps[0]) && jumps(steps[1]) && jumps(steps.back());
  }

  // A constant stays in its register for what comes after in every case.
  std::uint32_t known_register(const Constant& constant, std::uint32_t op) const {
    const auto known = constants_.find({static_cast<unsigned>(constant.source.kind), constant.source.value});
    if (known == constants_.end()) return kNoOperation;
    for (const auto& [where, value] : known->second)
      if (regions_.dominates(where, regions_.block_of(op)) && words_[value] >= constant.words) return value;
    return kNoOperation;
  }

  std::uint32_t register_of(const Constant& constant, std::uint32_t op) {
    if (const std::uint32_t known = known_register(constant, op); known != kNoOperation) return known;
    const auto value = static_cast<std::uint32_t>(words_.size());
    words_.push_back(static_cast<std::uint8_t>(constant.words));
    constants_[{static_cast<unsigned>(constant.source.kind), constant.source.value}].push_back(
        {regions_.block_of(op), value});
    for (unsigned i = 0; i < constant.words; ++i) {
      Step step;
      step.writes.push_back(value);
      step.instruction.reads_constant = constant.source.kind == SourceKind::bank;
      step.instruction.dual_pipe = true;
      add(InstructionKind::integer, std::move(step));
    }
    return value;
  }

  void give_registers(std::uint32_t most_registers) {
    RegisterUses uses;
    uses.first.push_back(0);
    std::vector<char> partial;
    std::vector<std::uint8_t> depths;
    for (std::uint32_t op = 0; op < code_.ops.size(); ++op) {
      // What the operation itself has written before it reads it, it does not need from others.
      std::vector<std::uint32_t> written;
      for (std::uint32_t i = first_[op]; i < first_[op + 1]; ++i) {
        for (std::uint32_t id : steps_[i].reads)
          if (std::ranges::find(written, id) == written.end()) uses.registers.push_back(id);
        for (std::uint32_t id : steps_[i].writes)
          if (std::ranges::find(written, id) == written.end()) written.push_back(id);
      }
      uses.first.push_back(static_cast<std::uint32_t>(uses.registers.size()));
      uses.registers.insert(uses.registers.end(), written.begin(), written.end());
      uses.first.push_back(static_cast<std::uint32_t>(uses.registers.size()));
      partial.push_back(
          values_.is_guarded(op) &&
          std::ranges::any_of(values_.writes(op), [&](std::uint32_t id) { return values_.writers(id) > 1; }));
      depths.push_back(static_cast<std::uint8_t>(regions_.depth(op)));
    }
    const std::uint32_t room =
        most_registers > 2 * kReservedRegisters ? most_registers - kReservedRegisters : most_registers;
    std::vector<std::uint32_t> calls;
    unsigned barriers = 0;  // that are open during calls
    for (std::uint32_t op = 0; op < code_.ops.size(); ++op) {
      if (code_.ops[op].flow != Flow::call && code_.ops[op].flow != Flow::call_indirect) continue;
      calls.push_back(op);
      barriers = std::max(barriers, regions_.open_barriers(op));
    }
    const RegisterFile file =
        assign_registers({regions_.blocks(), uses, partial, words_, depths, calls, room});
    result_.used_registers = std::min(file.used + kReservedRegisters, most_registers);
    result_.spilled = file.spills;
    std::size_t next_load = 0;
    std::size_t next_store = 0;
    for (std::uint32_t op = 0; op < code_.ops.size(); ++op) {
      result_.first.push_back(static_cast<std::uint32_t>(result_.instructions.size()));
      result_.predicated.push_back(regions_.is_predicated_branch(op) ? 1 : 0);
      if (is_recursive_ && op == 0) keep_registers(InstructionKind::store_local, barriers, file);
      if (is_recursive_ && code_.ops[op].flow == Flow::ret && regions_.is_reached(op))
        keep_registers(InstructionKind::load_local, barriers, file);
      for (; next_load < file.loads.size() && file.loads[next_load].op == op; ++next_load)
        push(spill_step(InstructionKind::load_local, file.loads[next_load].value, false), file);
      for (std::uint32_t i = first_[op]; i < first_[op + 1]; ++i) push(steps_[i], file);
      for (; next_store < file.stores.size() && file.stores[next_store].op == op; ++next_store)
        push(spill_step(InstructionKind::store_local, file.stores[next_store].value, true), file);
    }
    result_.first.push_back(static_cast<std::uint32_t>(result_.instructions.size()));
  }

  // Functions of a program share the registers out among themselves, and none has to save any. One that can
  // be entered again before it is left keeps in local memory what its caller needs: where to return to, the
  // convergence barriers, and the registers that hold something of its own during calls.
  void keep_registers(InstructionKind kind, unsigned barriers, const RegisterFile& file) {
    constexpr unsigned kReturnAddress = 2;
    constexpr unsigned kFirstKept = 16;  // by the rules for calls
    auto push_one = [&](InstructionKind each) -> SassInstruction& {
      SassInstruction& instruction = result_.instructions.emplace_back();
      instruction.kind = each;
      instruction.first = static_cast<std::uint32_t>(result_.registers.size());
      return instruction;
    };
    for (unsigned i = 0; i < kReturnAddress + barriers + file.kept; ++i) {
      SassInstruction& instruction = push_one(kind);
      (kind == InstructionKind::store_local ? instruction.reads : instruction.writes) = 1;
      result_.registers.push_back(static_cast<std::uint8_t>(std::min(kFirstKept + i, kMostRegisters - 1)));
    }
    for (unsigned i = 0; i < barriers; ++i) push_one(InstructionKind::branch);
    push_one(InstructionKind::integer);  // the stack pointer
  }

  static Step spill_step(InstructionKind kind, std::uint32_t value, bool reads) {
    Step step;
    step.instruction.kind = kind;
    (reads ? step.reads : step.writes).push_back(value);
    return step;
  }

  void push(const Step& step, const RegisterFile& file) {
    SassInstruction instruction = step.instruction;
    instruction.first = static_cast<std::uint32_t>(result_.registers.size());
    auto list = [&](const std::vector<std::uint32_t>& values, std::uint8_t& predicates, std::uint8_t& count) {
      for (std::uint32_t id : values) {
        if (words_[id] == 0) predicates |= static_cast<std::uint8_t>(1U << file.first[id]);
        for (unsigned i = 0; i < words_[id] && count < 255; ++i, ++count)
          result_.registers.push_back(static_cast<std::uint8_t>(file.first[id] + i));
      }
    };
    list(step.reads, instruction.reads_predicates, instruction.reads);
    list(step.writes, instruction.writes_predicates, instruction.writes);
    if (step.guarded) instruction.guards = instruction.reads_predicates;
    result_.instructions.push_back(instruction);
  }

  const Code& code_;
  const ptx::Function& function_;
  const bool is_kernel_;
  const bool is_recursive_;
  Values values_;
  Selection selection_;
  std::vector<Sequence> sequences_;  // by operation
  Regions regions_;
  std::vector<char> turning_heads_;  // by operation
  Reciprocals reciprocals_;
  std::vector<std::uint32_t> reciprocal_values_;  // of those that have been computed
  std::vector<std::uint8_t> words_;               // of values: elements first, then constants
  std::map<std::pair<unsigned, std::uint64_t>, std::vector<std::pair<std::uint32_t, std::uint32_t>>>
      constants_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> loads_with_;
  std::vector<Step> steps_;
  std::vector<std::uint32_t> first_;  // of an operation: steps
  SassFunction result_;
};

// By function: whether a call of it can lead to another before it has ended.
std::vector<char> recursive_functions(const Program& program) {
  std::vector<char> result(program.codes.size(), 0);
  std::vector<std::uint32_t> entered(program.codes.size(), ptx::kNone);  // by function: on behalf of which
  std::vector<std::uint32_t> work;
  for (std::uint32_t id = 0; id < program.codes.size(); ++id) {
    work.assign(1, id);
    while (!work.empty()) {
      const std::uint32_t caller = work.back();
      work.pop_back();
      for (const CallSite& call : program.codes[caller].calls) {
        if (call.callee >= program.codes.size() || entered[call.callee] == id) continue;
        entered[call.callee] = id;
        work.push_back(call.callee);
      }
    }
    result[id] = entered[id] == id;
  }
  return result;
}

}  // namespace

SassProgram lower(const Program& program, std::uint32_t most_registers) {
  if (program.module == nullptr) return scheduled_program(program);
  SassProgram result;
  result.functions.resize(program.codes.size());
  std::uint64_t address = 0;
  std::uint32_t registers = 0;
  const std::uint32_t limit =
      std::min(most_registers, register_limit(program.module->functions[program.functions[program.kernel]]));
  const std::vector<char> recursive = recursive_functions(program);
  for (std::uint32_t id = 0; id < program.codes.size(); ++id) {
    if (program.codes[id].ops.empty()) continue;
    FunctionLowering lowering(program, id, recursive[id] != 0);
    result.functions[id] = lowering.lower(limit);
    result.functions[id].address = address;
    address += (result.functions[id].instructions.size() * kInstructionBytes + 127) / 128 * 128;
    registers = std::max(registers, result.functions[id].used_registers);
  }
  // Given in eights, at least sixteen.
  result.registers = std::max(16U, (registers + 7) / 8 * 8);
  return result;
}

}  // namespace manyscale::gpu
