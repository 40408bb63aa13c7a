// SPDX-License-Identifier: Apache-2.0
#include "engine/partitioner.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>

namespace manyscale {
namespace {

// Sets of nodes that grow together.
class DisjointSets {
 public:
  explicit DisjointSets(std::size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0u); }

  std::uint32_t find(std::uint32_t node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }
  void merge(std::uint32_t a, std::uint32_t b) {
    a = find(a);
    b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::uint32_t> parent_;
};

Clustering clusters_at(const Graph& graph, Time cut_latency) {
  DisjointSets sets(graph.nodes.size());
  std::map<std::string, std::uint32_t> groups;
  for (std::uint32_t node = 0; node < graph.nodes.size(); ++node) {
    if (graph.nodes[node].group.empty()) continue;
    sets.merge(groups.try_emplace(graph.nodes[node].group, node).first->second, node);
  }
  for (const auto& edge : graph.edges) {
    if (edge.latency == 0 || edge.latency < cut_latency) sets.merge(edge.a, edge.b);
  }
  Clustering result;
  result.cluster.resize(graph.nodes.size());
  for (std::uint32_t node = 0; node < graph.nodes.size(); ++node) {
    const auto root = sets.find(node);
    result.cluster[node] = root == node ? result.count++ : result.cluster[root];
  }
  for (const auto& edge : graph.edges) {
    if (result.cluster[edge.a] != result.cluster[edge.b]) {
      result.lookahead = std::min(result.lookahead, edge.latency);
    }
  }
  return result;
}

std::vector<double> cluster_weights(const Graph& graph, const Clustering& clustering) {
  std::vector<double> weights(clustering.count, 0.0);
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    weights[clustering.cluster[node]] += graph.nodes[node].weight;
  }
  return weights;
}

// The clusters in the order of a walk through neighbours, so that a run of them has few links to the rest.
std::vector<std::uint32_t> walk(const Graph& graph, const Clustering& clustering) {
  std::vector<std::vector<std::uint32_t>> neighbours(clustering.count);
  for (const auto& edge : graph.edges) {
    const auto a = clustering.cluster[edge.a];
    const auto b = clustering.cluster[edge.b];
    if (a == b) continue;
    neighbours[a].push_back(b);
    neighbours[b].push_back(a);
  }
  std::vector<std::uint32_t> order;
  std::vector<bool> seen(clustering.count, false);
  for (std::uint32_t first = 0; first < clustering.count; ++first) {
    if (seen[first]) continue;
    std::deque<std::uint32_t> frontier{first};
    seen[first] = true;
    while (!frontier.empty()) {
      const auto at = frontier.front();
      frontier.pop_front();
      order.push_back(at);
      std::sort(neighbours[at].begin(), neighbours[at].end());
      for (const auto next : neighbours[at]) {
        if (!seen[next]) {
          seen[next] = true;
          frontier.push_back(next);
        }
      }
    }
  }
  return order;
}

}  // namespace

Clustering make_clusters(const Graph& graph, Time cut_latency) {
  if (cut_latency > 0) return clusters_at(graph, cut_latency);
  double total = 0;
  for (const auto& node : graph.nodes) total += node.weight;
  std::vector<Time> candidates;
  for (const auto& edge : graph.edges) {
    if (edge.latency > 0) candidates.push_back(edge.latency);
  }
  std::sort(candidates.begin(), candidates.end(), std::greater<>());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  const Clustering whole = clusters_at(graph, never);
  if (candidates.empty()) return whole;
  const auto heaviest_at = [&](Time candidate) {
    const auto weights = cluster_weights(graph, clusters_at(graph, candidate));
    return *std::max_element(weights.begin(), weights.end());
  };
  // The shorter the links that may be cut, the smaller the clusters, so that halving finds the longest.
  const double lightest = heaviest_at(candidates.back());
  if (lightest >= total) return whole;
  const double wanted = std::max(lightest, total / 4);
  return clusters_at(graph, *std::partition_point(candidates.begin(), candidates.end(), [&](Time candidate) {
                       return heaviest_at(candidate) > wanted;
                     }));
}

std::vector<std::uint32_t> assign_partitions(const Graph& graph, const Clustering& clustering,
                                             std::uint32_t partitions) {
  partitions = std::max(1u, std::min(partitions, clustering.count));
  const auto weights = cluster_weights(graph, clustering);
  double remaining = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::uint32_t> part_of(clustering.count, 0);
  std::uint32_t part = 0;
  double filled = 0;
  auto left = clustering.count;
  for (const auto cluster : walk(graph, clustering)) {
    const std::uint32_t partitions_left = partitions - part;
    const double share = (remaining + filled) / partitions_left;
    const bool must_advance =
        left < partitions_left;  // the clusters left are just enough for the partitions still empty
    const bool overshoots = filled > 0 && filled + weights[cluster] / 2 > share;
    if (part + 1 < partitions && filled > 0 && (must_advance || overshoots)) {
      ++part;
      filled = 0;
    }
    part_of[cluster] = part;
    filled += weights[cluster];
    remaining -= weights[cluster];
    --left;
  }
  std::vector<std::uint32_t> result(graph.nodes.size());
  for (std::size_t node = 0; node < result.size(); ++node) result[node] = part_of[clustering.cluster[node]];
  return result;
}

}  // namespace manyscale
