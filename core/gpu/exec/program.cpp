// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/program.hpp"

#include <algorithm>
#include <set>

#include "gpu/exec/function_decoder.hpp"
#include "gpu/exec/opcodes.hpp"

namespace manyscale::gpu {

using ptx::Operand;
using ptx::OperandKind;
using ptx::Space;

namespace {

std::uint64_t align_up_to(std::uint64_t value, std::uint64_t alignment) {
  return alignment <= 1 ? value : (value + alignment - 1) / alignment * alignment;
}

template <class Visit>
void for_each_operand(const ptx::Module& module, const Operand& operand, Visit& visit) {
  visit(operand);
  for (const Operand& child : module.children(operand)) for_each_operand(module, child, visit);
}

template <class Visit>
void for_each_operand(const ptx::Module& module, const ptx::Function& function, Visit visit) {
  for (const ptx::Instruction& instruction : function.instructions)
    for (const Operand& operand : module.operands_of(instruction)) for_each_operand(module, operand, visit);
}

bool calls_indirectly(const ptx::Module& module, const ptx::Function& function) {
  return std::ranges::any_of(function.instructions, [&](const ptx::Instruction& instruction) {
    if (instruction.opcode != "call") return false;
    return std::ranges::none_of(module.operands_of(instruction),
                                [](const Operand& o) { return o.kind == OperandKind::function; });
  });
}

// Allocates the shared variables that the functions use: those of known size first, the dynamic ones behind
// them.
void lay_out_shared(ProgramDecoder& decoder, const std::set<std::uint32_t>& functions) {
  using Key = std::pair<std::uint32_t, std::uint32_t>;
  std::set<Key> used;
  for (std::uint32_t id : functions) {
    const ptx::Function& function = decoder.module.functions[id];
    for_each_operand(decoder.module, function, [&](const Operand& operand) {
      if (operand.kind != OperandKind::variable) return;
      const ptx::Variable& variable =
          operand.is_local ? function.variables[operand.id] : decoder.module.variables[operand.id];
      if (variable.space == Space::shared) used.insert({operand.is_local ? id : ptx::kNone, operand.id});
    });
  }
  auto variable_of = [&](const Key& key) -> const ptx::Variable& {
    return key.first == ptx::kNone ? decoder.module.variables[key.second]
                                   : decoder.module.functions[key.first].variables[key.second];
  };
  std::uint64_t top = 0;
  std::uint64_t dynamic_alignment = 16;
  for (const Key& key : used) {
    const ptx::Variable& variable = variable_of(key);
    if (variable.unsized || variable.linkage == ptx::Linkage::external) {
      dynamic_alignment = std::max<std::uint64_t>(dynamic_alignment, variable.alignment);
      continue;
    }
    top = align_up_to(top, variable.alignment);
    decoder.shared[key] = top;
    top += variable.size;
  }
  const bool has_dynamic =
      std::ranges::any_of(used, [&](const Key& key) { return !decoder.shared.contains(key); });
  if (has_dynamic) top = align_up_to(top, dynamic_alignment);
  for (const Key& key : used) decoder.shared.try_emplace(key, top);
  decoder.program.static_shared_bytes = top;
}

// Whether CTAs that run at the same time can see the order in which they do.
bool order_matters(const Program& program) {
  for (const Code& code : program.codes) {
    std::set<std::uint32_t> read;
    for (const OpInfo& info : code.infos)
      for (unsigned i = 0; i < info.reads; ++i) read.insert(code.registers[info.first_read + i]);
    for (const Op& op : code.ops) {
      if (op.flow == Flow::join) continue;
      const OpInfo& info = code.infos[op.info];
      if (op.flags & kOrdered) return true;
      if (!(op.flags & kOrderedIfRead)) continue;
      for (unsigned i = 0; i < info.writes; ++i)
        if (read.contains(code.registers[info.first_write + i])) return true;
    }
  }
  return false;
}

}  // namespace

std::set<std::uint32_t> reachable_functions(const ptx::Module& module, std::uint32_t kernel) {
  std::set<std::uint32_t> reached;
  std::vector<std::uint32_t> work{kernel};
  bool addresses_added = false;
  while (!work.empty()) {
    const std::uint32_t id = work.back();
    work.pop_back();
    if (!reached.insert(id).second) continue;
    const ptx::Function& function = module.functions[id];
    for_each_operand(module, function, [&](const Operand& operand) {
      if (operand.kind == OperandKind::function) work.push_back(operand.id);
    });
    if (addresses_added || !calls_indirectly(module, function)) continue;
    addresses_added = true;
    for (const ptx::Variable& variable : module.variables)
      for (const ptx::Relocation& relocation : variable.relocations)
        if (relocation.is_function) work.push_back(relocation.id);
    for (const ptx::Function& other : module.functions)
      for_each_operand(module, other, [&](const Operand& operand) {
        if (operand.kind == OperandKind::function) work.push_back(operand.id);
      });
  }
  std::erase_if(reached, [&](std::uint32_t id) { return id != kernel && module.functions[id].is_entry; });
  return reached;
}

std::vector<KernelParameter> kernel_parameters(const ptx::Module& module, std::uint32_t kernel) {
  const ptx::Function& function = module.functions[kernel];
  std::vector<KernelParameter> parameters;
  std::uint64_t top = 0;
  for (std::uint32_t id : function.parameters) {
    const ptx::Variable& variable = function.variables[id];
    top = align_up_to(top, variable.alignment);
    parameters.push_back({std::string(variable.name), variable.type, top, variable.size, variable.alignment,
                          variable.size != ptx::size_of(variable.type)});
    top += variable.size;
  }
  return parameters;
}

Program decode(const ptx::Module& module, std::uint32_t kernel, const Placement& placement, bool reorder) {
  Program program;
  program.module = &module;
  program.module_name = module.name;
  program.kernel_name = module.functions[kernel].name;
  program.files = module.files;
  program.parameters = kernel_parameters(module, kernel);
  if (!program.parameters.empty()) {
    const KernelParameter& last = program.parameters.back();
    program.parameter_bytes = last.offset + last.size;
  }
  const std::set<std::uint32_t> functions = reachable_functions(module, kernel);
  program.functions.assign(functions.begin(), functions.end());
  program.kernel = program.code_of(kernel);
  ProgramDecoder decoder{module, placement, program, reorder, {}, {}};
  lay_out_shared(decoder, functions);
  for (std::uint32_t id : functions)
    program.codes.push_back(module.functions[id].has_body ? FunctionDecoder(decoder, id).decode() : Code{});
  program.order_matters = order_matters(program);
  program.cross_cta_reads = find_cross_cta_reads(
      module, kernel, functions, [&](std::uint32_t function, std::uint32_t variable) -> DeviceMemory::Range {
        const bool own = function != ptx::kNone;
        const auto& addresses = own ? placement.function_variables[function] : placement.variables;
        const auto& variables = own ? module.functions[function].variables : module.variables;
        const std::uint64_t address = variable < addresses.size() ? addresses[variable] : 0;
        return {address, address == 0 ? 0 : variables[variable].size};
      });
  return program;
}

const Opcode* find_opcode(std::string_view name, ptx::Type type) {
  static const auto table = [] {
    std::multimap<std::string_view, const Opcode*> result;
    for (auto list : {integer_opcodes(), bit_opcodes(), compare_opcodes(), float_opcodes(), half_opcodes(),
                      convert_opcodes(), move_opcodes(), memory_opcodes(), atomic_opcodes(), warp_opcodes(),
                      barrier_opcodes(), async_copy_opcodes(), mbarrier_opcodes(), tensor_opcodes(),
                      texture_opcodes(), surface_opcodes(), control_opcodes(), system_opcodes()})
      for (const Opcode& opcode : list) result.emplace(opcode.name, &opcode);
    return result;
  }();
  const Operates wanted = type == ptx::Type::f32x2                           ? Operates::on_pairs
                          : type == ptx::Type::f32 || type == ptx::Type::f64 ? Operates::on_floats
                          : ptx::is_float(type)                              ? Operates::on_halves
                                                                             : Operates::on_integers;
  const auto [first, last] = table.equal_range(name);
  for (auto entry = first; entry != last; ++entry)
    if (entry->second->operates == Operates::always || entry->second->operates == wanted)
      return entry->second;
  return nullptr;
}

}  // namespace manyscale::gpu
