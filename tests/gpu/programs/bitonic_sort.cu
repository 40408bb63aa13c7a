// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100
// Each block sorts its keys in shared memory by a bitonic network.

extern "C" __global__ void bitonic_sort(unsigned* keys)
{
    extern __shared__ unsigned sorted[];
    unsigned thread = threadIdx.x;
    unsigned* own = keys + blockIdx.x * blockDim.x;
    sorted[thread] = own[thread];
    __syncthreads();
    for (unsigned size = 2; size <= blockDim.x; size *= 2) {
        for (unsigned stride = size / 2; stride > 0; stride /= 2) {
            unsigned partner = thread ^ stride;
            if (partner > thread) {
                unsigned mine = sorted[thread];
                unsigned other = sorted[partner];
                bool ascending = (thread & size) == 0;
                if ((mine > other) == ascending) {
                    sorted[thread] = other;
                    sorted[partner] = mine;
                }
            }
            __syncthreads();
        }
    }
    own[thread] = sorted[thread];
}

// The same network in the lanes of one warp, by shuffles, on floats.
extern "C" __global__ void bitonic_warp(float* keys)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x % 32;
    float key = keys[i];
    for (int size = 2; size <= 32; size *= 2) {
        for (int stride = size / 2; stride > 0; stride /= 2) {
            float other = __shfl_xor_sync(0xffffffffu, key, stride);
            bool lower = (lane & stride) == 0;
            bool ascending = (lane & size) == 0;
            key = lower == ascending ? fminf(key, other) : fmaxf(key, other);
        }
    }
    keys[i] = key;
}
