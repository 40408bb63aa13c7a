// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_75 sm_80 sm_90
// Groups of threads made at run time: by label, by tiles within tiles, and scans over them.

#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

extern "C" __global__ void labelled(const int* labels, int* sizes, int* ranks)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    auto group = cg::labeled_partition(warp, labels[i]);
    sizes[i] = group.size();
    ranks[i] = group.thread_rank();
}

extern "C" __global__ void tile_scans(const int* values, int* inclusive, int* exclusive)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    inclusive[i] = cg::inclusive_scan(tile, values[i], cg::plus<int>());
    exclusive[i] = cg::exclusive_scan(tile, values[i], cg::plus<int>());
}

extern "C" __global__ void tile_votes(const int* values, unsigned* out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    auto tile = cg::tiled_partition<4>(cg::this_thread_block());
    unsigned result = tile.ballot(values[i] > 0);
    result |= tile.any(values[i] == 2) ? 0x100u : 0u;
    result |= tile.all(values[i] != 1) ? 0x200u : 0u;
    result |= (unsigned)(tile.shfl_xor(values[i], 1) & 0xff) << 16;
    out[i] = result;
}
