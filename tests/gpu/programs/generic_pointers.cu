// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// One function reads and writes through pointers to global, shared, local and constant memory.

__constant__ int constants[32] = {5, 4, 3, 2, 1};
__device__ int globals[32];

__device__ __noinline__ int sum(const int* values, int count)
{
    int result = 0;
    for (int i = 0; i < count; i++) {
        result += values[i];
    }
    return result;
}

__device__ __noinline__ void increase(int* value, int by)
{
    *value += by;
}

extern "C" __global__ void generic_pointers(const int* values, int* out)
{
    __shared__ int shared[32];
    int local[8];
    int thread = threadIdx.x;
    shared[thread] = values[thread];
    for (int i = 0; i < 8; i++) {
        local[i] = values[(thread + i) % 32];
    }
    __syncthreads();
    increase(&local[thread % 8], 1000);
    int* pointer = thread % 3 == 0 ? &shared[thread] : thread % 3 == 1 ? &globals[thread] : &local[2];
    increase(pointer, 7);
    __syncthreads();
    const int* sources[4] = {shared, constants, values, local};
    int counts[4] = {32, 5, 16, 8};
    int result = sum(sources[thread % 4], counts[thread % 4]);
    out[thread] = result * 2 + (__isShared(pointer) ? 1 : 0);
    out[32 + thread] = globals[thread];
    __syncthreads();
    out[64 + thread] = atomicAdd(thread % 2 ? &shared[0] : &globals[0], 1) >= 0;
}
