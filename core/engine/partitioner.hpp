// SPDX-License-Identifier: Apache-2.0
// Decides where a graph of components may be cut, and which thread gets which part.
//
// First the graph is divided into clusters that are never cut: the ends of links without latency, members of
// one group, and the ends of links shorter than the cut latency. That depends on the graph alone, and so does
// the lookahead, the shortest latency between clusters: windows of simulated time are the same on any number
// of threads. Then clusters are assigned to the threads.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/time.hpp"

namespace manyscale {

struct Graph {
  struct Node {
    std::string name;
    double weight = 1.0;  // hint: expected share of the work
    std::string group;    // hint: members of a group stay together; empty for none
  };
  struct Edge {
    std::uint32_t a, b;
    Time latency;
  };
  std::vector<Node> nodes;
  std::vector<Edge> edges;
};

struct Clustering {
  std::vector<std::uint32_t> cluster;  // per node
  std::uint32_t count = 0;
  Time lookahead = never;  // shortest latency between two clusters; `never` for a single cluster
};

// Cuts only links of at least `cut_latency`. With 0 it is chosen: the longest one that leaves no cluster with
// more than a quarter of all weight, or where there is none, the one that leaves the lightest heaviest
// cluster.
Clustering make_clusters(const Graph& graph, Time cut_latency);

// Assigns clusters to partitions of about equal weight, neighbours together; returns the partition of each
// node. Partitions are numbered from 0 without gaps, and there are at most as many as clusters.
std::vector<std::uint32_t> assign_partitions(const Graph& graph, const Clustering& clustering,
                                             std::uint32_t partitions);

}  // namespace manyscale
