// SPDX-License-Identifier: Apache-2.0
// Breadth-first search, one level after the other: a thread for each node.

struct Node {
    int first;  // of its edges
    int edges;
};

// Every node of the frontier gives its neighbours that were not visited their distance.
extern "C" __global__ void expand(const Node* nodes, const int* edges, unsigned char* frontier, unsigned char* next,
                                  const unsigned char* visited, int* distance, int count)
{
    const int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= count || !frontier[node]) {
        return;
    }
    frontier[node] = 0;
    // What is written may be part of nodes, for all that the compiler knows: each round reads them again.
    for (int edge = nodes[node].first; edge < nodes[node].first + nodes[node].edges; ++edge) {
        const int neighbour = edges[edge];
        if (!visited[neighbour]) {
            distance[neighbour] = distance[node] + 1;
            next[neighbour] = 1;
        }
    }
}

// What was found becomes the frontier.
extern "C" __global__ void advance(unsigned char* frontier, unsigned char* next, unsigned char* visited,
                                   unsigned char* found, int count)
{
    const int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node < count && next[node]) {
        frontier[node] = 1;
        visited[node] = 1;
        next[node] = 0;
        *found = 1;
    }
}
