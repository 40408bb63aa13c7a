// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// Each block sorts keys with values by four bits at a time; a pass is stable: ranks come from ballots.

constexpr int digits = 16;
constexpr int warps = 4;

extern "C" __global__ void radix_sort(unsigned* keys, unsigned* values, int bits)
{
    __shared__ unsigned keys_next[warps * 32];
    __shared__ unsigned values_next[warps * 32];
    __shared__ unsigned counts[digits][warps];
    __shared__ unsigned starts[digits][warps];
    int thread = threadIdx.x;
    int lane = thread % 32;
    int warp = thread / 32;
    int base = blockIdx.x * blockDim.x;
    unsigned key = keys[base + thread];
    unsigned value = values[base + thread];
    for (int shift = 0; shift < bits; shift += 4) {
        unsigned digit = key >> shift & (digits - 1);
        unsigned same = 0xffffffffu;
        for (int bit = 0; bit < 4; bit++) {
            bool set = digit >> bit & 1;
            unsigned ballot = __ballot_sync(0xffffffffu, set);
            same &= set ? ballot : ~ballot;
        }
        if (thread < digits) {
            for (int other = 0; other < warps; other++) {
                counts[thread][other] = 0;
            }
        }
        __syncthreads();
        unsigned rank = __popc(same & ((1u << lane) - 1));
        if (rank == 0) {
            counts[digit][warp] = __popc(same);
        }
        __syncthreads();
        if (thread == 0) {
            unsigned sum = 0;
            for (int of = 0; of < digits * warps; of++) {
                starts[of / warps][of % warps] = sum;
                sum += counts[of / warps][of % warps];
            }
        }
        __syncthreads();
        unsigned index = starts[digit][warp] + rank;
        keys_next[index] = key;
        values_next[index] = value;
        __syncthreads();
        key = keys_next[thread];
        value = values_next[thread];
    }
    keys[base + thread] = key;
    values[base + thread] = value;
}
