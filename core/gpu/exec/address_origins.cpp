// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/address_origins.hpp"

#include <algorithm>
#include <array>

#include "gpu/exec/program.hpp"

namespace manyscale::gpu {

using ptx::Operand;
using ptx::OperandKind;
using ptx::Space;
using Value = AddressValue;

namespace {

// The flags of a value whose axes went through an operation that is not one-to-one.
std::uint32_t lossy(std::uint32_t flags, std::uint32_t kind) {
  const std::uint32_t axes = (flags | flags >> 3 | flags >> 6) & 7;
  return (flags & ~Value::kAxes) | axes * kind;
}

// x - x / n * n is a remainder.
std::uint32_t difference(std::uint32_t of, std::uint32_t subtracted) {
  const std::uint32_t axes = of & (subtracted / Value::kQuotient) & 7;
  const std::uint32_t cleared = axes * (Value::kAxis | Value::kQuotient);
  return ((of | subtracted) & ~cleared) | axes * Value::kRemainder;
}

bool is_one_of(std::string_view opcode, std::span<const std::string_view> names) {
  return std::ranges::find(names, opcode) != names.end();
}

Value special_value(const Operand& operand) {
  static constexpr std::array<std::string_view, 6> uniform{
      "%ntid", "%nctaid", "%gridid", "%nwarpid", "%total_smem_size", "%dynamic_smem_size"};
  if (operand.text.starts_with("%ctaid"))
    return {0, Value::kVarying | (operand.component < 3 ? Value::kAxis << operand.component : 0)};
  if (std::ranges::any_of(uniform, [&](std::string_view name) { return operand.text.starts_with(name); }))
    return {};
  const bool of_thread = operand.text.starts_with("%tid") || operand.text.starts_with("%lane") ||
                         operand.text.starts_with("%warpid");
  return {0, Value::kVarying | (of_thread ? 0 : Value::kLoaded)};
}

}  // namespace

bool AddressValue::merge(const AddressValue& other) {
  const AddressValue before = *this;
  origins |= other.origins;
  flags |= other.flags;
  return origins != before.origins || flags != before.flags;
}

std::uint8_t AddressValue::axes() const {
  if (flags & kLoaded) return 0;
  return static_cast<std::uint8_t>((flags | (flags / kQuotient & flags / kRemainder)) & 7);
}

AccessModifiers access_modifiers(const ptx::Module& module, const ptx::Instruction& instruction) {
  AccessModifiers found;
  for (std::string_view modifier : module.modifiers_of(instruction)) {
    const std::string_view name = modifier.substr(0, modifier.find("::"));
    if (name == "param") found.space = Space::param;
    if (name == "global") found.space = Space::global;
    if (name == "shared") found.space = Space::shared;
    if (name == "local") found.space = Space::local;
    if (name == "const") found.space = Space::constant;
    if (name == "nc") found.read_only = true;
    if (name == "v2") found.elements = 2;
    if (name == "v4") found.elements = 4;
    if (name == "v8") found.elements = 8;
    if (found.type == ptx::Type::none) found.type = ptx::type_named(modifier);
  }
  return found;
}

bool is_modified_by(const ptx::Module& module, const ptx::Instruction& instruction, std::string_view name) {
  const auto modifiers = module.modifiers_of(instruction);
  return std::ranges::find(modifiers, name) != modifiers.end();
}

bool has_no_result(std::string_view opcode) {
  static constexpr std::array<std::string_view, 24> names{
      "st",      "red",      "bra",  "brx",   "bar",      "barrier",   "membar",     "fence",
      "ret",     "exit",     "trap", "cp",    "prefetch", "prefetchu", "sust",       "sured",
      "discard", "stmatrix", "call", "brkpt", "pmevent",  "nanosleep", "setmaxnreg", "applypriority"};
  return is_one_of(opcode, names);
}

AddressOrigins::AddressOrigins(const ptx::Module& module, std::uint32_t kernel,
                               const std::set<std::uint32_t>& functions)
    : module_(module), kernel_(kernel), functions_(functions) {
  const ptx::Function& entry = module.functions[kernel];
  const std::vector<KernelParameter> parameters = kernel_parameters(module, kernel);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameter_offsets_[entry.parameters[i]] = parameters[i].offset;
    parameter_bytes_ = parameters[i].offset + parameters[i].size;
  }
  for (const std::uint32_t id : functions) {
    FunctionValues& values = values_[id];
    values.registers.resize(module.functions[id].registers.size());
    values.variables.resize(module.functions[id].variables.size());
  }
  do {
    changed_ = false;
    for (const std::uint32_t id : functions) visit(id);
  } while (changed_);
}

