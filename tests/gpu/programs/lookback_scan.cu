// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_70 sm_75 sm_90
// A prefix sum in one pass over memory: each block waits for what the blocks before it have published.
//
// A block's state is one 64-bit word: the upper half says what the lower half is (0: nothing yet, 1: the sum of this
// block alone, 2: the sum of all blocks up to it). Blocks take their part in the order in which they begin.

extern "C" __global__ void lookback_scan(const unsigned* values, unsigned* inclusive, volatile unsigned long long* states,
                                         unsigned* next_part, int count)
{
    __shared__ unsigned part;
    __shared__ unsigned before;
    __shared__ unsigned warp_sums[8];
    if (threadIdx.x == 0) {
        part = atomicAdd(next_part, 1u);
    }
    __syncthreads();
    int i = part * blockDim.x + threadIdx.x;
    unsigned value = i < count ? values[i] : 0;
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;
    for (int distance = 1; distance < 32; distance *= 2) {
        unsigned other = __shfl_up_sync(0xffffffffu, value, distance);
        if (lane >= distance) {
            value += other;
        }
    }
    if (lane == 31) {
        warp_sums[warp] = value;
    }
    __syncthreads();
    for (int other = 0; other < warp; other++) {
        value += warp_sums[other];
    }
    if (threadIdx.x == blockDim.x - 1) {
        unsigned long long flag = part == 0 ? 2 : 1;
        states[part] = flag << 32 | value;
        __threadfence();
        unsigned sum = 0;
        for (int at = (int)part - 1; at >= 0; at--) {
            unsigned long long state;
            do {
                state = states[at];
            } while (state >> 32 == 0);
            sum += (unsigned)state;
            if (state >> 32 == 2) {
                break;
            }
        }
        states[part] = 2ull << 32 | (sum + value);
        before = sum;
    }
    __syncthreads();
    if (i < count) {
        inclusive[i] = value + before;
    }
}
