// SPDX-License-Identifier: Apache-2.0
// A sum of two vectors, one of them scaled.

extern "C" __global__ void triad(const float* x, const float* y, float* z, float scale, int count)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        z[i] = scale * x[i] + y[i];
    }
}
