// SPDX-License-Identifier: Apache-2.0
// fixtures: sm_70 sm_75 sm_90
// High halves of products, dot products of bytes, division of 64-bit numbers, and 128-bit numbers.

extern "C" __global__ void integer_products(const int* a, const int* b, int* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    int x = a[i];
    int y = b[i];
    out[0 * count + i] = __mulhi(x, y);
    out[1 * count + i] = __umulhi(x, y);
    out[2 * count + i] = __mul24(x, y);
    out[3 * count + i] = __umul24(x, y);
    out[4 * count + i] = __dp4a(x, y, 100);
    out[5 * count + i] = __dp4a((unsigned)x, (unsigned)y, 100u);
    out[6 * count + i] = __dp2a_lo(x, y, -7);
    out[7 * count + i] = __dp2a_hi(x, y, -7);
    out[8 * count + i] = __dp2a_lo((unsigned)x, (unsigned)y, 9u);
    out[9 * count + i] = __dp2a_hi((unsigned)x, (unsigned)y, 9u);
    out[10 * count + i] = y ? x / y : 0;
    out[11 * count + i] = y ? x % y : 0;
    out[12 * count + i] = (unsigned)x / ((unsigned)y | 1u);
    out[13 * count + i] = x / 7 + x % 10;
    out[14 * count + i] = min(x, y) - max(x, y);
    out[15 * count + i] = abs(x);
}

extern "C" __global__ void integer_wide(const long long* a, const long long* b, long long* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    long long x = a[i];
    long long y = b[i];
    unsigned long long u = (unsigned long long)x;
    unsigned long long v = (unsigned long long)y | 1;
    out[0 * count + i] = y ? x / y : 0;
    out[1 * count + i] = y ? x % y : 0;
    out[2 * count + i] = (long long)(u / v);
    out[3 * count + i] = (long long)(u % v);
    out[4 * count + i] = __mul64hi(x, y);
    out[5 * count + i] = (long long)__umul64hi(u, v);
    out[6 * count + i] = x / 1000003;
    out[7 * count + i] = x * y + (x >> 7) - (long long)(u >> 9);
    out[8 * count + i] = llabs(x);
}

// Sums, differences and products of 128-bit numbers, low half first.
extern "C" __global__ void integer_128(const ulonglong2* a, const ulonglong2* b, ulonglong2* out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) {
        return;
    }
    ulonglong2 x = a[i];
    ulonglong2 y = b[i];
    ulonglong2 sum;
    asm("add.cc.u64 %0, %2, %4;\n\taddc.u64 %1, %3, %5;"
        : "=l"(sum.x), "=l"(sum.y)
        : "l"(x.x), "l"(x.y), "l"(y.x), "l"(y.y));
    ulonglong2 difference;
    asm("sub.cc.u64 %0, %2, %4;\n\tsubc.u64 %1, %3, %5;"
        : "=l"(difference.x), "=l"(difference.y)
        : "l"(x.x), "l"(x.y), "l"(y.x), "l"(y.y));
    out[0 * count + i] = sum;
    out[1 * count + i] = difference;
    out[2 * count + i] = make_ulonglong2(x.x * y.x, __umul64hi(x.x, y.x) + x.x * y.y + x.y * y.x);
}
