// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100
// All four shuffles with groups of 4, 16 and 32 lanes, in full warps and with only some lanes taking part.

extern "C" __global__ void shuffle_widths(const int* values, int* out)
{
    int lane = threadIdx.x;
    int value = values[lane];
    out[0 * 32 + lane] = __shfl_sync(0xffffffffu, value, 5);
    out[1 * 32 + lane] = __shfl_sync(0xffffffffu, value, lane * 7);
    out[2 * 32 + lane] = __shfl_sync(0xffffffffu, value, 2, 4);
    out[3 * 32 + lane] = __shfl_sync(0xffffffffu, value, lane + 1, 16);
    out[4 * 32 + lane] = __shfl_up_sync(0xffffffffu, value, 3);
    out[5 * 32 + lane] = __shfl_up_sync(0xffffffffu, value, 1, 4);
    out[6 * 32 + lane] = __shfl_down_sync(0xffffffffu, value, 9);
    out[7 * 32 + lane] = __shfl_down_sync(0xffffffffu, value, 5, 16);
    out[8 * 32 + lane] = __shfl_xor_sync(0xffffffffu, value, 21);
    out[9 * 32 + lane] = __shfl_xor_sync(0xffffffffu, value, 3, 4);
}

// Odd lanes turn their values around among themselves; even lanes only add one.
extern "C" __global__ void shuffle_odd_lanes(const float* values, float* out)
{
    int lane = threadIdx.x;
    float value = values[lane];
    if (lane & 1) {
        value = __shfl_sync(0xaaaaaaaau, value, 32 - lane);
    } else {
        value += 1.0f;
    }
    out[lane] = value;
}
