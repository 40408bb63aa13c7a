// SPDX-License-Identifier: Apache-2.0
// Fuzzing of the PTX front end and the executor: whatever the text, it is refused with a message or gives a
// module in which every index and every view is valid, and its kernels run to their end, to a fault or to a
// limit, in the order of the text and in that of an assembler. README.md says how to build and run it.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/exec/device.hpp"
#include "gpu/exec/fault.hpp"
#include "gpu/lower/lower.hpp"
#include "gpu/ptx/parser.hpp"

using namespace manyscale::ptx;

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "not true of the module: %s\n", what);
  std::abort();
}

// Everything that readers of a module rely on without looking.
class ModuleCheck {
 public:
  explicit ModuleCheck(const Module& module) : module_(module) {}

  void run() {
    for (const Variable& variable : module_.variables) check(variable);
    for (const Function& function : module_.functions) {
      function_ = &function;
      check(function);
    }
  }

 private:
  void check_in_text(std::string_view view) {
    const char* begin = module_.text->data();
    const char* end = begin + module_.text->size();
    require(view.data() >= begin && view.data() + view.size() <= end, "a view lies in the text");
  }

  void check(const Variable& variable) {
    require(!variable.name.empty(), "variables have names");
    require(variable.initial.empty() || variable.initial.size() == variable.size, "values fill the variable");
    require(variable.alignment != 0 && (variable.alignment & (variable.alignment - 1)) == 0, "alignments");
    for (const Relocation& relocation : variable.relocations) {
      require(relocation.offset + relocation.size <= variable.initial.size(),
              "addresses lie in the variable");
      require(relocation.id < (relocation.is_function ? module_.functions.size() : module_.variables.size()),
              "addresses are of something");
    }
  }

  void check(const Function& function) {
    require(!function.name.empty() && function.where.line > 0, "functions have names and locations");
    const std::size_t parameters =
        function.register_parameters ? function.registers.size() : function.variables.size();
    for (const std::uint32_t id : function.parameters) require(id < parameters, "parameters");
    for (const std::uint32_t id : function.results) require(id < parameters, "results");
    require(function.alias_of == kNone || function.alias_of < module_.functions.size(), "aliases");
    for (const Register& reg : function.registers)
      require(!reg.name.empty() && reg.elements > 0, "registers");
    for (const Variable& variable : function.variables) check(variable);
    for (const BranchTable& table : function.branch_tables) {
      for (const std::uint32_t target : table.targets)
        require(target <= function.instructions.size(), "targets");
    }
    for (const CallTable& table : function.call_tables) {
      for (const std::uint32_t target : table.targets)
        require(target < module_.functions.size(), "functions");
    }
    for (const Instruction& instruction : function.instructions) check(instruction);
  }

  void check(const Instruction& instruction) {
    check_in_text(instruction.opcode);
    require(instruction.where.line > 0 && instruction.where.column > 0, "instructions have locations");
    require(instruction.first_modifier + instruction.modifiers <= module_.modifiers.size(), "modifiers");
    require(instruction.first_operand + instruction.operands <= module_.operands.size(), "operands");
    if (instruction.guard != kNone) {
      require(instruction.guard < function_->registers.size(), "guards");
      require(function_->registers[instruction.guard].type == Type::pred, "guards are predicates");
    }
    for (const std::string_view modifier : module_.modifiers_of(instruction)) check_in_text(modifier);
    for (const Operand& operand : module_.operands_of(instruction)) check(operand);
  }

  void check(const Operand& operand) {
    check_in_text(operand.text);
    require(operand.where.line > 0, "operands have locations");
    require(std::size_t{operand.first} + operand.count <= module_.operands.size(), "children");
    switch (operand.kind) {
      case Operand::Kind::reg:
        require(operand.id < function_->registers.size(), "registers of operands");
        require(operand.component == 255 || operand.component < function_->registers[operand.id].elements,
                "elements of operands");
        break;
      case Operand::Kind::variable:
        require(operand.id < (operand.is_local ? function_->variables.size() : module_.variables.size()),
                "variables of operands");
        break;
      case Operand::Kind::function:
        require(operand.id < module_.functions.size(), "functions of operands");
        break;
      case Operand::Kind::label:
        require(operand.id <= function_->instructions.size(), "labels of operands");
        break;
      case Operand::Kind::table: {
        const std::size_t sizes[] = {function_->branch_tables.size(), function_->call_tables.size(),
                                     function_->prototypes.size()};
        require(operand.component < 3 && operand.id < sizes[operand.component], "tables of operands");
        break;
      }
      case Operand::Kind::address:
        require(operand.count >= 1, "addresses have a base");
        break;
      case Operand::Kind::pair:
        require(operand.count == 2, "pairs have two halves");
        break;
      case Operand::Kind::special:
        require(operand.component == 255 || operand.component < 4, "elements of special registers");
        break;
      default:
        break;
    }
    for (const Operand& child : module_.children(operand)) check(child);
  }

  const Module& module_;
  const Function* function_ = nullptr;
};

// Runs all kernels of a module on a few threads; parameters are all the address of some memory.
void run_kernels(Module module) {
  using namespace manyscale::gpu;
  Device device;
  const std::uint64_t memory = device.memory.allocate(1 << 16, "memory of the fuzzer");
  LoadedModule& loaded = device.load(std::move(module));
  for (std::uint32_t id = 0; id < loaded.module().functions.size(); ++id) {
    const Function& function = loaded.module().functions[id];
    if (!function.is_entry || !function.has_body) continue;
    for (const bool reordered : {false, true}) {
      const Program& program = loaded.program(id, reordered);
      if (!program.problems.empty() || program.parameter_bytes > 4096) continue;
      if (reordered) lower(program);
      std::vector<std::byte> parameters(program.parameter_bytes);
      for (std::size_t at = 0; at + sizeof memory <= parameters.size(); at += sizeof memory)
        std::memcpy(parameters.data() + at, &memory, sizeof memory);
      LaunchRequest request;
      request.block = {40, 1, 1};
      request.dynamic_shared_bytes = 256;
      request.parameters = parameters;
      request.check = reordered;
      request.maximum_instructions = 5000;
      request.reordered = reordered;
      try {
        device.launch(loaded, id, request);
      } catch (const KernelFault&) {
      } catch (const BadLaunch&) {
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Limits limits;  // small, so that memory tells of mistakes and not of large numbers
  limits.initialised = 1 << 20;
  limits.function_registers = 10'000;
  limits.registers = 100'000;
  limits.names = 1 << 20;
  limits.group_variables = 1000;
  try {
    Module module = parse(std::string(reinterpret_cast<const char*>(data), size), "fuzz", limits);
    ModuleCheck(module).run();
    run_kernels(std::move(module));
  } catch (const std::bad_alloc&) {  // variables larger than the device's memory
  } catch (const SyntaxError& error) {
    require(std::string_view(error.what()).starts_with("fuzz:"), "messages say where");
  }
  return 0;
}