std::uint64_t AddressOrigins::origin(const AddressOrigin& origin) {
  const auto [found, is_new] = indices_.try_emplace(
      {origin.is_parameter, origin.function, origin.variable, origin.offset}, origins_.size());
  if (is_new) origins_.push_back(origin);
  return std::uint64_t{1} << std::min(found->second, kLastBit);
}

std::uint64_t AddressOrigins::all_parameters() {
  std::uint64_t bits = 0;
  for (std::uint64_t offset = 0; offset + 8 <= parameter_bytes_; offset += 8)
    bits |= origin({true, ptx::kNone, 0, offset});
  return bits;
}

Value AddressOrigins::value(std::uint32_t function, const Operand& operand) {
  switch (operand.kind) {
    case OperandKind::reg: {
      const auto found = since_label_.find(operand.id);
      return found != since_label_.end() ? found->second : values_.at(function).registers[operand.id];
    }
    case OperandKind::special:
      return special_value(operand);
    case OperandKind::address: {
      const auto children = module_.children(operand);
      return children.empty() ? Value{} : value(function, children[0]);
    }
    case OperandKind::vector:
    case OperandKind::pair:
    case OperandKind::list: {
      Value all;
      for (const Operand& child : module_.children(operand)) all.merge(value(function, child));
      return all;
    }
    case OperandKind::variable: {
      const ptx::Variable& variable = operand.is_local ? module_.functions[function].variables[operand.id]
                                                       : module_.variables[operand.id];
      if (variable.space == Space::param) return {0, Value::kParameter};
      if (variable.space != Space::global) return {0, Value::kElsewhere};
      return {origin({false, operand.is_local ? function : ptx::kNone, operand.id, 0}), 0};
    }
    default:
      return {};
  }
}

void AddressOrigins::assign(std::uint32_t function, const Operand& destination, const Value& value) {
  if (destination.kind == OperandKind::reg) {
    changed_ |= values_.at(function).registers[destination.id].merge(value);
    // A guarded instruction, or one that writes a part of a register, leaves what was there.
    if (is_guarded_ || destination.component != 255)
      since_label_.erase(destination.id);
    else
      since_label_[destination.id] = value;
  } else if (destination.kind == OperandKind::vector || destination.kind == OperandKind::pair)
    for (const Operand& child : module_.children(destination)) assign(function, child, value);
}

void AddressOrigins::visit(std::uint32_t function) {
  const ptx::Function& of = module_.functions[function];
  std::set<std::uint32_t> labels;
  for (const ptx::BranchTable& table : of.branch_tables)
    labels.insert(table.targets.begin(), table.targets.end());
  for (const ptx::Instruction& instruction : of.instructions)
    for (const Operand& operand : module_.operands_of(instruction))
      if (operand.kind == OperandKind::label) labels.insert(operand.id);
  since_label_.clear();
  for (std::uint32_t i = 0; i < of.instructions.size(); ++i) {
    const ptx::Instruction& instruction = of.instructions[i];
    if (labels.contains(i)) since_label_.clear();
    is_guarded_ = instruction.guard != ptx::kNone;
    for (const Operand& operand : module_.operands_of(instruction))
      if (operand.kind == OperandKind::address) addresses_[&operand] = value(function, operand);
    visit(function, instruction);
  }
}

