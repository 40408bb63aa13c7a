// SPDX-License-Identifier: Apache-2.0
// What the files of the binding share: one function per layer that adds its part to the module.
#pragma once
#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_statistics(nb::module_& module);
void bind_engine(nb::module_& module);
void bind_plugins(nb::module_& module);
void bind_python_component(nb::module_& module);
void bind_queue(nb::module_& module);
void bind_perfetto(nb::module_& module);
void bind_memory_parts(nb::module_& module);
void bind_memory_plugins(nb::module_& module);
void bind_dram(nb::module_& module);
void bind_traffic(nb::module_& module);
void bind_cpu(nb::module_& module);
void bind_cpu_predictor(nb::module_& module);
void bind_cpu_trace(nb::module_& module);
void bind_cpu_replay(nb::module_& module);
void bind_gem5_trace(nb::module_& module);
void bind_gpu(nb::module_& module);
void bind_gpu_commands(nb::module_& module);
void bind_gpu_lowering(nb::module_& module);
void bind_gpu_timing(nb::module_& module);
void bind_gpu_uvm(nb::module_& module);
void bind_gpu_uvm_plugins(nb::module_& module);
void bind_sass(nb::module_& module);
void bind_network(nb::module_& module);
void bind_cluster(nb::module_& module);
