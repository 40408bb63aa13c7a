// SPDX-License-Identifier: Apache-2.0
#include "module.hpp"

NB_MODULE(_core, module) {
  module.doc() = "The C++ core of Manyscale; use the package's own classes instead.";
  bind_statistics(module);
  bind_engine(module);
  bind_plugins(module);
  bind_python_component(module);
  bind_queue(module);
  bind_perfetto(module);
  bind_memory_parts(module);
  bind_memory_plugins(module);
  bind_dram(module);
  bind_traffic(module);
  bind_cpu(module);
  bind_cpu_predictor(module);
  bind_cpu_trace(module);
  bind_cpu_replay(module);
  bind_gem5_trace(module);
  bind_gpu(module);
  bind_gpu_lowering(module);
  bind_gpu_timing(module);
  bind_gpu_commands(module);
  bind_gpu_uvm(module);
  bind_gpu_uvm_plugins(module);
  bind_sass(module);
  bind_network(module);
  bind_cluster(module);
}
