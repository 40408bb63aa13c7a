// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_70 sm_90
// Sums by warp shuffles, first within warps, then over the warps of a block; 64-bit values take two shuffles each.

template <typename T>
__device__ T warp_sum(T value)
{
    for (int offset = 16; offset > 0; offset /= 2) {
        value += __shfl_down_sync(0xffffffffu, value, offset);
    }
    return value;
}

template <typename T>
__device__ void block_sum(const T* values, T* sums, int count)
{
    __shared__ T partial[32];
    T sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        sum += values[i];
    }
    sum = warp_sum(sum);
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;
    if (lane == 0) {
        partial[warp] = sum;
    }
    __syncthreads();
    if (warp == 0) {
        sum = lane < blockDim.x / 32 ? partial[lane] : T(0);
        sum = warp_sum(sum);
        if (lane == 0) {
            sums[blockIdx.x] = sum;
        }
    }
}

extern "C" __global__ void sum_floats(const float* values, float* sums, int count)
{
    block_sum(values, sums, count);
}

extern "C" __global__ void sum_doubles(const double* values, double* sums, int count)
{
    block_sum(values, sums, count);
}

extern "C" __global__ void sum_longs(const long long* values, long long* sums, int count)
{
    block_sum(values, sums, count);
}

// Each group of eight lanes takes its minimum by a butterfly.
extern "C" __global__ void group_minimum(const int* values, int* minima)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = values[i];
    for (int mask = 4; mask > 0; mask /= 2) {
        value = min(value, __shfl_xor_sync(0xffffffffu, value, mask, 8));
    }
    minima[i] = value;
}