void AddressOrigins::visit(std::uint32_t function, const ptx::Instruction& instruction) {
  if (instruction.operands == 0) return;
  if (instruction.opcode == "call") return visit_call(function, instruction);
  if (instruction.opcode == "st") return visit_store(function, instruction);
  if (has_no_result(instruction.opcode)) return;
  if (instruction.opcode == "ld" || instruction.opcode == "ldu") return visit_load(function, instruction);
  assign(function, module_.operands_of(instruction)[0], compute(function, instruction));
}

Value AddressOrigins::load_parameter(std::uint32_t function, const Operand& address, unsigned bytes,
                                     unsigned elements) {
  const auto children = module_.children(address);
  if (children.empty() || children[0].kind != OperandKind::variable) return {all_parameters(), 0};
  const Operand& base = children[0];
  const auto found = parameter_offsets_.find(base.id);
  if (function != kernel_ || found == parameter_offsets_.end())
    return values_.at(function).variables[base.id];
  Value loaded;
  if (bytes != 8) return loaded;  // too small for a pointer
  for (unsigned i = 0; i < elements; ++i)
    loaded.origins |=
        origin({true, ptx::kNone, 0,
                (found->second + static_cast<std::uint64_t>(base.value + address.value) + 8 * i) / 8 * 8});
  return loaded;
}

void AddressOrigins::visit_load(std::uint32_t function, const ptx::Instruction& instruction) {
  const auto operands = module_.operands_of(instruction);
  if (operands.size() < 2) return;
  const AccessModifiers access = access_modifiers(module_, instruction);
  const unsigned bytes = ptx::size_of(access.type);
  if (access.space == Space::param)
    return assign(function, operands[0], load_parameter(function, operands[1], bytes, access.elements));
  const Value address = value(function, operands[1]);
  if (access.space == Space::local) return assign(function, operands[0], values_.at(function).local);
  Value loaded;
  const bool uniform = access.space != Space::shared && !(address.flags & Value::kElsewhere) &&
                       !(address.flags & (Value::kVarying | Value::kLoaded | Value::kAxes));
  if (!uniform) loaded.flags |= Value::kVarying | Value::kLoaded;
  if (access.space == Space::constant && !(address.flags & (Value::kVarying | Value::kLoaded)))
    loaded.flags = 0;
  if (bytes == 8 && !ptx::is_float(access.type)) loaded.flags |= Value::kPointer;
  if (address.flags & Value::kParameter) loaded.origins |= all_parameters();
  if (address.flags & Value::kElsewhere && access.space == Space::generic)
    loaded.merge(values_.at(function).local);
  assign(function, operands[0], loaded);
}

void AddressOrigins::visit_store(std::uint32_t function, const ptx::Instruction& instruction) {
  const auto operands = module_.operands_of(instruction);
  if (operands.size() < 2) return;
  const AccessModifiers access = access_modifiers(module_, instruction);
  const Value stored = value(function, operands[1]);
  FunctionValues& values = values_.at(function);
  if (access.space == Space::param) {
    const auto children = module_.children(operands[0]);
    if (!children.empty() && children[0].kind == OperandKind::variable)
      changed_ |= values.variables[children[0].id].merge(stored);
  } else if (access.space == Space::local ||
             (access.space == Space::generic && value(function, operands[0]).flags & Value::kElsewhere)) {
    changed_ |= values.local.merge(stored);
  }
}

void AddressOrigins::visit_call(std::uint32_t function, const ptx::Instruction& instruction) {
  const auto operands = module_.operands_of(instruction);
  std::size_t at = 0;
  std::span<const Operand> results;
  std::span<const Operand> arguments;
  if (operands[at].kind == OperandKind::list) results = module_.children(operands[at++]);
  if (at == operands.size()) return;
  const Operand& target = operands[at++];
  if (at < operands.size() && operands[at].kind == OperandKind::list)
    arguments = module_.children(operands[at]);
  if (target.kind == OperandKind::function) return pass_arguments(function, target.id, results, arguments);
  for (const std::uint32_t id : functions_)
    if (id != kernel_ && module_.functions[id].parameters.size() == arguments.size())
      pass_arguments(function, id, results, arguments);
}

