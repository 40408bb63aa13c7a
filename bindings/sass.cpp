// SPDX-License-Identifier: Apache-2.0
// SASS as text: what a file of it holds, instruction by instruction.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <optional>
#include <tuple>

#include "gpu/exec/sass/support_scan.hpp"
#include "gpu/sass/cubin.hpp"
#include "gpu/sass/lz4.hpp"
#include "module.hpp"

using namespace manyscale;

namespace {

std::span<const std::byte> bytes_of(const nb::bytes& data) {
  return {static_cast<const std::byte*>(data.data()), data.size()};
}

// The line that an instruction comes from: the last row that begins at it or before it.
const sass::CubinLine* line_at(const std::vector<sass::CubinLine>& lines, std::size_t& next,
                               std::uint32_t offset) {
  while (next < lines.size() && lines[next].offset <= offset) {
    ++next;
  }
  return next == 0 ? nullptr : &lines[next - 1];
}

nb::list instruction_rows(const sass::Cubin& cubin, const sass::CubinFunction& function) {
  nb::list rows;
  std::size_t next = 0;
  std::size_t next_ptx = 0;
  for (const sass::Instruction& instruction : cubin.instructions(function)) {
    const sass::CubinLine* source = line_at(function.lines, next, instruction.offset);
    const sass::CubinLine* ptx = line_at(function.ptx_lines, next_ptx, instruction.offset);
    const sass::Schedule& schedule = instruction.schedule;
    rows.append(nb::make_tuple(
        instruction.offset, instruction.words.low, instruction.words.high,
        instruction.known() ? nb::object(nb::str(sass::text(instruction).c_str())) : nb::none(),
        nb::make_tuple(schedule.stall, schedule.yield, schedule.write_barrier, schedule.read_barrier,
                       schedule.wait_mask, schedule.reuse),
        source == nullptr ? nb::object(nb::none()) : nb::make_tuple(source->file, source->line),
        ptx == nullptr ? nb::object(nb::none()) : nb::int_(ptx->line)));
  }
  return rows;
}

// (architecture, source files, lines of PTX, functions).
nb::tuple disassemble_cubin(const nb::bytes& data, const std::string& name) {
  const sass::Cubin cubin = sass::read_cubin(bytes_of(data), name);
  nb::list functions;
  for (const sass::CubinFunction& function : cubin.functions) {
    functions.append(nb::make_tuple(function.name, function.is_kernel, function.registers,
                                    function.shared_bytes, function.frame_bytes,
                                    instruction_rows(cubin, function)));
  }
  return nb::make_tuple(cubin.architecture.number, nb::cast(cubin.files), nb::cast(cubin.ptx), functions);
}

// The texts of instructions that follow one another from an offset on; None for each that is none.
std::vector<std::optional<std::string>> instruction_texts(const nb::bytes& code, std::uint16_t architecture,
                                                          std::uint32_t offset) {
  const std::span<const std::byte> bytes = bytes_of(code);
  std::vector<std::optional<std::string>> texts;
  for (std::size_t at = 0; at + sass::Instruction::kBytes <= bytes.size(); at += sass::Instruction::kBytes) {
    sass::Words words;
    std::memcpy(&words.low, bytes.data() + at, sizeof words.low);
    std::memcpy(&words.high, bytes.data() + at + sizeof words.low, sizeof words.high);
    const sass::Instruction instruction =
        sass::decode(words, sass::Architecture{architecture}, static_cast<std::uint32_t>(offset + at));
    texts.push_back(instruction.known() ? std::optional{sass::text(instruction)} : std::nullopt);
  }
  return texts;
}

nb::bytes unpacked_lz4(const nb::bytes& block, std::size_t size) {
  PyObject* made = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size));
  if (made == nullptr) throw nb::python_error();
  const auto result = nb::steal<nb::bytes>(made);
  const std::span out(reinterpret_cast<std::byte*>(PyBytes_AsString(made)), size);
  nb::gil_scoped_release unlocked;
  sass::unpack_lz4(bytes_of(block), out);
  return result;
}

void add_to_scan(gpu::SupportScan& scan, const nb::bytes& data, const std::string& name) {
  const auto bytes = bytes_of(data);
  nb::gil_scoped_release unlocked;
  scan.add(sass::read_cubin(bytes, name));
}

nb::list missing_rows(const gpu::SupportScan& scan) {
  nb::list rows;
  for (const gpu::SupportScan::Missing& missing : scan.missing())
    rows.append(nb::make_tuple(missing.instruction, missing.why, missing.instructions, missing.kernels,
                               missing.alone, missing.kernel, missing.example.low, missing.example.high));
  return rows;
}

}  // namespace

void bind_sass(nb::module_& module) {
  nb::exception<sass::Lz4Error>(module, "Lz4Error");
  module.def("unpack_lz4", &unpacked_lz4, nb::arg("block"), nb::arg("size"));
  nb::class_<gpu::SupportScan>(module, "SassSupportScan")
      .def(nb::init<>())
      .def("add", &add_to_scan, nb::arg("data"), nb::arg("name"))
      .def_prop_ro("kernels", &gpu::SupportScan::kernels)
      .def_prop_ro("supported", &gpu::SupportScan::supported)
      .def_prop_ro("instructions", &gpu::SupportScan::instructions)
      .def_prop_ro("distinct", &gpu::SupportScan::distinct)
      // (instruction, why, instructions, kernels, kernels for this alone, a kernel, its low and high word).
      .def("missing", &missing_rows);
  module.def("disassemble_cubin", &disassemble_cubin, nb::arg("data"), nb::arg("name"));
  module.def("instruction_texts", &instruction_texts, nb::arg("code"), nb::arg("architecture"),
             nb::arg("offset") = 0);
}
