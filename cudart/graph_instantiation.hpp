// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "abi.hpp"

namespace manyscale::cudart {

// A graph made ready to run.
Error instantiate(GraphExecution** made, Graph* graph, unsigned long long flags);
// Lets it do what another graph of the same shape does; false if the shapes differ.
bool update(GraphExecution* execution, Graph* with);

}  // namespace manyscale::cudart
