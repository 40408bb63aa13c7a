// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_80 sm_90
// Steps over the edges of a graph, repeated by the host until nothing changes.

extern "C" __global__ void pagerank_pull(const int* starts, const int* sources, const int* out_degrees, const float* ranks,
                                         float* next, float damping, int nodes)
{
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node < nodes) {
        float sum = 0;
        for (int edge = starts[node]; edge < starts[node + 1]; edge++) {
            int source = sources[edge];
            sum += ranks[source] / out_degrees[source];
        }
        next[node] = (1.0f - damping) / nodes + damping * sum;
    }
}

extern "C" __global__ void pagerank_push(const int* from, const int* to, const int* out_degrees, const float* ranks,
                                         float* next, float damping, int edges)
{
    int edge = blockIdx.x * blockDim.x + threadIdx.x;
    if (edge < edges) {
        atomicAdd(&next[to[edge]], damping * ranks[from[edge]] / out_degrees[from[edge]]);
    }
}

extern "C" __global__ void bellman_ford(const int* from, const int* to, const unsigned* weights, unsigned* distances,
                                        int* changed, int edges)
{
    int edge = blockIdx.x * blockDim.x + threadIdx.x;
    if (edge >= edges) {
        return;
    }
    unsigned base = distances[from[edge]];
    if (base == 0xffffffffu) {
        return;
    }
    unsigned length = base + weights[edge];
    if (atomicMin(&distances[to[edge]], length) > length) {
        *changed = 1;
    }
}

// Labels hook onto smaller labels, then all paths to the roots are shortened.
extern "C" __global__ void hook(const int* from, const int* to, int* labels, int* changed, int edges)
{
    int edge = blockIdx.x * blockDim.x + threadIdx.x;
    if (edge < edges) {
        int a = labels[from[edge]];
        int b = labels[to[edge]];
        if (a != b) {
            atomicMin(&labels[max(a, b)], min(a, b));
            *changed = 1;
        }
    }
}

extern "C" __global__ void shorten(int* labels, int nodes)
{
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node < nodes) {
        int label = labels[node];
        while (label != labels[label]) {
            label = labels[label];
        }
        labels[node] = label;
    }
}
