// SPDX-License-Identifier: Apache-2.0
// Functions with the signatures of CUDA 12 and 13.
#include "versions.hpp"

using namespace manyscale::cudart;

extern "C" {

Error cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags, int* status) {
  return finish(driver_entry_point(name, function, kRuntimeVersion, flags, DefaultStream::legacy, status));
}

Error cudaGetDriverEntryPoint_ptsz(const char* name, void** function, unsigned long long flags, int* status) {
  return finish(
      driver_entry_point(name, function, kRuntimeVersion, flags, DefaultStream::per_thread, status));
}

Error cudaGraphInstantiate(GraphExecution** made, Graph* graph, unsigned long long flags) {
  return finish(instantiate(made, graph, flags));
}

Error cudaGraphExecUpdate(GraphExecution* execution, Graph* graph, UpdateResult* result_info) {
  return finish(update_execution(execution, graph, result_info));
}

}  // extern "C"
