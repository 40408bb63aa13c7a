// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100
// Histograms of bytes: atomics on global memory, atomics on shared memory, and one private column per thread.

extern "C" __global__ void histogram_global(const unsigned char* bytes, unsigned* bins, int count)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        atomicAdd(&bins[bytes[i]], 1u);
    }
}

extern "C" __global__ void histogram_shared(const unsigned char* bytes, unsigned* bins, int count)
{
    __shared__ unsigned own[256];
    for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) {
        own[bin] = 0;
    }
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        atomicAdd(&own[bytes[i]], 1u);
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) {
        if (own[bin]) {
            atomicAdd(&bins[bin], own[bin]);
        }
    }
}

// Sixteen bins of the upper four bits, counted in bytes that no other thread touches.
extern "C" __global__ void histogram_private(const unsigned char* bytes, unsigned* bins, int count)
{
    __shared__ unsigned char columns[16][64];
    int thread = threadIdx.x;
    for (int bin = 0; bin < 16; bin++) {
        columns[bin][thread] = 0;
    }
    for (int i = blockIdx.x * blockDim.x + thread; i < count; i += gridDim.x * blockDim.x) {
        columns[bytes[i] >> 4][thread]++;
    }
    __syncthreads();
    if (thread < 16) {
        unsigned sum = 0;
        for (int other = 0; other < blockDim.x; other++) {
            sum += columns[thread][other];
        }
        atomicAdd(&bins[thread], sum);
    }
}
