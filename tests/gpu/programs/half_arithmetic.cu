// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_60 sm_75 sm_90
// Sixteen-bit floating point, alone and in pairs.

#include <cuda_fp16.h>

extern "C" __global__ void half_arithmetic(const half* a, const half* b, half* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    half x = a[i];
    half y = b[i];
    out[0 * count + i] = __hadd(x, y);
    out[1 * count + i] = __hsub(x, y);
    out[2 * count + i] = __hmul(x, y);
    out[3 * count + i] = __hfma(x, y, __float2half(0.25f));
    out[4 * count + i] = __hlt(x, y) ? x : y;
    out[5 * count + i] = __hneg(x);
    out[6 * count + i] = hsqrt(__habs(x));
    out[7 * count + i] = __float2half_rn(__half2float(x) * 3.0f);
    out[8 * count + i] = __int2half_rn(__half2int_rz(x) + 1);
    out[9 * count + i] = hfloor(y);
    out[10 * count + i] = __double2half(1.0 / 3.0 * i);
}

extern "C" __global__ void half2_axpy(half2 a, const half2* x, half2* y, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        y[i] = __hfma2(a, x[i], y[i]);
    }
}

extern "C" __global__ void half2_mixed(const half2* a, const half2* b, half2* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    half2 x = a[i];
    half2 y = b[i];
    out[0 * count + i] = __hadd2(x, y);
    out[1 * count + i] = __hmul2(x, y);
    out[2 * count + i] = __lowhigh2highlow(x);
    out[3 * count + i] = __halves2half2(__low2half(x), __high2half(y));
    out[4 * count + i] = __hgt2(x, y);
    float2 wide = __half22float2(x);
    out[5 * count + i] = __floats2half2_rn(wide.x * wide.y, wide.x - wide.y);
}
