// SPDX-License-Identifier: Apache-2.0
// Where graphs are cut: what halving finds is what a look at every latency finds, and large graphs take no
// longer than their size asks for.
#include <algorithm>
#include <chrono>
#include <random>
#include <vector>

#include "engine/partitioner.hpp"
#include "test_checks.hpp"

using namespace manyscale;
using namespace manyscale::test;

namespace {

double heaviest(const Graph& graph, const Clustering& clustering) {
  std::vector<double> weights(clustering.count, 0.0);
  for (std::size_t node = 0; node < graph.nodes.size(); ++node)
    weights[clustering.cluster[node]] += graph.nodes[node].weight;
  return *std::max_element(weights.begin(), weights.end());
}

// The rule as it is stated: from the longest latency down, until no cluster has more than a quarter.
Clustering by_every_latency(const Graph& graph) {
  std::vector<Time> latencies;
  double total = 0;
  for (const auto& node : graph.nodes) total += node.weight;
  for (const auto& edge : graph.edges) {
    if (edge.latency > 0) latencies.push_back(edge.latency);
  }
  std::sort(latencies.begin(), latencies.end(), std::greater<>());
  Clustering best = make_clusters(graph, never);
  double lightest = total;
  for (const Time latency : latencies) {
    const Clustering found = make_clusters(graph, latency);
    if (heaviest(graph, found) < lightest) {
      best = found;
      lightest = heaviest(graph, found);
    }
    if (lightest <= total / 4) break;
  }
  return best;
}

Graph random_graph(std::mt19937& draw) {
  const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(draw() % limit); };
  Graph graph;
  const std::uint32_t nodes = 1 + below(12);
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const std::string group = below(5) == 0 ? std::string(1, static_cast<char>('a' + below(2))) : "";
    graph.nodes.push_back({"n", below(3) == 0 ? 0.1 * (1 + below(40)) : 1.0, group});
  }
  for (std::uint32_t i = below(20); i > 0; --i)
    graph.edges.push_back({below(nodes), below(nodes), static_cast<Time>(below(10))});
  return graph;
}

TEST(halving_finds_what_a_look_at_every_latency_finds) {
  std::mt19937 draw(1);
  bool same = true;
  for (int round = 0; round < 2000; ++round) {
    const Graph graph = random_graph(draw);
    const Clustering found = make_clusters(graph, 0), expected = by_every_latency(graph);
    same &= found.cluster == expected.cluster && found.count == expected.count &&
            found.lookahead == expected.lookahead;
  }
  check(same, "the same clusters of 2000 random graphs");
}

TEST(a_large_graph_of_many_latencies_is_cut_quickly) {
  constexpr std::uint32_t nodes = 50'000;
  Graph graph;
  for (std::uint32_t i = 0; i < nodes; ++i) {
    graph.nodes.push_back({"n", 1.0, ""});
    graph.edges.push_back({i, (i + 1) % nodes, 1000 + static_cast<Time>(i)});
  }
  const auto began = std::chrono::steady_clock::now();
  const Clustering found = make_clusters(graph, 0);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  check(heaviest(graph, found) <= nodes / 4, "no cluster has more than a quarter");
  check(took.count() < 3, "within three seconds");  // one pass takes a millisecond; 50,000 passes a minute
}

}  // namespace
