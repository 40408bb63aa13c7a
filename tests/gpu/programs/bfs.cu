// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100
// One level of a breadth-first search: the frontier is a list, and the next one grows by an atomic counter.

extern "C" __global__ void bfs_level(const int* starts, const int* neighbours, int* distances, const int* frontier,
                                     int frontier_count, int* next, int* next_count, int level)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= frontier_count) {
        return;
    }
    int node = frontier[i];
    for (int edge = starts[node]; edge < starts[node + 1]; edge++) {
        int other = neighbours[edge];
        if (atomicCAS(&distances[other], -1, level) == -1) {
            next[atomicAdd(next_count, 1)] = other;
        }
    }
}
