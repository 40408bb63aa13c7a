// SPDX-License-Identifier: Apache-2.0
// Memory of the allocation nodes of graphs. Its address stays with the graph; what a launch has allocated may
// be freed by the program, by a node of this graph or of another one, and outlives the graph until then.
#pragma once
#include <cstdint>

#include "abi.hpp"

namespace manyscale::cudart {

struct GraphNode;

// Gives an allocation node its memory.
Error own_memory(GraphNode& node);
// A launch has come to the node that allocates it.
void launch_graph_memory(std::uint64_t address);
// False if it is not memory of a graph that exists.
bool free_graph_memory(std::uint64_t address);
std::uint64_t graph_memory_bytes();

}  // namespace manyscale::cudart
