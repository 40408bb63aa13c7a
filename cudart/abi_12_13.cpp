// SPDX-License-Identifier: Apache-2.0
// Functions that CUDA 12 and 13 have so, and 11 not.
#include "versions.hpp"

using namespace manyscale::cudart;

extern "C" {

Error cudaGraphInstantiate(GraphExecution** made, Graph* graph, unsigned long long flags) {
  return finish(instantiate(made, graph, flags));
}

Error cudaGraphExecUpdate(GraphExecution* execution, Graph* graph, UpdateResult* told) {
  return finish(update_execution(execution, graph, told));
}

}  // extern "C"
