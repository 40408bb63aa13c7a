// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// Calls through pointers: the lanes of a warp call different functions of a table.

typedef float (*Operation)(float, float);

__device__ float sum(float a, float b)
{
    return a + b;
}

__device__ float difference(float a, float b)
{
    return a - b;
}

__device__ float product(float a, float b)
{
    return a * b;
}

__device__ float larger(float a, float b)
{
    return a > b ? a : b;
}

__device__ Operation operations[] = {sum, difference, product, larger};
__constant__ Operation reversed[] = {larger, product, difference, sum};

extern "C" __global__ void function_table(const int* codes, const float* a, const float* b, float* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        out[i] = operations[codes[i]](a[i], b[i]);
        out[count + i] = reversed[codes[i]](a[i], b[i]);
    }
}
