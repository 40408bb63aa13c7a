// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_100
// A loop over the whole grid: fewer threads than elements.

extern "C" __global__ void saxpy(int count, float a, const float* __restrict__ x, float* __restrict__ y)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        y[i] = a * x[i] + y[i];
    }
}

extern "C" __global__ void daxpy(int count, double a, const double* __restrict__ x, double* __restrict__ y)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        y[i] = a * x[i] + y[i];
    }
}
