// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_90 sm_100
// Blocks of a cluster read and add to each other's shared memory.

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster_exchange(const int* values, int* out, int* sums)
{
    __shared__ int own[64];
    __shared__ int sum;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    own[threadIdx.x] = values[i];
    if (threadIdx.x == 0) {
        sum = 0;
    }
    cluster.sync();
    int* next = cluster.map_shared_rank(own, (rank + 1) % cluster.num_blocks());
    out[i] = next[63 - threadIdx.x];
    atomicAdd(cluster.map_shared_rank(&sum, 0), own[threadIdx.x]);
    cluster.sync();
    if (threadIdx.x == 0 && rank == 0) {
        sums[blockIdx.x / 4] = sum;
    }
}
