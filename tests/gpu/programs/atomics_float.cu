// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// Atomic additions of floating point numbers; the values are whole, so that the order does not matter.

#include <cuda_fp16.h>

extern "C" __global__ void atomics_float(const float* values, float* cells, double* wide_cells, half2* half_cells, int count)
{
    __shared__ float block_sum;
    __shared__ double block_wide;
    if (threadIdx.x == 0) {
        block_sum = 0;
        block_wide = 0;
    }
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        atomicAdd(&cells[0], values[i]);
        atomicAdd(&wide_cells[0], (double)values[i] * 0.5);
        atomicAdd(&half_cells[i % 8], __floats2half2_rn(1.0f, values[i]));
        atomicAdd(&block_sum, values[i]);
        atomicAdd(&block_wide, (double)values[i]);
        atomicExch(&cells[3 + i % 4], values[i]);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(&cells[1], block_sum);
        atomicAdd(&wide_cells[1], block_wide);
    }
}

// The maximum of floats, which has no instruction of its own: a loop of comparisons and exchanges.
extern "C" __global__ void maximum_by_exchange(const float* values, float* largest, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    int* word = reinterpret_cast<int*>(largest);
    int seen = *word;
    while (__int_as_float(seen) < values[i]) {
        int expected = seen;
        seen = atomicCAS(word, expected, __float_as_int(values[i]));
        if (seen == expected) {
            break;
        }
    }
}
