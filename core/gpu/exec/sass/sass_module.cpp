// SPDX-License-Identifier: Apache-2.0
#include "gpu/exec/sass/sass_module.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

#include "gpu/exec/address_space.hpp"
#include "gpu/exec/launch.hpp"
#include "gpu/exec/sass/builtins.hpp"

namespace manyscale::gpu {

using sass::CubinFunction;
using sass::CubinRelocation;
using sass::CubinSection;
using sass::CubinSymbol;

namespace {

constexpr std::uint64_t kFunctionAlignment = 128;
constexpr unsigned kVariableBank = ConstantBanks::kVariableBank;
// Of a thread: what functions of the system may need, and what a program gets whose depth is not known.
constexpr std::uint32_t kCallStack = 2 << 10;
constexpr std::uint32_t kRecursionStack = 64 << 10;
constexpr std::uint32_t kMostStack = 512 << 10;

std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

bool is_data(const CubinSection& section) {
  return section.name == ".nv.global" || section.name == ".nv.global.init" || section.name == ".nv.constant3";
}

// Of ".nv.constant2.kernel" the number of the bank and the kernel, which is empty if all have the bank;
// nothing if it is another section.
std::optional<std::pair<unsigned, std::string_view>> bank_of(const CubinSection& section) {
  constexpr std::string_view kPrefix = ".nv.constant";
  std::string_view rest = section.name;
  if (!rest.starts_with(kPrefix)) return std::nullopt;
  rest.remove_prefix(kPrefix.size());
  unsigned bank = 0;
  while (!rest.empty() && rest[0] >= '0' && rest[0] <= '9' && bank < ConstantBanks::kCount) {
    bank = 10 * bank + static_cast<unsigned>(rest[0] - '0');
    rest.remove_prefix(1);
  }
  if (bank >= ConstantBanks::kCount) return std::nullopt;
  if (!rest.empty() && rest[0] != '.') return std::nullopt;
  return std::pair(bank, rest.empty() ? rest : rest.substr(1));
}

// Which calls a text makes: to a found in it, or to one that is not known.
struct Calls {
  bool any = false;
  bool recursive = false;
};

Calls calls_of(const MachineText& text, std::vector<std::uint64_t> begins) {
  Calls calls;
  // Functions are where symbols say; a call of one that can come back to it is recursion.
  begins.push_back(0);
  std::ranges::sort(begins);
  begins.erase(std::ranges::unique(begins).begin(), begins.end());
  const auto function_at = [&](std::uint64_t offset) {
    return static_cast<std::size_t>(std::ranges::upper_bound(begins, offset) - begins.begin() - 1);
  };
  std::vector<std::set<std::size_t>> callees(begins.size());
  for (const sass::Instruction& instruction : text.instructions) {
    if (sass::name_of(instruction.opcode) != "CALL") continue;
    calls.any = true;
    const bool is_known = std::ranges::none_of(instruction.operands, [](const sass::Operand& operand) {
      return operand.kind == sass::OperandKind::general || operand.kind == sass::OperandKind::uniform;
    });
    const bool is_relative = std::ranges::any_of(
        instruction.modifiers, [](sass::Modifier modifier) { return sass::name_of(modifier) == "REL"; });
    const std::size_t from = function_at(instruction.offset);
    if (is_known) {
      for (const sass::Operand& operand : instruction.operands)
        if (operand.kind == sass::OperandKind::target && operand.value >= 0)
          callees[from].insert(function_at(static_cast<std::uint64_t>(operand.value)));
    } else if (is_relative) {
      for (std::size_t other = 1; other < begins.size(); ++other) callees[from].insert(other);
    }
  }
  enum class Mark : std::uint8_t { fresh, open, done };
  std::vector<Mark> marks(begins.size(), Mark::fresh);
  const std::function<void(std::size_t)> visit = [&](std::size_t function) {
    marks[function] = Mark::open;
    for (std::size_t callee : callees[function]) {
      if (marks[callee] == Mark::open) calls.recursive = true;
      if (marks[callee] == Mark::fresh) visit(callee);
    }
    marks[function] = Mark::done;
  };
  visit(0);
  return calls;
}

}  // namespace

SassModule::SassModule(sass::Cubin cubin, DeviceMemory& memory) : cubin_(std::move(cubin)), memory_(memory) {
  allocate_functions();
  allocate_sections();
  relocate();
  for (const CubinFunction& function : cubin_.functions)
    if (function.is_kernel) kernels_.try_emplace(function.name, &function);
  for (const auto& [index, bytes] : constants_)
    if (const auto bank = bank_of(cubin_.sections[index]))
      banks_[bank->second].emplace_back(bank->first, index);
  for (const CubinSymbol& symbol : cubin_.symbols)
    if (symbol.kind == sass::CubinSymbolKind::function) begins_[symbol.section].push_back(symbol.value);
}

SassModule::~SassModule() {
  for (std::uint64_t address : allocations_) memory_.free(address);
}

void SassModule::allocate_functions() {
  std::uint64_t top = 0;
  for (const CubinFunction& function : cubin_.functions) {
    functions_[function.section] = top;
    top = align_up(top + cubin_.sections[function.section].size, kFunctionAlignment);
  }
}

void SassModule::allocate_sections() {
  std::set<std::uint32_t> managed;
  for (const CubinSymbol& symbol : cubin_.symbols)
    if (symbol.is_managed) managed.insert(symbol.section);
  for (std::uint32_t i = 0; i < cubin_.sections.size(); ++i) {
    const CubinSection& section = cubin_.sections[i];
    if (section.name.starts_with(".nv.constant")) constants_[i] = section.bytes;
    if (!is_data(section) || section.size == 0) continue;
    const std::uint64_t address =
        memory_.allocate(section.size, "variables of " + cubin_.name,
                         managed.contains(i) ? DeviceMemory::kManagedAlignment : DeviceMemory::kAlignment);
    allocations_.push_back(address);
    if (managed.contains(i)) managed_.push_back({"", address, section.size});
    data_[i] = address;
    std::memset(memory_.host(address), 0, section.size);
    if (!section.bytes.empty())
      std::memcpy(memory_.host(address), section.bytes.data(), section.bytes.size());
    memory_.mark_written(address, section.size);
  }
  for (const CubinSymbol& symbol : cubin_.symbols) {
    const auto found = data_.find(symbol.section);
    if (symbol.kind != sass::CubinSymbolKind::object || found == data_.end()) continue;
    const CubinSection& section = cubin_.sections[symbol.section];
    if (symbol.value > section.size || section.size - symbol.value < symbol.size) continue;
    variables_.push_back({symbol.name, found->second + symbol.value, symbol.size});
  }
}

std::uint64_t SassModule::address_of(const CubinSymbol& symbol) const {
  if (const auto found = data_.find(symbol.section); found != data_.end())
    return found->second + symbol.value;
  if (const auto found = functions_.find(symbol.section); found != functions_.end())
    return kCodeWindow + found->second + symbol.value;
  return builtin_address(symbol.name).value_or(0);
}

namespace {

// Puts an address into an instruction; false if it is not known how.
bool relocate_instruction(sass::Words& words, std::uint32_t type, std::uint64_t address) {
  constexpr std::uint64_t kLow = 0xffffffff;
  const auto set = [&](unsigned first, unsigned count, std::uint64_t value) {
    for (unsigned i = 0; i < count; ++i) {
      std::uint64_t& word = first + i < 64 ? words.low : words.high;
      const unsigned at = (first + i) % 64;
      word = (word & ~(std::uint64_t{1} << at)) | (value >> i & 1) << at;
    }
  };
  switch (type) {
    case CubinRelocation::lower_half:
      set(32, 32, address & kLow);
      return true;
    case CubinRelocation::upper_half:
      set(32, 32, address >> 32);
      return true;
    case CubinRelocation::called:
      set(34, 47, address >> 2);
      return true;
    case CubinRelocation::called_later:
      set(16, 8, address >> 2 & 0xff);
      set(34, 47, address >> 10);
      return true;
    case CubinRelocation::yield_opcode:
    case CubinRelocation::yield_predicate:
      return true;
    default:
      return false;
  }
}

}  // namespace

void SassModule::relocate_code(const CubinRelocation& relocation, std::uint64_t address) {
  std::vector<std::byte>& bytes = cubin_.sections[relocation.section].bytes;
  const CubinSymbol& symbol = cubin_.symbols[relocation.symbol];
  const std::uint64_t at = relocation.offset;
  sass::Words words;
  if (at % sass::Instruction::kBytes != 0 || at > bytes.size() || bytes.size() - at < sizeof words) return;
  std::memcpy(&words, bytes.data() + at, sizeof words);
  const bool is_known = symbol.section != CubinSymbol::kUndefined || builtin_address(symbol.name).has_value();
  if (!relocate_instruction(words, relocation.type, address)) {
    unresolved_[relocation.section].insert("a relocation of type " + std::to_string(relocation.type) +
                                           " is not supported");
  } else if (!is_known && !symbol.name.empty()) {
    unresolved_[relocation.section].insert(symbol.name + " is not defined, and is no function of the system");
  }
  std::memcpy(bytes.data() + at, &words, sizeof words);
}

void SassModule::relocate() {
  for (const CubinRelocation& relocation : cubin_.relocations) {
    const std::uint64_t value =
        address_of(cubin_.symbols[relocation.symbol]) + static_cast<std::uint64_t>(relocation.addend);
    if (functions_.contains(relocation.section)) {
      relocate_code(relocation, value);
      continue;
    }
    const bool wide =
        relocation.type == CubinRelocation::word64 || relocation.type == CubinRelocation::generic64;
    if (!wide && relocation.type != CubinRelocation::word32 && relocation.type != CubinRelocation::generic32)
      continue;
    const std::size_t bytes = wide ? 8 : 4;
    const std::uint64_t size = cubin_.sections[relocation.section].size;
    if (relocation.offset > size || size - relocation.offset < bytes) continue;
    if (const auto found = data_.find(relocation.section); found != data_.end())
      std::memcpy(memory_.host(found->second) + relocation.offset, &value, bytes);
    if (const auto found = constants_.find(relocation.section);
        found != constants_.end() && relocation.offset + bytes <= found->second.size())
      std::memcpy(found->second.data() + relocation.offset, &value, bytes);
  }
}

const CubinFunction* SassModule::kernel(std::string_view name) const {
  const auto found = kernels_.find(name);
  return found == kernels_.end() ? nullptr : found->second;
}

MachineText SassModule::text_of(const CubinFunction& function) const {
  MachineText text{function.name, functions_.at(function.section), cubin_.instructions(function), {}};
  std::size_t next = 0;
  MachineLine line;
  for (const sass::Instruction& instruction : text.instructions) {
    while (next < function.lines.size() && function.lines[next].offset <= instruction.offset) {
      line.ptx = function.lines[next].line;
      ++next;
    }
    text.lines.push_back(line);
  }
  return text;
}

void SassModule::fill_banks(ConstantBanks& banks, const CubinFunction& kernel) const {
  for (const std::string_view owner : {std::string_view(), std::string_view(kernel.name)}) {
    const auto mine = banks_.find(owner);
    if (mine == banks_.end()) continue;
    for (const auto& [bank, index] : mine->second) {
      if (bank == 0) continue;
      if (bank != kVariableBank) {
        banks.fixed[bank] = constants_.at(index);
      } else if (const auto found = data_.find(index); found != data_.end()) {
        banks.variables = found->second;
        banks.variable_bytes = cubin_.sections[index].size;
      }
    }
  }
  banks.first_parameter = kernel.parameter_base;
  const bool later = cubin_.architecture.number >= 90;
  banks.variables_at = later ? 0xd0 : 0x50;
  banks.environment_at = later ? 0x40 : 0x88;
  banks.descriptor_at = later ? 0x208 : 0x118;
  banks.generic_parameters_at = later ? 0x198 : 0x40;
  banks.generic_parameters = later ? kParameterWindow : kParameterWindow - kernel.parameter_base;
}

Program SassModule::outline(const CubinFunction& kernel) const {
  Program program;
  program.module_name = cubin_.name;
  program.kernel_name = kernel.name;
  program.files = cubin_.files;
  program.registers = kernel.registers;
  program.parameters = machine_parameters(kernel);
  program.parameter_bytes = kernel.parameter_bytes;
  program.static_shared_bytes = kernel.shared_bytes;
  program.shared_alignment = static_cast<std::uint32_t>(std::max<std::uint64_t>(kernel.shared_alignment, 16));
  // From sm_90 on the system keeps the first KiB for itself, and addresses count from its start.
  if (cubin_.architecture.number >= 90) program.reserved_shared_bytes = 1024;
  fill_banks(program.banks, kernel);
  return program;
}

Program SassModule::program(const CubinFunction& kernel) const {
  Program program = outline(kernel);
  std::vector<MachineText> texts{text_of(kernel)};
  const auto begins = begins_.find(kernel.section);
  Calls calls = calls_of(texts[0], begins == begins_.end() ? std::vector<std::uint64_t>{} : begins->second);
  if (calls.any)
    for (const CubinFunction& function : cubin_.functions)
      if (!function.is_kernel) {
        texts.push_back(text_of(function));
        calls.recursive = true;
      }
  std::uint32_t stack = std::max(kernel.stack_bytes.value_or(0), kernel.frame_bytes);
  if (calls.any) stack += calls.recursive ? kRecursionStack : kCallStack;
  program.banks.stack_bytes = static_cast<std::uint32_t>(align_up(std::min(stack, kMostStack), 16));
  decode_machine(program, texts);
  for (const std::string& why : unresolved(kernel)) program.problems.push_back({kernel.name, "", why, {}});
  return program;
}

const std::set<std::string>& SassModule::unresolved(const CubinFunction& function) const {
  static const std::set<std::string> kNone;
  const auto found = unresolved_.find(function.section);
  return found == unresolved_.end() ? kNone : found->second;
}

std::vector<KernelParameter> machine_parameters(const CubinFunction& kernel) {
  std::vector<KernelParameter> parameters;
  for (const sass::CubinParameter& parameter : kernel.parameters) {
    const ptx::Type type = parameter.size == 1   ? ptx::Type::b8
                           : parameter.size == 2 ? ptx::Type::b16
                           : parameter.size == 4 ? ptx::Type::b32
                                                 : ptx::Type::b64;
    const bool is_array = parameter.size != ptx::size_of(type);
    parameters.push_back({"parameter " + std::to_string(parameters.size() + 1),
                          is_array ? ptx::Type::b8 : type, parameter.offset, parameter.size,
                          is_array ? 1 : parameter.size, is_array});
  }
  return parameters;
}

namespace {

// Where the driver puts what a kernel asks for in bank 0, before the parameters.
template <class T>
void put(std::vector<std::byte>& bank, std::size_t offset, T value) {
  if (bank.size() < offset + sizeof value) bank.resize(offset + sizeof value);
  std::memcpy(bank.data() + offset, &value, sizeof value);
}

}  // namespace

void prepare_banks(Launch& launch) {
  const Program& program = *launch.program;
  const ConstantBanks& banks = program.banks;
  std::vector<std::byte>& bank = launch.launch_bank;
  bank.assign(banks.first_parameter, std::byte{0});
  for (unsigned axis = 0; axis < 3; ++axis) {
    put(bank, 0x00 + 4 * axis, launch.block[axis]);
    put(bank, 0x0c + 4 * axis, launch.grid[axis]);
  }
  put(bank, 0x18, kSharedWindow);
  put(bank, 0x20, kLocalWindow);
  put(bank, 0x28, banks.stack_bytes);
  put(bank, 0x2c, static_cast<std::uint32_t>(launch.dynamic_shared_bytes));
  put(bank, 0x30, launch.sequence);
  put(bank, banks.variables_at, banks.variables);
  // %envreg1 and %envreg2: where a grid that was launched cooperatively counts the CTAs at its barrier.
  put(bank, banks.environment_at + 4, static_cast<std::uint32_t>(launch.workspace >> 32));
  put(bank, banks.environment_at + 8, static_cast<std::uint32_t>(launch.workspace));
  put(bank, ConstantBanks::kProcessors, std::uint32_t{1});
  put(bank, banks.generic_parameters_at, banks.generic_parameters);
  // A kernel without parameters does not say where they would be.
  if (banks.first_parameter != 0) bank.resize(banks.first_parameter);
  bank.insert(bank.end(), launch.parameters.begin(), launch.parameters.end());
  bank.resize(align_up(bank.size(), 16) + 16);  // the last word may be read with what is behind it

  for (unsigned i = 1; i < ConstantBanks::kCount; ++i) launch.banks[i] = banks.fixed[i];
  launch.banks[0] = bank;
  if (banks.variable_bytes != 0)
    launch.banks[kVariableBank] = {launch.memory->host(banks.variables), banks.variable_bytes};
  launch.constants.resize(program.constants.size() / sizeof(ConstantLanes) + 1);
  std::memcpy(launch.constants.data(), program.constants.data(), program.constants.size());
}

void Launch::begin() {
  for (const ConstantWord& word : program->constant_words) {
    std::uint32_t value = 0;
    const auto& from = banks[word.bank];
    if (word.offset + 4 <= from.size()) std::memcpy(&value, from.data() + word.offset, 4);
    constants[word.lanes / sizeof(ConstantLanes)].words.fill(value);
  }
}

}  // namespace manyscale::gpu
