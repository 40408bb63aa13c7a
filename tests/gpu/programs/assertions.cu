// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// Assertions that hold, and one that fails if the caller wants it.

#ifndef __CUDACC_RTC__
#include <cassert>
#endif

extern "C" __global__ void halve(const int* values, int* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        assert(values[i] % 2 == 0);
        out[i] = values[i] / 2;
    }
}

extern "C" __global__ void trap_at(int thread, int* out)
{
    if (threadIdx.x == thread) {
        __trap();
    }
    out[threadIdx.x] = 1;
}
