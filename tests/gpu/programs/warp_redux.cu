// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_80 sm_90
// Reductions over the lanes of a warp by one instruction each.

extern "C" __global__ void warp_redux(const int* values, int* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = values[i];
    unsigned word = (unsigned)value;
    out[0 * count + i] = __reduce_add_sync(0xffffffffu, value);
    out[1 * count + i] = __reduce_min_sync(0xffffffffu, value);
    out[2 * count + i] = __reduce_max_sync(0xffffffffu, value);
    out[3 * count + i] = __reduce_min_sync(0xffffffffu, word);
    out[4 * count + i] = __reduce_max_sync(0xffffffffu, word);
    out[5 * count + i] = __reduce_and_sync(0xffffffffu, word | 0xff000000u);
    out[6 * count + i] = __reduce_or_sync(0xffffffffu, word & 0xff00u);
    out[7 * count + i] = __reduce_xor_sync(0xffffffffu, word);
    unsigned half = threadIdx.x % 32 < 16 ? 0x0000ffffu : 0xffff0000u;
    out[8 * count + i] = __reduce_add_sync(half, value);
}