void AddressOrigins::pass_arguments(std::uint32_t caller, std::uint32_t callee,
                                    std::span<const Operand> results, std::span<const Operand> arguments) {
  if (module_.functions[callee].alias_of != ptx::kNone) callee = module_.functions[callee].alias_of;
  const ptx::Function& function = module_.functions[callee];
  const auto cell = [&](std::uint32_t id) -> Value& {
    FunctionValues& values = values_.at(callee);
    return function.register_parameters ? values.registers[id] : values.variables[id];
  };
  const auto is_variable = [](const Operand& operand) { return operand.kind == OperandKind::variable; };
  const bool has_body = function.has_body && values_.contains(callee);
  for (std::size_t i = 0; has_body && i < std::min(arguments.size(), function.parameters.size()); ++i)
    changed_ |= cell(function.parameters[i])
                    .merge(is_variable(arguments[i]) ? values_.at(caller).variables[arguments[i].id]
                                                     : value(caller, arguments[i]));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Value returned = has_body && i < function.results.size()
                               ? cell(function.results[i])
                               : Value{0, Value::kLoaded | Value::kVarying | Value::kPointer};
    if (is_variable(results[i]))
      changed_ |= values_.at(caller).variables[results[i].id].merge(returned);
    else
      assign(caller, results[i], returned);
  }
}

Value AddressOrigins::compute(std::uint32_t function, const ptx::Instruction& instruction) {
  static constexpr std::array<std::string_view, 6> moves{"mov", "selp", "cvta", "cvt", "shfl", "slct"};
  static constexpr std::array<std::string_view, 4> tests{"setp", "set", "testp", "isspacep"};
  static constexpr std::array<std::string_view, 4> quotients{"div", "shr", "min", "max"};
  static constexpr std::array<std::string_view, 3> remainders{"rem", "and", "bfe"};
  static constexpr std::array<std::string_view, 5> from_memory{"atom", "tex", "tld4", "suld", "ldmatrix"};
  const std::string_view opcode = instruction.opcode;
  const auto sources = module_.operands_of(instruction).subspan(1);
  if (is_one_of(opcode, from_memory)) return {0, Value::kLoaded | Value::kVarying | Value::kPointer};
  Value all;
  for (const Operand& source : sources) all.merge(value(function, source));
  if (is_one_of(opcode, tests)) {
    const bool varies = all.flags & (Value::kVarying | Value::kAxes);
    return {0, (all.flags & Value::kLoaded) | (varies ? Value::kVarying : 0)};
  }
  if (is_one_of(opcode, moves)) return all;
  const auto is_negative = [&](std::size_t source) {
    return sources.size() > source && sources[source].kind == OperandKind::integer &&
           sources[source].value < 0;
  };
  if (is_one_of(opcode, quotients) || is_modified_by(module_, instruction, "hi") ||
      (opcode == "and" && is_negative(1)))
    all.flags = lossy(all.flags, Value::kQuotient);
  else if (is_one_of(opcode, remainders))
    all.flags = lossy(all.flags, Value::kRemainder);
  else if (opcode == "sub" && sources.size() == 2)
    all.flags = difference(value(function, sources[0]).flags, value(function, sources[1]).flags);
  else if (opcode == "mad" && is_negative(1) && sources.size() == 3)
    all.flags = difference(value(function, sources[2]).flags, value(function, sources[0]).flags);
  // What is added to a pointer is an index; what is multiplied or shifted is no pointer.
  const bool adds = opcode == "add" || opcode == "sub" || opcode == "or" || opcode == "mad";
  if (all.flags & Value::kPointer && (all.origins != 0 || !adds))
    all.flags = (all.flags & ~Value::kPointer) | Value::kAddend;
  return all;
}

}  // namespace manyscale::gpu
