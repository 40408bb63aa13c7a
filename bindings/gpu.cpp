// SPDX-License-Identifier: Apache-2.0
// PTX modules and the functional device. Errors are translated to those of the package by the Python side.
#include "gpu/exec/device.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <thread>

#include "gpu/exec/fault.hpp"
#include "gpu/exec/sass/support_scan.hpp"
#include "gpu/ptx/parser.hpp"
#include "gpu_kernel.hpp"
#include "module.hpp"

using namespace manyscale;
using namespace manyscale::gpu;

namespace {

using FaultState = std::tuple<std::string, std::string, std::string, std::array<std::uint32_t, 3>,
                              std::array<std::uint32_t, 3>, std::uint64_t>;

// A view of the memory of any Python object that has some.
class Buffer {
 public:
  Buffer(nb::handle object, bool writable) {
    if (PyObject_GetBuffer(object.ptr(), &view_,
                           writable ? PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS : PyBUF_C_CONTIGUOUS))
      throw nb::python_error();
  }
  ~Buffer() { PyBuffer_Release(&view_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void* data() const { return view_.buf; }
  std::size_t bytes() const { return static_cast<std::size_t>(view_.len); }

 private:
  Py_buffer view_{};
};

// Parsed text that nobody has loaded yet.
struct ParsedModule {
  ptx::Module module;

  std::vector<std::string> kernels() const {
    std::vector<std::string> names;
    for (const ptx::Function& function : module.functions)
      if (function.is_entry && function.has_body) names.emplace_back(function.name);
    return names;
  }

  // What of the module cannot be executed: (kernel, function, instruction, why, line, column) each.
  using Row = std::tuple<std::string, std::string, std::string, std::string, std::uint32_t, std::uint32_t>;
  std::vector<Row> problems() const {
    Placement placement;
    auto pretend = [](const ptx::Variable& v) { return v.linkage == ptx::Linkage::external ? 0 : kHeapBase; };
    for (const ptx::Variable& variable : module.variables) placement.variables.push_back(pretend(variable));
    for (const ptx::Function& function : module.functions) {
      auto& addresses = placement.function_variables.emplace_back();
      for (const ptx::Variable& variable : function.variables) addresses.push_back(pretend(variable));
    }
    std::vector<Row> rows;
    for (std::uint32_t i = 0; i < module.functions.size(); ++i) {
      const ptx::Function& function = module.functions[i];
      if (!function.is_entry || !function.has_body) continue;
      for (const Problem& problem : decode(module, i, placement).problems)
        rows.emplace_back(std::string(function.name), problem.function, problem.text, problem.why,
                          problem.where.line, problem.where.column);
    }
    return rows;
  }
};

std::shared_ptr<ParsedModule> parse_module(nb::bytes text, const std::string& name) {
  std::string copy(static_cast<const char*>(text.data()), text.size());
  nb::gil_scoped_release unlocked;
  return std::make_shared<ParsedModule>(ParsedModule{ptx::parse(std::move(copy), name)});
}

// A file of SASS that nobody has loaded yet.
struct MachineFile {
  sass::Cubin cubin;

  std::vector<std::string> kernels() const {
    std::vector<std::string> names;
    for (const sass::CubinFunction& function : cubin.functions)
      if (function.is_kernel) names.push_back(function.name);
    return names;
  }

  // Whether all kernels can be executed, each instruction looked at once.
  bool is_executable() const {
    SupportScan scan;
    scan.add(cubin);
    return scan.supported() == scan.kernels();
  }

  std::vector<ParsedModule::Row> problems() const {
    DeviceMemory memory;
    const SassModule loaded(cubin, memory);
    std::vector<ParsedModule::Row> rows;
    for (const sass::CubinFunction& function : cubin.functions) {
      if (!function.is_kernel) continue;
      for (const Problem& problem : loaded.program(function).problems)
        rows.emplace_back(function.name, problem.function, problem.text, problem.why, problem.where.line,
                          problem.where.column);
    }
    return rows;
  }
};

std::shared_ptr<MachineFile> read_machine_file(nb::bytes data, const std::string& name) {
  const std::span bytes(static_cast<const std::byte*>(data.data()), data.size());
  return std::make_shared<MachineFile>(MachineFile{sass::read_cubin(bytes, name)});
}

using ParameterRow = std::tuple<std::string, std::string, std::uint64_t, std::uint64_t, bool>;

std::vector<ParameterRow> parameter_rows(const KernelHandle& handle) {
  std::vector<ParameterRow> rows;
  for (const KernelParameter& parameter : handle.module->signature(handle.kernel).parameters)
    rows.emplace_back(parameter.name, std::string(ptx::name_of(parameter.type)), parameter.offset,
                      parameter.size, parameter.is_array);
  return rows;
}

// Runs a kernel on a thread of its own, so that signals such as Ctrl-C are still heard.
LaunchResult launch_interruptibly(Device& device, const KernelHandle& handle, const LaunchRequest& request) {
  std::mutex mutex;
  std::condition_variable finished;
  bool done = false;
  LaunchResult result;
  std::exception_ptr failure;
  std::thread runner([&] {
    try {
      result = device.launch(*handle.module, handle.kernel, request);
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    done = true;
    finished.notify_one();
  });
  bool signalled = false;
  {
    nb::gil_scoped_release unlocked;
    std::unique_lock lock(mutex);
    while (!finished.wait_for(lock, std::chrono::milliseconds(100), [&] { return done; })) {
      nb::gil_scoped_acquire locked;
      if (PyErr_CheckSignals() != 0) {
        signalled = true;
        device.interrupt();
        break;
      }
    }
    lock.unlock();
    runner.join();
  }
  if (signalled) throw nb::python_error();
  if (failure) std::rethrow_exception(failure);
  return result;
}

// KernelFault and BadLaunch have, besides their message, fields that say the same to programs.
void bind_launch_errors(nb::module_& module) {
  nb::enum_<FaultKind>(module, "GpuFaultKind")
      .value("invalid_operation", FaultKind::invalid_operation)
      .value("invalid_address", FaultKind::invalid_address)
      .value("misaligned_address", FaultKind::misaligned_address)
      .value("assertion", FaultKind::assertion)
      .value("trap", FaultKind::trap)
      .value("instruction_limit", FaultKind::instruction_limit)
      .value("deadlock", FaultKind::deadlock);
  nb::enum_<LaunchProblem>(module, "GpuLaunchProblem")
      .value("unsupported_instruction", LaunchProblem::unsupported_instruction)
      .value("block_shape", LaunchProblem::block_shape)
      .value("grid_shape", LaunchProblem::grid_shape)
      .value("required_threads", LaunchProblem::required_threads)
      .value("maximum_threads", LaunchProblem::maximum_threads)
      .value("shared_memory", LaunchProblem::shared_memory)
      .value("parameters", LaunchProblem::parameters)
      .value("resources", LaunchProblem::resources);
  nb::class_<FaultLocation>(module, "GpuFaultLocation")
      .def_ro("kernel", &FaultLocation::kernel)
      .def_ro("instruction", &FaultLocation::instruction)
      .def_ro("source", &FaultLocation::source)
      .def_ro("cta", &FaultLocation::cta)
      .def_ro("thread", &FaultLocation::thread)
      .def_ro("address", &FaultLocation::address)
      // Faults cross processes, with all that was raised before them.
      .def("__getstate__",
           [](const FaultLocation& self) {
             return std::make_tuple(self.kernel, self.instruction, self.source, self.cta, self.thread,
                                    self.address);
           })
      .def("__setstate__", [](FaultLocation& self, const FaultState& state) {
        new (&self) FaultLocation(std::make_from_tuple<FaultLocation>(state));
      });
  static const nb::handle fault = nb::exception<KernelFault>(module, "KernelFault");  // the module keeps them
  static const nb::handle refusal = nb::exception<BadLaunch>(module, "BadLaunch");
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const KernelFault& error) {
      nb::object raised = fault(error.what());
      raised.attr("kind") = error.kind;
      raised.attr("location") = error.location;
      PyErr_SetObject(fault.ptr(), raised.ptr());
    } catch (const BadLaunch& error) {
      nb::object raised = refusal(error.what());
      raised.attr("problem") = error.problem;
      PyErr_SetObject(refusal.ptr(), raised.ptr());
    }
  });
}

// After `track_writes`, memory knows which of its bytes somebody has written. Bytes that a copy, or the host,
// has given a value; those outside of memory are left out.
void mark_written(Device& device, std::uint64_t address, std::uint64_t bytes) {
  if (device.memory.checked(address, bytes) != nullptr) device.memory.mark_written(address, bytes);
}

}  // namespace

