// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90 sm_100 sm_75-lineinfo sm_80-debug
// One element per thread; the last block is partly idle.

extern "C" __global__ void vector_add(const float* a, const float* b, float* sum, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        sum[i] = a[i] + b[i];
    }
}
