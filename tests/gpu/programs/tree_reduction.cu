// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100 sm_90-lineinfo
// The sum of each block by a tree in shared memory, and the total by one atomic addition per block.

extern "C" __global__ void tree_sum(const int* values, int* block_sums, unsigned long long* total, int count)
{
    __shared__ int partial[256];
    int thread = threadIdx.x;
    int i = blockIdx.x * (blockDim.x * 2) + thread;
    int sum = 0;
    if (i < count) {
        sum = values[i];
    }
    if (i + blockDim.x < count) {
        sum += values[i + blockDim.x];
    }
    partial[thread] = sum;
    __syncthreads();
    for (unsigned width = blockDim.x / 2; width > 0; width /= 2) {
        if (thread < width) {
            partial[thread] += partial[thread + width];
        }
        __syncthreads();
    }
    if (thread == 0) {
        block_sums[blockIdx.x] = partial[0];
        atomicAdd(total, (unsigned long long)(long long)partial[0]);
    }
}

extern "C" __global__ void tree_max(const double* values, double* block_maxima, int count)
{
    extern __shared__ double largest[];
    double best = -1e300;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        best = fmax(best, values[i]);
    }
    largest[threadIdx.x] = best;
    for (int width = blockDim.x / 2; width > 0; width >>= 1) {
        __syncthreads();
        if (threadIdx.x < width) {
            largest[threadIdx.x] = fmax(largest[threadIdx.x], largest[threadIdx.x + width]);
        }
    }
    if (threadIdx.x == 0) {
        block_maxima[blockIdx.x] = largest[0];
    }
}