// Addresses that get memory later, and parts of allocations behind them; false or an error if refused.
static nb::class_<Device> with_mappings(nb::class_<Device> device) {
  return device
      .def("reserve_addresses",
           [](Device& self, std::uint64_t bytes, std::uint64_t alignment) {
             return self.memory.reserve_addresses(bytes, alignment);
           })
      .def("release_addresses",
           [](Device& self, std::uint64_t address, std::uint64_t bytes) {
             return self.memory.release_addresses(address, bytes);
           })
      .def("map", [](Device& self, std::uint64_t address, std::uint64_t memory,
                     std::uint64_t bytes) { return self.memory.map(address, memory, bytes); })
      .def("unmap", [](Device& self, std::uint64_t address,
                       std::uint64_t bytes) { return self.memory.unmap(address, bytes); })
      // Where this process has the first byte of the heap.
      .def_prop_ro("host_address", [](const Device& self) {
        return reinterpret_cast<std::uintptr_t>(self.memory.host(kHeapBase));
      });
}

void bind_gpu(nb::module_& module) {
  nb::exception<ptx::SyntaxError>(module, "PtxSyntaxError");
  bind_launch_errors(module);

  nb::class_<ParsedModule>(module, "PtxModule")
      .def_prop_ro("kernels", &ParsedModule::kernels)
      .def_prop_ro("text",
                   [](const ParsedModule& self) {
                     const std::string& text = *self.module.text;
                     return nb::bytes(text.data(), text.size());
                   })
      .def_prop_ro("target", [](const ParsedModule& self) { return std::string(self.module.target); })
      .def("problems", &ParsedModule::problems, nb::call_guard<nb::gil_scoped_release>());
  module.def("parse_ptx", &parse_module, nb::arg("text"), nb::arg("name"));

  nb::exception<sass::CubinError>(module, "CubinError");
  nb::class_<MachineFile>(module, "MachineFile")
      .def_prop_ro("kernels", &MachineFile::kernels)
      .def_prop_ro("architecture", [](const MachineFile& self) { return self.cubin.architecture.number; })
      .def("is_executable", &MachineFile::is_executable, nb::call_guard<nb::gil_scoped_release>())
      .def("problems", &MachineFile::problems, nb::call_guard<nb::gil_scoped_release>());
  module.def("read_cubin", &read_machine_file, nb::arg("data"), nb::arg("name"));

  nb::class_<LaunchResult>(module, "LaunchResult")
      .def_prop_ro("warp_instructions",
                   [](const LaunchResult& self) { return self.counts.warp_instructions; })
      .def_prop_ro("thread_instructions",
                   [](const LaunchResult& self) { return self.counts.thread_instructions; })
      .def_prop_ro(
          "printed",
          [](const LaunchResult& self) { return nb::bytes(self.printed.data(), self.printed.size()); })
      .def_ro("warnings", &LaunchResult::warnings);

  nb::class_<KernelHandle>(module, "GpuKernel")
      .def_prop_ro("parameters", &parameter_rows)
      .def_prop_ro("problems",
                   [](const KernelHandle& self) {
                     std::vector<ParsedModule::Row> rows;
                     for (const Problem& problem : self.program().problems)
                       rows.emplace_back("", problem.function, problem.text, problem.why, problem.where.line,
                                         problem.where.column);
                     return rows;
                   })
      .def_prop_ro("static_shared_bytes",
                   [](const KernelHandle& self) { return self.attributes().static_shared_bytes; })
      // Threads of a block at most, as the kernel declares it.
      .def_prop_ro(
          "maximum_threads",
          [](const KernelHandle& self) {
            const KernelSignature& function = self.module->signature(self.kernel);
            std::uint64_t most = 1;
            const bool required = function.required_threads[0] != 0;
            for (std::uint32_t extent : required ? function.required_threads : function.maximum_threads)
              most *= std::max(extent, 1U);
            return required || function.maximum_threads[0] != 0 ? std::min(most, kMaximumThreads)
                                                                : kMaximumThreads;
          })
      .def_prop_ro("local_bytes", [](const KernelHandle& self) { return self.attributes().local_bytes; })
      .def_prop_ro("parameter_bytes",
                   [](const KernelHandle& self) { return self.attributes().parameter_bytes; })
      .def_prop_ro("registers", [](const KernelHandle& self) { return self.attributes().registers; })
      .def_prop_ro("order_matters", [](const KernelHandle& self) { return self.program().order_matters; })
      .def_prop_ro("isa",
                   [](const KernelHandle& self) { return self.module->is_machine_code() ? "sass" : "ptx"; });

  nb::class_<LoadedModule>(module, "GpuModule")
      .def(
          "kernel",
          [](LoadedModule& self, const std::string& name) -> std::optional<KernelHandle> {
            const auto id = self.kernel(name);
            return id ? std::optional(KernelHandle{&self, *id}) : std::nullopt;
          },
          nb::keep_alive<0, 1>())
      .def_prop_ro("variables", &LoadedModule::variables)
      .def_prop_ro("is_machine_code", &LoadedModule::is_machine_code)
      .def_prop_ro("managed",
                   [](const LoadedModule& self) {
                     std::vector<std::tuple<std::uint64_t, std::uint64_t>> ranges;
                     for (const auto& [address, bytes] : self.managed()) ranges.emplace_back(address, bytes);
                     return ranges;
                   })
      .def("variable", [](const LoadedModule& self, const std::string& name) {
        const auto placed = self.variable(name);
        return placed ? std::optional(std::tuple(placed->address, placed->bytes)) : std::nullopt;
      });

  nb::class_<Texture> texture(module, "GpuTexture");
  texture.def(nb::init<>())
      .def_rw("memory", &Texture::memory)
      .def_rw("bytes", &Texture::bytes)
      .def_rw("channels", &Texture::channels)
      .def_rw("dimensions", &Texture::dimensions)
      .def_rw("layered", &Texture::layered)
      .def_rw("cube", &Texture::cube)
      .def_rw("normalized_coordinates", &Texture::normalized_coordinates)
      .def_rw("normalized_values", &Texture::normalized_values)
      .def_rw("linear_memory", &Texture::linear_memory)
      .def_rw("extent", &Texture::extent)
      .def_rw("pitch", &Texture::pitch)
      .def_rw("format", &Texture::format)
      .def_rw("address", &Texture::address)
      .def_rw("filter", &Texture::filter);
  nb::enum_<Texture::Format>(texture, "Format")
      .value("u8", Texture::Format::u8)
      .value("u16", Texture::Format::u16)
      .value("u32", Texture::Format::u32)
      .value("s8", Texture::Format::s8)
      .value("s16", Texture::Format::s16)
      .value("s32", Texture::Format::s32)
      .value("f16", Texture::Format::f16)
      .value("f32", Texture::Format::f32);
  nb::enum_<Texture::Address>(texture, "Address")
      .value("wrap", Texture::Address::wrap)
      .value("clamp", Texture::Address::clamp)
      .value("mirror", Texture::Address::mirror)
      .value("border", Texture::Address::border);
  nb::enum_<Texture::Filter>(texture, "Filter")
      .value("point", Texture::Filter::point)
      .value("linear", Texture::Filter::linear);

  with_mappings(nb::class_<Device>(module, "GpuDevice"))
      .def(nb::init<>())
      .def(
          "__init__", [](Device* self, const Device& other) { new (self) Device(other.shared_memory()); },
          nb::arg("sharing_memory_of"))
      .def_ro_static("heap", &kHeapBase)
      // The descriptor of the file that the memory is in from now on, and its size.
      .def("share_memory",
           [](Device& self) { return std::tuple(self.memory.share(), self.memory.capacity()); })
      .def(
          "load",
          [](Device& self, const ParsedModule& parsed) -> LoadedModule& {
            ptx::Module copy = ptx::parse(*parsed.module.text, parsed.module.name);
            return self.load(std::move(copy));
          },
          nb::rv_policy::reference_internal)
      // SASS that was made of PTX, with names and types from there.
      .def(
          "load",
          [](Device& self, const ParsedModule& parsed, const MachineFile& machine) -> LoadedModule& {
            ptx::Module copy = ptx::parse(*parsed.module.text, parsed.module.name);
            return self.load(std::move(copy), machine.cubin);
          },
          nb::rv_policy::reference_internal)
      .def(
          "load",
          [](Device& self, const MachineFile& machine) -> LoadedModule& { return self.load(machine.cubin); },
          nb::rv_policy::reference_internal)
      .def("track_writes", [](Device& self) { self.memory.track_writes(); })
      .def("mark_written", mark_written)
      .def(
          "allocate",
          [](Device& self, std::uint64_t bytes, std::string label, std::uint64_t alignment) {
            return self.memory.allocate(bytes, std::move(label), alignment);
          },
          nb::arg("bytes"), nb::arg("label"), nb::arg("alignment") = DeviceMemory::kAlignment)
      .def(
          "free",
          [](Device& self, std::uint64_t address, bool reserve) {
            return self.memory.free(address, reserve);
          },
          nb::arg("address"), nb::arg("reserve") = false)
      .def("reuse_reserved", [](Device& self) { self.memory.reuse_reserved(); })
      .def_prop_ro("allocated_bytes", [](const Device& self) { return self.memory.allocated_bytes(); })
      // Whether the bytes are all in one allocation.
      .def("holds", [](const Device& self, std::uint64_t address,
                       std::uint64_t bytes) { return self.memory.checked(address, bytes) != nullptr; })
      // False if the bytes are not all in one allocation.
      .def("write",
           [](Device& self, std::uint64_t address, nb::handle data) {
             const Buffer buffer(data, false);
             std::byte* to = self.memory.checked(address, buffer.bytes());
             if (to == nullptr) return false;
             std::memcpy(to, buffer.data(), buffer.bytes());
             self.memory.mark_written(address, buffer.bytes());
             return true;
           })
      .def("read",
           [](Device& self, std::uint64_t address, nb::handle data) {
             const Buffer buffer(data, true);
             const std::byte* from = self.memory.checked(address, buffer.bytes());
             if (from != nullptr) std::memcpy(buffer.data(), from, buffer.bytes());
             return from != nullptr;
           })
      .def("add_texture", [](Device& self, const Texture& added) { return self.textures.add(added); })
      .def("remove_texture", [](Device& self, std::uint64_t handle) { return self.textures.remove(handle); })
      .def(
          "launch",
          [](Device& self, const KernelHandle& kernel, std::array<std::uint32_t, 3> grid,
             std::array<std::uint32_t, 3> block, std::uint64_t shared, nb::bytes parameters, unsigned threads,
             std::uint32_t checks, std::uint64_t maximum_instructions, std::uint64_t workspace) {
            const std::span bytes(static_cast<const std::byte*>(parameters.data()), parameters.size());
            return launch_interruptibly(self, kernel,
                                        {grid, block, shared, bytes, threads, Checks::of_bits(checks),
                                         maximum_instructions, false, workspace});
          },
          nb::arg("kernel"), nb::arg("grid"), nb::arg("block"), nb::arg("shared"), nb::arg("parameters"),
          nb::arg("threads"), nb::arg("checks"), nb::arg("maximum_instructions"), nb::arg("workspace") = 0);
}
