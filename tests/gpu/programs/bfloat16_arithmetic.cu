// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_80 sm_90
// The format with the range of a float and eight bits of precision, alone and in pairs.

#include <cuda_bf16.h>

extern "C" __global__ void bfloat16_arithmetic(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    __nv_bfloat16 x = a[i];
    __nv_bfloat16 y = b[i];
    out[0 * count + i] = __hadd(x, y);
    out[1 * count + i] = __hmul(x, y);
    out[2 * count + i] = __hfma(x, y, x);
    out[3 * count + i] = __hmax(x, y);
    out[4 * count + i] = __hmin(x, y);
    out[5 * count + i] = __hneg(x);
    out[6 * count + i] = __float2bfloat16(__bfloat162float(x) * 3.0f);
    out[7 * count + i] = __hgt(x, y) ? x : y;
}

extern "C" __global__ void bfloat16_pairs(const __nv_bfloat162* a, const __nv_bfloat162* b, __nv_bfloat162* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        out[0 * count + i] = __hfma2(a[i], b[i], b[i]);
        out[1 * count + i] = __hmax2(a[i], b[i]);
    }
}
