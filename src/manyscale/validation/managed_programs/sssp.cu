// SPDX-License-Identifier: Apache-2.0
// Shortest paths from one vertex: a thread for each vertex, in rounds.

extern "C" __global__ void prepare(unsigned char* active, float* distance, float* found, int source, int count)
{
    const int vertex = blockIdx.x * blockDim.x + threadIdx.x;
    if (vertex < count) {
        const float far = vertex == source ? 0.0f : 3.402823466e38f;
        active[vertex] = vertex == source;
        distance[vertex] = far;
        found[vertex] = far;
    }
}

// Vertices whose distance changed offer it to their neighbours. Distances are not negative, so the order of their bits
// as integers is that of their values.
extern "C" __global__ void relax(const int* first, const int* edges, const float* weights, unsigned char* active,
                                 const float* distance, float* found, int count, int edge_count)
{
    const int vertex = blockIdx.x * blockDim.x + threadIdx.x;
    if (vertex >= count || !active[vertex]) {
        return;
    }
    active[vertex] = 0;
    const int end = vertex + 1 < count ? first[vertex + 1] : edge_count;
    for (int edge = first[vertex]; edge < end; ++edge) {
        const float offer = distance[vertex] + weights[edge];
        atomicMin(reinterpret_cast<int*>(found) + edges[edge], __float_as_int(offer));
    }
}

// The best offers become distances.
extern "C" __global__ void commit(unsigned char* active, float* distance, float* found, int count)
{
    const int vertex = blockIdx.x * blockDim.x + threadIdx.x;
    if (vertex < count) {
        if (distance[vertex] > found[vertex]) {
            distance[vertex] = found[vertex];
            active[vertex] = 1;
        }
        found[vertex] = distance[vertex];
    }
}
