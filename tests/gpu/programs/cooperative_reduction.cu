// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_70 sm_80 sm_90
// Reductions by cooperative groups: tiles, the threads that happen to be together, and the block.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

extern "C" __global__ void tile_sums(const int* values, int* sums, int* maxima)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    int i = blockIdx.x * blockDim.x + block.thread_rank();
    int sum = cg::reduce(tile, values[i], cg::plus<int>());
    int largest = cg::reduce(tile, values[i], cg::greater<int>());
    if (tile.thread_rank() == 0) {
        int index = i / tile.size();
        sums[index] = sum;
        maxima[index] = largest;
    }
}

extern "C" __global__ void warp_float_sums(const float* values, float* sums)
{
    cg::thread_block block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    float sum = cg::reduce(warp, values[blockIdx.x * blockDim.x + block.thread_rank()], cg::plus<float>());
    if (warp.thread_rank() == 0) {
        sums[blockIdx.x * warp.meta_group_size() + warp.meta_group_rank()] = sum;
    }
}

// One atomic addition for all threads of a warp that count, made by the first of them.
extern "C" __global__ void count_positive(const int* values, int* counter, int* ranks, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && values[i] > 0) {
        cg::coalesced_group together = cg::coalesced_threads();
        int base = 0;
        if (together.thread_rank() == 0) {
            base = atomicAdd(counter, together.size());
        }
        base = together.shfl(base, 0);
        ranks[i] = base + together.thread_rank();
    }
}

extern "C" __global__ void block_rotate(const int* values, int* out)
{
    extern __shared__ int staged[];
    cg::thread_block block = cg::this_thread_block();
    unsigned rank = block.thread_rank();
    int base = block.group_index().x * block.size();
    staged[rank] = values[base + rank];
    block.sync();
    out[base + rank] = staged[(rank + 1) % block.size()];
}
