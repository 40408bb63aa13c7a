// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_70 sm_75 sm_90
// Votes and matches of the lanes of a warp, in full warps and in a last one that is not full.

extern "C" __global__ void warp_votes(const int* values, unsigned* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned taking_part = __ballot_sync(0xffffffffu, i < count);
    if (i >= count) {
        return;
    }
    int value = values[i];
    out[0 * count + i] = __ballot_sync(taking_part, value > 0);
    out[1 * count + i] = __any_sync(taking_part, value == 3);
    out[2 * count + i] = __all_sync(taking_part, value < 7);
    out[3 * count + i] = __match_any_sync(taking_part, value);
    int same;
    out[4 * count + i] = __match_all_sync(taking_part, value / 8, &same);
    out[5 * count + i] = same;
    out[6 * count + i] = __match_any_sync(taking_part, (long long)value << 32 | 5);
    if (value & 1) {
        out[7 * count + i] = __activemask();
    } else {
        out[7 * count + i] = ~__activemask();
    }
}

// Ranks among the lanes with the same value: the leader of each group adds for all.
extern "C" __global__ void grouped_add(const int* keys, unsigned* totals, unsigned* tickets)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x % 32;
    unsigned group = __match_any_sync(0xffffffffu, keys[i]);
    int leader = __ffs(group) - 1;
    unsigned base = 0;
    if (lane == leader) {
        base = atomicAdd(&totals[keys[i]], __popc(group));
    }
    base = __shfl_sync(group, base, leader);
    tickets[i] = base + __popc(group & ((1u << lane) - 1));
}

extern "C" __global__ void block_votes(const int* values, int* out)
{
    int value = values[blockIdx.x * blockDim.x + threadIdx.x];
    int count = __syncthreads_count(value > 0);
    int all = __syncthreads_and(value > -5);
    int any = __syncthreads_or(value == 7);
    if (threadIdx.x == 0) {
        out[blockIdx.x * 3] = count;
        out[blockIdx.x * 3 + 1] = all != 0;
        out[blockIdx.x * 3 + 2] = any != 0;
    }
}
