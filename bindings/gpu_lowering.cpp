// SPDX-License-Identifier: Apache-2.0
// What kernels are lowered to, for tests and tools.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "gpu/lower/lower.hpp"
#include "gpu/lower/regions.hpp"
#include "gpu/lower/unroll.hpp"
#include "gpu/ptx/parser.hpp"
#include "gpu_kernel.hpp"
#include "module.hpp"

using namespace manyscale;
using namespace manyscale::gpu;

namespace {

// A machine instruction: its kind, the registers it reads and writes, and the predicates as bits.
using InstructionRow =
    std::tuple<std::string, std::vector<unsigned>, std::vector<unsigned>, unsigned, unsigned>;
// An operation in the order of execution: line and column of its PTX, the loops it is in, its instructions.
using OperationRow = std::tuple<std::uint32_t, std::uint32_t, unsigned, std::vector<InstructionRow>>;

struct LoweredKernel {
  std::uint32_t registers = 0;  // of a thread, as the assembler would report them
  std::uint32_t spilled = 0;
  std::vector<OperationRow> operations;  // of the kernel, then of the functions it calls
};

void append(LoweredKernel& lowered, const Code& code, const SassFunction& function) {
  const std::vector<std::uint8_t> depths = loop_depths(code.ops);
  for (std::size_t op = 0; op < code.ops.size(); ++op) {
    if (code.ops[op].flow == Flow::join) continue;
    const OpInfo& info = code.infos[code.ops[op].info];
    std::vector<InstructionRow> rows;
    const bool behind_join = op != 0 && code.ops[op - 1].flow == Flow::join;
    for (std::uint32_t i = function.first[behind_join ? op - 1 : op]; i < function.first[op + 1]; ++i) {
      const SassInstruction& instruction = function.instructions[i];
      const auto registers = function.registers.begin() + instruction.first;
      rows.emplace_back(std::string(name_of(instruction.kind)),
                        std::vector<unsigned>(registers, registers + instruction.reads),
                        std::vector<unsigned>(registers + instruction.reads,
                                              registers + instruction.reads + instruction.writes),
                        instruction.reads_predicates, instruction.writes_predicates);
    }
    lowered.operations.emplace_back(info.where.line, info.where.column, depths[op], std::move(rows));
  }
}

LoweredKernel lower_kernel(const KernelHandle& kernel) {
  const Program& program = kernel.module->program(kernel.kernel, true);
  if (!program.problems.empty())
    throw std::invalid_argument("the kernel cannot be executed: " + program.problems[0].text + ": " +
                                program.problems[0].why);
  const SassProgram machine = lower(program);
  LoweredKernel lowered;
  for (const SassFunction& function : machine.functions) {
    lowered.registers = std::max(lowered.registers, function.used_registers);
    lowered.spilled += function.spilled;
  }
  append(lowered, program.codes[program.kernel], machine.functions[program.kernel]);
  for (std::size_t id = 0; id < program.codes.size(); ++id)
    if (id != program.kernel && !program.codes[id].ops.empty())
      append(lowered, program.codes[id], machine.functions[id]);
  return lowered;
}

// A module as the assembler sees it before it makes SASS: short loops are unrolled.
LoadedModule& load_unrolled(Device& device, nb::bytes text, const std::string& name) {
  ptx::Module module = ptx::parse(std::string(static_cast<const char*>(text.data()), text.size()), name);
  unroll_loops(module);
  return device.load(std::move(module));
}

}  // namespace

void bind_gpu_lowering(nb::module_& module) {
  nb::class_<LoweredKernel>(module, "LoweredKernel")
      .def_ro("registers", &LoweredKernel::registers)
      .def_ro("spilled", &LoweredKernel::spilled)
      .def_ro("operations", &LoweredKernel::operations);
  module.def("load_unrolled", &load_unrolled, nb::arg("device"), nb::arg("text"), nb::arg("name"),
             nb::rv_policy::reference, nb::keep_alive<0, 1>());
  module.def("lower_kernel", &lower_kernel, nb::arg("kernel"), nb::call_guard<nb::gil_scoped_release>());
}
