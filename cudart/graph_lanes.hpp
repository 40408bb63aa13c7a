// SPDX-License-Identifier: Apache-2.0
// How the nodes of a graph run at the same time: in lanes, which are streams, that wait for each other by
// events where a node depends on one of another lane. The first lane is the stream that the graph is launched
// into; a graph without branches needs no other.
#pragma once
#include <set>
#include <vector>

#include "abi.hpp"
#include "streams.hpp"

namespace manyscale::cudart {

class GraphLanes {
 public:
  GraphLanes() = default;
  ~GraphLanes();
  GraphLanes(const GraphLanes&) = delete;
  GraphLanes& operator=(const GraphLanes&) = delete;

  // Gives all nodes but some to the server. All of it costs the program the time of one call.
  Error perform(Stream& stream, const Graph& graph, const std::set<const GraphNode*>& without);

 private:
  // Has so many streams beside that of the launch, and so many events; made once and kept.
  Error provide(std::size_t streams, std::size_t events, const Stream& like);
  void give_back();

  std::vector<Stream*> streams_;
  std::vector<Event*> events_;
};

}  // namespace manyscale::cudart
