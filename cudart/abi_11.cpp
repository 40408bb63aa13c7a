// SPDX-License-Identifier: Apache-2.0
// Functions with the signatures of CUDA 11.
#include "versions.hpp"

namespace manyscale::cudart {

const int kRuntimeVersion = 11080;

}  // namespace manyscale::cudart

using namespace manyscale::cudart;

extern "C" {

Error cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags) {
  return finish(driver_entry_point(name, function, kRuntimeVersion, flags, DefaultStream::legacy, nullptr));
}

Error cudaGetDriverEntryPoint_ptsz(const char* name, void** function, unsigned long long flags) {
  return finish(
      driver_entry_point(name, function, kRuntimeVersion, flags, DefaultStream::per_thread, nullptr));
}

Error cudaGraphInstantiate(GraphExecution** made, Graph* graph, GraphNode** wrong, char* text,
                           std::size_t bytes) {
  if (wrong != nullptr) *wrong = nullptr;
  if (text != nullptr && bytes != 0) *text = '\0';
  return finish(instantiate(made, graph, 0));
}

Error cudaGraphExecUpdate(GraphExecution* execution, Graph* graph, GraphNode** wrong, int* result) {
  UpdateResult result_info{};
  const Error error = update_execution(execution, graph, &result_info);
  if (wrong != nullptr) *wrong = result_info.wrong;
  if (result != nullptr) *result = result_info.result;
  return finish(error);
}

}  // extern "C"
