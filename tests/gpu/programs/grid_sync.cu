// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_70 sm_75 sm_90
// All blocks wait for each other several times: they must all be on the device at once.

__device__ unsigned arrived;
__device__ volatile unsigned generation;

__device__ void wait_for_grid()
{
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned mine = generation;
        __threadfence();
        if (atomicAdd(&arrived, 1u) == gridDim.x - 1) {
            arrived = 0;
            __threadfence();
            generation = mine + 1;
        } else {
            while (generation == mine) {
            }
        }
        __threadfence();
    }
    __syncthreads();
}

// Repeated smoothing of a ring, all steps in one launch.
extern "C" __global__ void smooth_ring(volatile int* a, volatile int* b, int count, int steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    volatile int* from = a;
    volatile int* to = b;
    for (int step = 0; step < steps; step++) {
        if (i < count) {
            to[i] = from[(i + count - 1) % count] + from[i] + from[(i + 1) % count];
        }
        wait_for_grid();
        volatile int* other = from;
        from = to;
        to = other;
    }
}
